"""Search files: which orders may be chosen, what they are measured by, and on which workloads."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from poolwise.files.fields import Count, Positive, Section, Time
from poolwise.files.study import OrFile, PerformanceSection, SchedulerSection, SeedsSection, WorkloadSection
from poolwise.search.objectives import FareName
from poolwise.units import SECOND


class RangeSection(Section):
    """What a setting may be: a number between two, or one of some values."""

    least: float | None = None
    most: float | None = None
    log: bool = Field(default=False, description="whether numbers are tried evenly by their logarithm")
    values: list[Any] = Field(default=[], description="instead: the values that are tried")

    @model_validator(mode="after")
    def _one_of_both(self) -> RangeSection:
        bounded = self.least is not None and self.most is not None
        if bounded == bool(self.values) or (self.least is None) != (self.most is None):
            raise ValueError("give least and most, or values")
        if self.least is not None and self.most is not None and not self.least < self.most:
            raise ValueError("least must be less than most")
        if self.log and not (self.least is not None and self.least > 0):
            raise ValueError("log needs a least above 0")
        return self


class ObjectivesSection(Section):
    """What candidates are measured by; every number is a ratio to the baseline, a geometric mean over the workloads."""

    baseline: str = Field(default="catalog:fm-easy", description="a scheduler file that candidates are compared with")
    minimize: list[FareName] = Field(min_length=1, description="what is to be small; several give a front")
    at_most: dict[FareName, float] = Field(default={}, description="at most so many times the baseline's, on all splits")
    beside: list[str] = Field(default=[], description="scheduler files that are measured too, to compare with")
    tau: Annotated[Time, Field(description="least runtime in bounded slowdown")] = 10 * SECOND


class WorkloadsSection(Section):
    """Workloads of a split: one for each seed."""

    machine: str | dict[str, Any]
    workload: WorkloadSection
    performance: PerformanceSection = PerformanceSection()
    warm_up: Count = Field(default=0, description="first jobs, not measured, under FCFS without backfilling")
    seeds: SeedsSection = SeedsSection()


class SplitsSection(Section):
    """Workloads to search on, to choose among what was found, and to open once in the end."""

    train: list[WorkloadsSection] = Field(min_length=1)
    validation: list[WorkloadsSection] = Field(min_length=1)
    test: list[WorkloadsSection] = Field(min_length=1)


class BudgetSection(Section):
    """How much is tried, and how."""

    candidates: Positive = Field(default=200, description="candidates that are tried on the training workloads")
    batch: Positive = Field(default=20, description="candidates of a generation, which are tried side by side")
    sampler: Literal["nsga2", "tpe", "random"] = Field(default="nsga2", description="how the next candidates are chosen")
    seed: Count = 0
    validated: Positive = Field(default=10, description="the best candidates, which are tried on the validation workloads")


class SearchFile(Section):
    """A search for a queue order."""

    version: Annotated[Literal[1], Field(description="version of this format")]
    title: str = ""
    scheduler: Annotated[SchedulerSection, OrFile()] = Field(description="the family: what [space] changes settings of")
    space: dict[str, RangeSection] = Field(min_length=1, description="dotted path into the scheduler -> what it may be")
    objectives: ObjectivesSection
    splits: SplitsSection
    budget: BudgetSection = BudgetSection()
