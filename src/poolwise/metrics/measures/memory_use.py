"""Memory over time: what is held and needed of pools, and what happened where it ran out."""

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
    """Pool memory that is held and needed, and runs that ran out of it. For workloads that say what memory jobs use."""

    metrics: ClassVar[Mapping[str, Metric]] = {
        "pool_memory_held": Metric("pool memory that runs hold", "fraction", "neither"),
        "pool_memory_needed": Metric("pool memory that runs need, beside that of their nodes", "fraction", "higher"),
        "resizes": Metric("changes of what a run holds", "", "neither"),
        "runs_out_of_memory": Metric("runs that were ended for want of memory", "", "lower"),
        "lost_node_hours": Metric("work of runs that were ended for want of memory", "node hours", "lower"),
        "stalled_node_hours": Metric("time for which runs stood still for want of memory", "node hours", "lower"),
    }

    def applies(self, run: MeasuredRun) -> bool:
        """Whether the workload says what jobs use."""
        return run.schedule.workload.memory_use is not None

    def of(self, run: MeasuredRun) -> Mapping[str, float]:
        """Compute them; what ran out is counted over the whole run, what is held and needed over the window."""
        held, needed = memory_use.pool_memory(run.schedule, run.window)
        return {
            "pool_memory_held": held,
            "pool_memory_needed": needed,
            "resizes": float(len(run.schedule.resizes)),
            "runs_out_of_memory": float(memory_use.ran_out(run.schedule).sum()),
            "lost_node_hours": memory_use.lost_node_hours(run.schedule),
            "stalled_node_hours": memory_use.stalled_node_hours(run.schedule),
        }
