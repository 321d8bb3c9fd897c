"""Prometheus metrics of a memory agent, in base units: seconds, bytes and shares."""

from __future__ import annotations

from collections.abc import Iterable

from prometheus_client import CollectorRegistry, Counter, Gauge

from poolwise.live.memory_agent.workload import TrackedWorkload


class MemoryAgentMetrics:
    """Shows what a memory agent sees and does, in a registry of its own.

    Attributes
    ----------
    registry : what `endpoints.serving` shows
    """

    def __init__(self) -> None:
        self.registry = at = CollectorRegistry()
        self._memory = Gauge("poolwise_memory_agent_memory_bytes", "Memory that may be given out", registry=at)
        self._of_each = {
            name: Gauge(f"poolwise_memory_agent_{name}", words, ["workload"], registry=at)
            for name, words in {
                "limit_bytes": "Limit of a workload's local memory; infinite without one",
                "local_bytes": "Local memory that a workload holds, without file pages that nobody asked for twice",
                "swapped_bytes": "Memory of a workload that lies in swap",
                "working_set_bytes": "Most local memory that a workload has held at once in this phase",
                "slowdown_ratio": "Estimated slowdown of a workload, 0 for none",
                "tolerance_ratio": "Slowdown that a workload accepts",
                "page_in_seconds": "Stall for each page-in, in the last window that had any",
            }.items()
        }
        self._looks = Counter("poolwise_memory_agent_looks", "Looks at a workload", ["workload", "within"], registry=at)
        self.moves = Counter("poolwise_memory_agent_moves", "Limits set", ["workload"], registry=at)
        self.failures = Counter("poolwise_memory_agent_failures", "What failed, by what it was", ["work"], registry=at)
        self._shown: set[str] = set()

    def update(self, workloads: Iterable[TrackedWorkload], memory: int) -> None:
        """Show what a look found; what is gone is not shown any more."""
        self._memory.set(memory)
        there = set()
        for one in workloads:
            name = one.section.name
            there.add(name)
            values = {
                "limit_bytes": float("inf") if one.limit is None else one.limit,
                "local_bytes": one.held.local,
                "swapped_bytes": one.held.swapped,
                "working_set_bytes": one.working_set,
                "slowdown_ratio": one.slowdown,
                "tolerance_ratio": one.section.tolerance,
            }
            if one.estimate is not None and one.estimate.page_in_s == one.estimate.page_in_s:
                values["page_in_seconds"] = one.estimate.page_in_s
            for key, value in values.items():
                self._of_each[key].labels(name).set(value)
            within = "yes" if one.observed().beyond <= 1 else "no"
            self._looks.labels(name, within).inc()
        for name in self._shown - there:
            for gauge in self._of_each.values():
                if (name,) in gauge._metrics:
                    gauge.remove(name)
        self._shown = there
