"""Measures of offered load, throughput, utilization and makespan."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from poolwise.metrics import throughput
from poolwise.metrics.measure import Measure, MeasuredRun, Metric
from poolwise.registry import register


@register("metrics", "load")
@dataclass(frozen=True)
class OfferedLoad(Measure):
    """Load that jobs offer to the machine, for machines whose nodes are taken whole; above 1 the machine is overloaded."""

    metrics: ClassVar[Mapping[str, Metric]] = {
        "offered_load": Metric("offered load while jobs arrive (overloaded above 1)", "", "neither")
    }

    def applies(self, run: MeasuredRun) -> bool:
        """Return whether jobs take whole nodes."""
        return run.outcomes.whole_nodes

    def of(self, run: MeasuredRun) -> Mapping[str, float]:
        """Compute the load; NaN if all jobs are submitted at once."""
        return {"offered_load": throughput.offered_load(run.outcomes)}


@register("metrics", "throughput")
@dataclass(frozen=True)
class Throughput(Measure):
    """Throughput, node utilization and makespan of a run."""

    metrics: ClassVar[Mapping[str, Metric]] = {
        "throughput_per_100s": Metric("throughput", "jobs / 100 s", "higher"),
        "utilization": Metric("node utilization", "fraction", "higher"),
        "makespan_s": Metric("makespan (first submission to last end)", "s", "lower"),
    }

    def of(self, run: MeasuredRun) -> Mapping[str, float]:
        """Compute the metrics."""
        return {
            "throughput_per_100s": throughput.throughput_per_100s(run.outcomes, run.window),
            "utilization": throughput.utilization(run.outcomes, run.window),
            "makespan_s": throughput.makespan_s(run.outcomes),
        }
