"""Prometheus metrics of a node agent in base units: seconds, bytes and ratios."""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Iterable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from poolwise.live.metrics import SHORT
from poolwise.live.node_agent.records import ClaimRecord, ClaimState


class NodeAgentMetrics:
    """Metrics of one node agent, in their own registry.

    Attributes
    ----------
    registry : registry that `endpoints.serving` exposes
    """

    def __init__(self) -> None:
        self.registry = registry = CollectorRegistry()
        self._claims = Gauge("poolwise_node_claims", "Claims with devices on this node, by state", ["state"], registry=registry)
        self.seconds = Histogram(
            "poolwise_node_work_seconds", "Duration of operations on claims", ["work"], buckets=SHORT, registry=registry
        )
        self.failures = Counter("poolwise_node_failures", "Failures, by operation", ["work"], registry=registry)
        self.writes = Counter("poolwise_node_slice_writes", "Slices written or deleted", registry=registry)
        self.registered = Gauge("poolwise_node_registered", "1 once the kubelet has registered the plugin", registry=registry)
        self.link_load = Gauge("poolwise_node_link_load_ratio", "Measured load of a link, 0 to 1", ["link"], registry=registry)
        self.link_bytes = Gauge(
            "poolwise_node_link_bytes_per_second", "Measured traffic of a link", ["link"], registry=registry
        )

    def update(self, records: Iterable[ClaimRecord]) -> None:
        """Count claims by state."""
        count = Tally(record.state for record in records)
        for state in ClaimState:
            self._claims.labels(state.value).set(count[state])
