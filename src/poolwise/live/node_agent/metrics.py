"""Prometheus metrics of a node agent, in base units: seconds, bytes and shares."""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Iterable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from poolwise.live.metrics import SHORT
from poolwise.live.node_agent.records import ClaimRecord, ClaimState


class NodeAgentMetrics:
    """Counts what a node agent does, in a registry of its own.

    Attributes
    ----------
    registry : what `endpoints.serving` shows
    """

    def __init__(self) -> None:
        self.registry = at = CollectorRegistry()
        self._claims = Gauge(
            "poolwise_node_claims", "Claims with devices on this node, by how far they are", ["state"], registry=at
        )
        self.seconds = Histogram(
            "poolwise_node_work_seconds", "Length of attaching, preparing and releasing", ["work"], buckets=SHORT, registry=at
        )
        self.failures = Counter("poolwise_node_failures", "What failed, by what it was", ["work"], registry=at)
        self.writes = Counter("poolwise_node_slice_writes", "Slices written or deleted", registry=at)
        self.registered = Gauge("poolwise_node_registered", "1 after the kubelet took this plugin", registry=at)
        self.link_load = Gauge("poolwise_node_link_load_ratio", "Measured load of a link, 0 to 1", ["link"], registry=at)
        self.link_bytes = Gauge("poolwise_node_link_bytes_per_second", "Measured traffic of a link", ["link"], registry=at)

    def update(self, records: Iterable[ClaimRecord]) -> None:
        """Count what is on record."""
        count = Tally(record.state for record in records)
        for state in ClaimState:
            self._claims.labels(state.value).set(count[state])
