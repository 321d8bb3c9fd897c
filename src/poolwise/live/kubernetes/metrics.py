"""Prometheus metrics that exist only on Kubernetes."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge


class KubernetesMetrics:
    """Metrics of a cluster, registered once a registry exists."""

    def __init__(self) -> None:
        tainted = "Devices in use by claims that do not tolerate a NoExecute taint of the device"
        self.tainted_devices_in_use = Gauge("poolwise_tainted_devices_in_use", tainted, registry=None)
        infeasible = "Waiting jobs that no node could run even without other pods; they are not in the queue"
        self.infeasible_jobs = Gauge("poolwise_infeasible_jobs", infeasible, registry=None)
        twice = "Devices that were found in two claims"
        self.double_allocations = Counter("poolwise_double_allocations", twice, registry=None)

    def register(self, registry: CollectorRegistry) -> None:
        """Export the metrics through a registry."""
        for metric in vars(self).values():
            registry.register(metric)
