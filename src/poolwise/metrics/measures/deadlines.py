"""Measure of missed deadlines."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from poolwise.metrics.deadlines import late
from poolwise.metrics.measure import Measure, MeasuredRun, Metric
from poolwise.registry import register


@register("metrics", "deadlines")
@dataclass(frozen=True)
class Deadlines(Measure):
    """Percentage of the population that misses its deadline, for workloads with deadlines; jobs that never ran count."""

    metrics: ClassVar[Mapping[str, Metric]] = {"missed_deadlines_pct": Metric("jobs that miss their deadline", "%", "lower")}

    def applies(self, run: MeasuredRun) -> bool:
        """Return whether the workload has deadlines."""
        return "deadline" in run.workload.attributes

    def of(self, run: MeasuredRun) -> Mapping[str, float]:
        """Compute the percentage; NaN for an empty population. Raises InputError if the workload has no deadlines."""
        missed = late(run.workload, run.outcomes.end, run.outcomes.finished)[run.population]
        return {"missed_deadlines_pct": 100 * float(missed.mean()) if len(missed) else float("nan")}
