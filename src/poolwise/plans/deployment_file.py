"""File format of plans of kind "deployment"."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from poolwise.files.component import Component
from poolwise.files.fields import Count, FileName, Positive, Registered, Section

OBJECTIVES = ("latency_us", "purchase_cost", "energy_j")
"""Objectives of the Pareto front; lower is better."""


class UnitSection(Section):
    """A unit type and the numbers of units to choose from."""

    type: str = Field(description="name of a unit type, such as gpu")
    counts: list[Count] | None = Field(default=None, description="numbers to choose from, ascending")
    least: Count | None = Field(default=None, description="smallest number, instead of counts")
    most: Count | None = Field(default=None, description="largest number, with least")
    step: Positive = Field(default=1, description="step between numbers, with least and most")

    @model_validator(mode="after")
    def _one_range(self) -> UnitSection:
        if (self.counts is None) != (self.least is not None and self.most is not None) or (
            self.counts is not None and (self.least is not None or self.most is not None)
        ):
            raise ValueError("give either counts, or least and most")
        if not self.numbers() or self.numbers() != sorted(set(self.numbers())):
            raise ValueError("the numbers must ascend without duplicates")
        return self

    def numbers(self) -> list[int]:
        """Return all numbers to choose from."""
        if self.counts is not None:
            return self.counts
        assert self.least is not None and self.most is not None  # checked above
        return list(range(self.least, self.most + 1, self.step))


class JobSizeSection(Section):
    """A share of the jobs whose number of tasks is uniform from `least` to `most`."""

    share: float = Field(gt=0, le=1)
    least: Positive
    most: Positive

    @model_validator(mode="after")
    def _ascending(self) -> JobSizeSection:
        if self.most < self.least:
            raise ValueError("most must not be less than least")
        return self


class JobsSection(Section):
    """Generated jobs, instead of a trace."""

    count: Positive = Field(description="number of jobs")
    size: list[JobSizeSection] = Field(min_length=1, description="number of tasks per job, by share of the jobs")
    types: dict[str, float] = Field(min_length=1, description="task type -> share of the jobs")
    operations: Positive = Field(description="operations of each task")

    @model_validator(mode="after")
    def _whole(self) -> JobsSection:
        for name, shares in (("size", [size.share for size in self.size]), ("types", list(self.types.values()))):
            if abs(sum(shares) - 1.0) > 1e-9 or min(shares) < 0:
                raise ValueError(f"the shares of {name} must be nonnegative and sum to 1")
        return self


class LatencyTargetSection(Section):
    """Bound on the latency: `at_most` us, or `within` a multiple of the fastest candidate's latency."""

    at_most: float | None = Field(default=None, gt=0)
    within: float | None = Field(default=None, ge=1)

    @model_validator(mode="after")
    def _one_bound(self) -> LatencyTargetSection:
        if (self.at_most is None) == (self.within is None):
            raise ValueError("give either at_most or within")
        return self


class SearchSection(Section):
    """Search settings for a large set of candidates."""

    exhaustive: Positive = Field(default=2000, description="maximum number of candidates for which all are simulated")
    sample: Positive = Field(default=270, description="number of candidates on the first rung, which uses a ninth of the jobs")
    seed: Count = Field(default=0, description="random seed of the sample")


_FILE = FileName("give a path relative to the plan")


class DeploymentSection(Section):
    """The units to buy for a workload."""

    kind: Literal["deployment"]
    affinity: Annotated[str, _FILE] = Field(description="affinity table, relative to the plan")
    affinity_kind: Literal["absolute", "relative"] = "absolute"
    prices: Annotated[str, _FILE] = Field(description="price list, relative to the plan")
    power: Annotated[str, _FILE] = Field(description="power table, relative to the plan")
    types: Annotated[str | None, _FILE] = Field(default=None, description="table of further type names, relative to the plan")
    trace: Annotated[str | None, _FILE] = Field(default=None, description="VineSim trace, relative to the plan")
    jobs: JobsSection | None = Field(default=None, description="generated jobs for each seed, instead of a trace")
    inter_arrival: str = Field(default="0", description='time between jobs, such as "7us" or "exponential(7us)"')
    unit: list[UnitSection] = Field(min_length=1, description="unit types to buy")
    placement: Annotated[list[Component], Registered("placements")] = Field(
        default=[Component(name="high")], min_length=1, description="policies to choose from"
    )
    units: Positive | None = Field(default=None, description="total number of units; by default any that the counts allow")
    racks: Positive = Field(default=1, description="number of racks over which units of each type are distributed in turn")
    budget: float | None = Field(default=None, gt=0, description="maximum purchase cost, in the currency of the price list")
    latency: Literal["mean", "p50", "p99", "p99_9"] = Field(default="p99", description="statistic of the job latency")
    target: LatencyTargetSection | None = None
    utility: dict[Literal["latency_us", "purchase_cost", "energy_j"], float] = Field(
        default={"purchase_cost": 1.0}, description="weights; the answer minimizes the weighted sum"
    )
    seeds: Positive = Field(default=3, description="number of runs per candidate; all candidates use the same seeds")
    search: SearchSection = SearchSection()

    @model_validator(mode="after")
    def _one_workload(self) -> DeploymentSection:
        if (self.trace is None) == (self.jobs is None):
            raise ValueError("give either trace or jobs")
        if any(weight < 0 for weight in self.utility.values()) or not any(self.utility.values()):
            raise ValueError("utility weights must be nonnegative, and at least one must be positive")
        return self


def counts_of(section: DeploymentSection, element: tuple[int, ...]) -> tuple[int, ...]:
    """Return the number of units of each type of a candidate; its last position, that of the policy, is ignored."""
    return tuple(unit.numbers()[k] for unit, k in zip(section.unit, element, strict=False))
