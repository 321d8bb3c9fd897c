"""Throughput, utilisation and makespan."""

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
    """How much the jobs ask of the machine; above 1 it is overloaded. For machines whose nodes are taken whole."""

    metrics: ClassVar[Mapping[str, Metric]] = {
        "offered_load": Metric("load offered while jobs arrive, overloaded above 1", "", "neither")
    }

    def applies(self, run: MeasuredRun) -> bool:
        """Whether jobs take whole nodes."""
        return run.outcomes.whole_nodes

    def of(self, run: MeasuredRun) -> Mapping[str, float]:
        """Compute it; NaN where all jobs are submitted at once."""
        return {"offered_load": throughput.offered_load(run.outcomes)}


@register("metrics", "throughput")
@dataclass(frozen=True)
class Throughput(Measure):
    """How much the machine gets done: throughput, node utilisation, makespan."""

    metrics: ClassVar[Mapping[str, Metric]] = {
        "throughput_per_100s": Metric("throughput", "jobs / 100 s", "higher"),
        "utilization": Metric("node utilisation", "fraction", "higher"),
        "makespan_s": Metric("first submission to last end", "s", "lower"),
    }

    def of(self, run: MeasuredRun) -> Mapping[str, float]:
        """Compute them."""
        return {
            "throughput_per_100s": throughput.throughput_per_100s(run.outcomes, run.window),
            "utilization": throughput.utilization(run.outcomes, run.window),
            "makespan_s": throughput.makespan_s(run.outcomes),
        }
