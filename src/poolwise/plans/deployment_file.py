"""File format of plans of kind "deployment"."""

from __future__ import annotations

from typing import Literal

import numpy as np
from pydantic import Field, model_validator

from poolwise.files.fields import Count, Positive, Section
from poolwise.files.size_text import SizeText
from poolwise.hashing import Json
from poolwise.plans.front_search import SearchSection
from poolwise.plans.sizes import Size
from poolwise.plans.units import TableFile, UnitPlanSection


class UnitSection(Section):
    """A unit type and the numbers of units to choose from."""

    type: str = Field(description="name of a unit type, such as gpu")
    counts: list[Count] | None = Field(default=None, description="numbers to choose from, ascending")
    min: Count | None = Field(default=None, description="smallest number, instead of counts")
    max: Count | None = Field(default=None, description="largest number, with min")
    step: Positive = Field(default=1, description="step between numbers, with min and max")

    @model_validator(mode="after")
    def _one_range(self) -> UnitSection:
        if (self.counts is None) != (self.min is not None and self.max is not None) or (
            self.counts is not None and (self.min is not None or self.max is not None)
        ):
            raise ValueError("give either counts, or min and max")
        if not self.numbers() or self.numbers() != sorted(set(self.numbers())):
            raise ValueError("the numbers must ascend without duplicates")
        return self

    def numbers(self) -> list[int]:
        """Return all numbers to choose from."""
        if self.counts is not None:
            return self.counts
        assert self.min is not None and self.max is not None  # checked above
        return list(range(self.min, self.max + 1, self.step))

    def size(self, price: float) -> Size:
        """Return the numbers as a size of the machine."""
        numbers, words = self.numbers(), SizeText(f"{self.type} units", counted=True, one=self.type)
        return Size(f"machine.units.{self.type}", tuple(numbers), np.array(numbers), (price, price, price), "", words)


class JobSizeSection(Section):
    """A share of the jobs whose number of tasks is uniform from `min` to `max`."""

    share: float = Field(gt=0, le=1)
    min: Positive
    max: Positive

    @model_validator(mode="after")
    def _ascending(self) -> JobSizeSection:
        if self.max < self.min:
            raise ValueError("max must not be less than min")
        return self


class JobsSection(Section):
    """Generated jobs, instead of a trace."""

    count: Positive = Field(description="number of jobs")
    size: list[JobSizeSection] = Field(min_length=1, description="numbers of tasks per job, by share of the jobs")
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


class DeploymentSection(UnitPlanSection):
    """The units to buy for a workload."""

    kind: Literal["deployment"]
    prices: TableFile = Field(description="price list ($ per unit); a path relative to the plan")
    power: TableFile = Field(description="power table; a path relative to the plan")
    jobs: JobsSection | None = Field(default=None, description="generated jobs for each seed, instead of a trace")
    inter_arrival: str = Field(default="0", description='time between jobs, such as "7us" or "exponential(7us)"')
    unit: list[UnitSection] = Field(min_length=1, description="unit types to buy")
    units: Positive | None = Field(
        default=None, description="total number of units; by default, any total that the counts allow"
    )
    racks: Positive = Field(default=1, description="number of racks over which units of each type are distributed in turn")
    budget: float | None = Field(default=None, gt=0, description="maximum purchase cost, $")
    target: LatencyTargetSection | None = None
    utility: dict[Literal["latency_us", "purchase_cost", "energy_j"], float] = Field(
        default={"purchase_cost": 1.0}, description="weights; the answer minimizes the weighted sum"
    )
    search: SearchSection = SearchSection()

    @model_validator(mode="after")
    def _one_workload(self) -> DeploymentSection:
        if (self.trace is None) == (self.jobs is None):
            raise ValueError("give either trace or jobs")
        if any(weight < 0 for weight in self.utility.values()) or not any(self.utility.values()):
            raise ValueError("utility weights must be nonnegative, and at least one must be positive")
        return self

    def workload(self) -> tuple[Json, str]:
        """Return the section [workload] of the study, and the path of its number of jobs."""
        common = {"inter_arrival": self.inter_arrival, **self.files("types")}
        if self.jobs is None:
            options = {"trace": str(self.files("trace")["trace"]), "format": "vinesim", "options": common}
            return {**options, "clock": "trace"}, "workload.options.jobs"
        drawn = {
            "jobs": self.jobs.count,
            "operations": self.jobs.operations,
            "size": [part.model_dump() for part in self.jobs.size],
        }
        kind = [{"type": name, "share": share} for name, share in self.jobs.types.items()]
        return {"generator": "unit_jobs", "settings": {**drawn, "kind": kind, **common}}, "workload.settings.jobs"
