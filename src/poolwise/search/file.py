"""Format of search files: space of orders, objectives, and workload splits."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from poolwise.files.fields import Count, Positive, Section, Time
from poolwise.files.study import OrFile, PerformanceSection, SchedulerSection, SeedsSection, WorkloadSection
from poolwise.quantities import SECOND
from poolwise.search.objectives import ObjectiveName


class RangeSection(Section):
    """Range of a setting: a number between two bounds, or one of several values."""

    min: float | None = None
    max: float | None = None
    log: bool = Field(default=False, description="sample numbers uniformly on a logarithmic scale")
    values: list[Any] = Field(default=[], description="values to choose from, instead of min and max")

    @model_validator(mode="after")
    def _one_of_both(self) -> RangeSection:
        bounded = self.min is not None and self.max is not None
        if bounded == bool(self.values) or (self.min is None) != (self.max is None):
            raise ValueError("set min and max, or values")
        if self.min is not None and self.max is not None and not self.min < self.max:
            raise ValueError("min must be less than max")
        if self.log and not (self.min is not None and self.min > 0):
            raise ValueError("log requires min > 0")
        return self


class ObjectivesSection(Section):
    """Objectives of the search: ratios to the baseline, geometric means over the workloads."""

    baseline: str = Field(default="catalog:fm-easy", description="scheduler file to compare candidates with")
    minimize: list[ObjectiveName] = Field(min_length=1, description="objectives to minimize; several give a Pareto front")
    at_most: dict[ObjectiveName, float] = Field(default={}, description="maximum ratio to the baseline, on all splits")
    beside: list[str] = Field(default=[], description="further scheduler files to evaluate for comparison")
    tau: Annotated[Time, Field(description="minimum run time in the bounded slowdown")] = 10 * SECOND


class WorkloadsSection(Section):
    """Workloads of a split, one per seed."""

    machine: str | dict[str, Any]
    workload: WorkloadSection
    performance: PerformanceSection = PerformanceSection()
    warm_up: Count = Field(default=0, description="initial jobs that run under FCFS without backfilling and are not measured")
    seeds: SeedsSection = SeedsSection()


class SplitsSection(Section):
    """Workloads for the search (train), for the choice of the order (validation), and for a single final use (test)."""

    train: list[WorkloadsSection] = Field(min_length=1)
    validation: list[WorkloadsSection] = Field(min_length=1)
    test: list[WorkloadsSection] = Field(min_length=1)


class BudgetSection(Section):
    """Size and method of the search."""

    candidates: Positive = Field(default=200, description="number of candidates to evaluate on the training workloads")
    batch: Positive = Field(default=20, description="number of candidates per generation, evaluated in parallel")
    sampler: Literal["nsga2", "tpe", "random"] = Field(default="nsga2", description="method that proposes candidates")
    seed: Count = 0
    validated: Positive = Field(default=10, description="number of best candidates to evaluate on the validation workloads")


class SearchFile(Section):
    """Search for a queue order."""

    version: Annotated[Literal[1], Field(description="version of this format")]
    title: str = ""
    scheduler: Annotated[SchedulerSection, OrFile()] = Field(description="scheduler whose settings [space] varies")
    space: dict[str, RangeSection] = Field(min_length=1, description="dotted path into the scheduler -> range of the setting")
    objectives: ObjectivesSection
    splits: SplitsSection
    budget: BudgetSection = BudgetSection()
