"""What a plan of kind "deployment" may say."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator

from poolwise.files.component import Component
from poolwise.files.fields import Count, Positive, Section

OBJECTIVES = ("latency_us", "purchase_cost", "energy_j")
"""What a front is made of; less is better."""


class UnitSection(Section):
    """A type of unit and how many of it there may be."""

    type: str = Field(description="name of a unit type, such as gpu")
    counts: list[Count] | None = Field(default=None, description="numbers to choose from, ascending")
    least: Count | None = Field(default=None, description="instead of counts: the smallest number")
    most: Count | None = Field(default=None, description="the largest")
    step: Positive = Field(default=1, description="and the step between them")

    @model_validator(mode="after")
    def _one_range(self) -> UnitSection:
        if (self.counts is None) != (self.least is not None and self.most is not None) or (
            self.counts is not None and (self.least is not None or self.most is not None)
        ):
            raise ValueError("give either counts, or least and most")
        if not self.numbers() or self.numbers() != sorted(set(self.numbers())):
            raise ValueError("the numbers must ascend, each once")
        return self

    def numbers(self) -> list[int]:
        """All numbers to choose from."""
        if self.counts is not None:
            return self.counts
        assert self.least is not None and self.most is not None  # checked above
        return list(range(self.least, self.most + 1, self.step))


class JobSizeSection(Section):
    """Jobs of `least` to `most` tasks, uniformly; a share of all jobs."""

    share: float = Field(gt=0, le=1)
    least: Positive
    most: Positive

    @model_validator(mode="after")
    def _ascending(self) -> JobSizeSection:
        if self.most < self.least:
            raise ValueError("most must not be less than least")
        return self


class JobsSection(Section):
    """Jobs that are drawn, instead of a trace."""

    count: Positive = Field(description="number of jobs")
    size: list[JobSizeSection] = Field(min_length=1, description="tasks of a job, by share of the jobs")
    types: dict[str, float] = Field(min_length=1, description="task type -> share of the jobs")
    operations: Positive = Field(description="of a task")

    @model_validator(mode="after")
    def _whole(self) -> JobsSection:
        for name, shares in (("size", [size.share for size in self.size]), ("types", list(self.types.values()))):
            if abs(sum(shares) - 1.0) > 1e-9 or min(shares) < 0:
                raise ValueError(f"the shares of {name} must not be negative and sum to 1")
        return self


class LatencyTargetSection(Section):
    """The latency that is good enough: `at_most` us, or `within` a multiple of that of the fastest candidate."""

    at_most: float | None = Field(default=None, gt=0)
    within: float | None = Field(default=None, ge=1)

    @model_validator(mode="after")
    def _one_bound(self) -> LatencyTargetSection:
        if (self.at_most is None) == (self.within is None):
            raise ValueError("give either at_most or within")
        return self


class SearchSection(Section):
    """How a large set of candidates is searched."""

    exhaustive: Positive = Field(default=2000, description="up to this number of candidates, all are simulated")
    sample: Positive = Field(default=270, description="candidates of the first rung, a third of the jobs at each step back")
    seed: Count = Field(default=0, description="of the sample")


class DeploymentSection(Section):
    """Which units to buy for a workload."""

    kind: Literal["deployment"]
    affinity: str = Field(description="affinity table, relative to the plan")
    affinity_kind: Literal["absolute", "relative"] = "absolute"
    prices: str = Field(description="price list, relative to the plan")
    power: str = Field(description="power table, relative to the plan")
    types: str | None = Field(default=None, description="table of further type names, relative to the plan")
    trace: str | None = Field(default=None, description="VineSim trace, relative to the plan")
    jobs: JobsSection | None = Field(default=None, description="instead of a trace: jobs that are drawn for each seed")
    inter_arrival: str = Field(default="0", description='time between jobs, such as "7us" or "exponential(7us)"')
    unit: list[UnitSection] = Field(min_length=1, description="what may be bought")
    placement: list[Component] = Field(default=[Component(name="high")], min_length=1, description="policies to choose from")
    units: Positive | None = Field(default=None, description="units in all; as many as the counts give, if not said")
    racks: Positive = Field(default=1, description="racks that the units of each type are dealt out to in turn")
    budget: float | None = Field(default=None, gt=0, description="most that may be paid, in the money of the price list")
    latency: Literal["mean", "p50", "p99", "p99_9"] = Field(default="p99", description="which latency of a job counts")
    target: LatencyTargetSection | None = None
    utility: dict[Literal["latency_us", "purchase_cost", "energy_j"], float] = Field(
        default={"purchase_cost": 1.0}, description="weights; the answer is the candidate of least weighted sum"
    )
    seeds: Positive = Field(default=3, description="runs of a candidate; the same seeds for all")
    search: SearchSection = SearchSection()

    @model_validator(mode="after")
    def _one_workload(self) -> DeploymentSection:
        if (self.trace is None) == (self.jobs is None):
            raise ValueError("give either trace or jobs")
        if any(weight < 0 for weight in self.utility.values()) or not any(self.utility.values()):
            raise ValueError("weights of the utility must not be negative, and one of them must count")
        return self


def counts_of(section: DeploymentSection, element: tuple[int, ...]) -> tuple[int, ...]:
    """Units of each type of a candidate, a place for each type of unit; one for the policy may follow."""
    return tuple(unit.numbers()[k] for unit, k in zip(section.unit, element, strict=False))
