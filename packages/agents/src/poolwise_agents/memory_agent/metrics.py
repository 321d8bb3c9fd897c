"""Prometheus metrics of a memory agent in base units: seconds, bytes and ratios."""

from __future__ import annotations

from collections.abc import Iterable

from prometheus_client import CollectorRegistry, Counter, Gauge

from poolwise_agents.memory_agent.workload import TrackedWorkload


class MemoryAgentMetrics:
    """Metrics of one memory agent, in their own registry."""

    def __init__(self) -> None:
        self.registry = registry = CollectorRegistry()
        self._memory = Gauge("poolwise_memory_agent_memory_bytes", "Local memory to distribute", registry=registry)
        self._gauges = {
            name: Gauge(f"poolwise_memory_agent_{name}", words, ["workload"], registry=registry)
            for name, words in {
                "limit_bytes": "Memory limit of a workload; infinite if it has none",
                "local_bytes": "Local memory of a workload, without file pages used only once",
                "swapped_bytes": "Swapped memory of a workload",
                "working_set_bytes": "Peak local memory of a workload in its current phase",
                "slowdown_ratio": "Estimated slowdown of a workload, 0 for none",
                "tolerance_ratio": "Slowdown that a workload accepts",
                "page_in_seconds": "Stall per page-in, in the last window with page-ins",
            }.items()
        }
        self._looks = Counter("poolwise_memory_agent_looks", "Samples of a workload", ["workload", "within"], registry=registry)
        self.moves = Counter("poolwise_memory_agent_moves", "Limits set", ["workload"], registry=registry)
        self.failures = Counter("poolwise_memory_agent_failures", "Failures, by operation", ["work"], registry=registry)
        self._exported: set[str] = set()

    def update(self, workloads: Iterable[TrackedWorkload], memory: int) -> None:
        """Export the state of all workloads, and remove the metrics of those that are gone."""
        self._memory.set(memory)
        present = set()
        for workload in workloads:
            name = workload.section.name
            present.add(name)
            values = {
                "limit_bytes": float("inf") if workload.limit is None else workload.limit,
                "local_bytes": workload.held.local,
                "swapped_bytes": workload.held.swapped,
                "working_set_bytes": workload.working_set,
                "slowdown_ratio": workload.slowdown,
                "tolerance_ratio": workload.section.tolerance,
            }
            if workload.estimate is not None and workload.estimate.page_in_s == workload.estimate.page_in_s:
                values["page_in_seconds"] = workload.estimate.page_in_s
            for key, value in values.items():
                self._gauges[key].labels(name).set(value)
            within = "yes" if workload.observed().tolerance_use <= 1 else "no"
            self._looks.labels(name, within).inc()
        for name in self._exported - present:
            for gauge in self._gauges.values():
                if (name,) in gauge._metrics:
                    gauge.remove(name)
        self._exported = present
