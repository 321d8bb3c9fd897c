"""Bandwidth-sharing model: the bandwidth of a device is split evenly among the runs that share it.

Source: NVMe-composition spec, "Workloads" (fio: base time * sharers / devices).
"""

from __future__ import annotations

from dataclasses import dataclass

from poolwise.model import Kind, Placement, Run, Snapshot
from poolwise.performance.ideal import SimpleModel
from poolwise.registry import register


@register("models", "bandwidth_sharing")
@dataclass(frozen=True)
class BandwidthSharing(SimpleModel):
    """Slowdown demand / share - 1; a run gets an equal share of each of its devices, and the shares of composed devices add up.

    A run requests `bandwidth` (MB/s per task) at reference speed. With a smaller share, its time grows by demand / share. With
    a larger one, it is faster only up to the job table's column "peak_bandwidth" (MB/s per task), if there is one. Runs that
    request no bandwidth neither slow down nor count as sharers.
    """

    def slowdown(self, run: Run, snapshot: Snapshot) -> float:
        """Return demand / min(share, peak) - 1."""
        job, tasks = snapshot.table.job(run.job), len(run.tasks)
        demand = job.request("bandwidth") * tasks
        devices = self.touches(run.placement, snapshot)
        if not demand or not devices:
            return 0.0
        column, requests = snapshot.machine.resource("bandwidth"), snapshot.table.request("bandwidth")
        share = 0.0
        for device in devices:
            sharers = sum(1 for number in snapshot.occupants(device) if requests[snapshot.run(number).job] > 0)
            share += float(snapshot.capacity[device, column]) / sharers
        has_peak = "peak_bandwidth" in snapshot.table.attributes
        peak = job.attribute("peak_bandwidth") * tasks if has_peak else demand
        return demand / min(share, peak) - 1.0 if share > 0 else float("inf")

    def touches(self, placement: Placement, snapshot: Snapshot) -> tuple[int, ...]:
        """Return the devices of the placement that have bandwidth."""
        machine = snapshot.machine
        if "bandwidth" not in machine.resources:
            return ()
        column = machine.resource("bandwidth")
        return tuple(o for o in placement.owners() if machine.kind[o] == Kind.DEVICE and machine.capacity[o, column] > 0)
