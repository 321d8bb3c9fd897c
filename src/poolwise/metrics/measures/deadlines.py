"""Deadlines."""

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
    """Percent of the population that misses its deadline; a job that never ran does. For workloads that have deadlines."""

    metrics: ClassVar[Mapping[str, Metric]] = {"missed_deadlines_pct": Metric("missed deadlines", "%", "lower")}

    def applies(self, run: MeasuredRun) -> bool:
        """Whether the workload has deadlines."""
        return "deadline" in run.workload.attributes

    def of(self, run: MeasuredRun) -> Mapping[str, float]:
        """Compute it; NaN for an empty population. Raises InputError where the workload has no deadlines."""
        missed = late(run.workload, run.outcomes.end, run.outcomes.finished)[run.population]
        return {"missed_deadlines_pct": 100 * float(missed.mean()) if len(missed) else float("nan")}
