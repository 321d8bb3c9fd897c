"""Measures of memory use over time: pool memory held and needed, and runs affected by lack of memory."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from poolwise.metrics import memory_use
from poolwise.metrics.measure import Measure, MeasuredRun, Metric
from poolwise.registry import register


@register("metrics", "memory_use")
@dataclass(frozen=True)
class MemoryUseMeasure(Measure):
    """Pool memory held and needed, and runs that ran out of memory, for workloads with memory use over time."""

    metrics: ClassVar[Mapping[str, Metric]] = {
        "pool_memory_held": Metric("share of pool memory that runs hold", "fraction", "neither"),
        "pool_memory_needed": Metric("share of pool memory that runs need beyond node memory", "fraction", "higher"),
        "resizes": Metric("resizes of memory allocations", "", "neither"),
        "runs_out_of_memory": Metric("runs terminated for lack of memory", "", "lower"),
        "lost_node_hours": Metric("work lost in runs terminated for lack of memory", "node hours", "lower"),
        "stalled_node_hours": Metric("time that runs stalled for lack of memory", "node hours", "lower"),
    }

    def applies(self, run: MeasuredRun) -> bool:
        """Return whether the workload has memory use over time."""
        return run.schedule.workload.memory_use is not None

    def of(self, run: MeasuredRun) -> Mapping[str, float]:
        """Compute the metrics: terminations and stalls over the whole run, memory held and needed over the window."""
        held, needed = memory_use.pool_memory(run.schedule, run.window)
        return {
            "pool_memory_held": held,
            "pool_memory_needed": needed,
            "resizes": float(len(run.schedule.resizes)),
            "runs_out_of_memory": float(memory_use.ran_out_of_memory(run.schedule).sum()),
            "lost_node_hours": memory_use.lost_node_hours(run.schedule),
            "stalled_node_hours": memory_use.stalled_node_hours(run.schedule),
        }
