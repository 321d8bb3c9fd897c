"""Model of jobs with local or remote devices: times from profiles, and the effects of co-located runs and of link load.

Source: Amaral et al., DRMaestro, "Trace-driven simulation implementation"; flow-placement spec, "Simulation".
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache, partial

import numpy as np

from poolwise.arrays import IntArray
from poolwise.interfaces import PerformanceModel
from poolwise.model import Kind, Machine, Placement, Run, Snapshot
from poolwise.model.job_table import JobTable
from poolwise.model.table_columns import Column
from poolwise.performance.device_profiles import DeviceProfile, read_device_profiles
from poolwise.performance.link_load import UsedOwners, link_loads, sites
from poolwise.quantities import to_ns
from poolwise.registry import InputFile, register


@register("models", "device_network")
@dataclass(frozen=True)
class DeviceNetwork(PerformanceModel):
    """Slowdown relative to an exclusive run with local devices, whose duration is drawn from the local times of a profile.

    1 + slowdown is the co-location factor. If a device is remote, it is multiplied by remote_s / local_s * (1 + sensitivity *
    load), where the load is that of other runs on the more loaded of the two links on the path. The co-location factor is 1
    plus the profile's sensitivities times the fractions in use of the node's other cores and of the device nodes' other
    devices. A job's kind names its profile; jobs of kinds without a profile always take their duration.

    Parameters
    ----------
    profiles
        "catalog:NAME" or a CSV file.
    start_s
        Seconds before a job starts to work.
    server_s
        Additional seconds for each location that serves remote devices to the job.
    """

    profiles: InputFile = "catalog:rodinia"
    start_s: float = 0.0
    server_s: float = 0.0

    def setup(self, run: Run, snapshot: Snapshot) -> int:
        """Return the startup latency (ns), including that of a server at each location that serves remote devices."""
        return to_ns(self.start_s + self.server_s * sites(run.placement, snapshot.machine).servers)

    def slowdown(self, run: Run, snapshot: Snapshot) -> float:
        """Return the slowdown of the slowest task of a run."""
        profile = _profile(self.profiles, snapshot.table, run.job)
        if profile is None:
            return 0.0
        site = sites(run.placement, snapshot.machine)
        stretch = 1.0 + profile.cpu_sensitivity * _cores(run.placement, site, snapshot)
        stretch += profile.device_sensitivity * _devices(site, snapshot)
        if site.remote:
            stretch *= profile.remote_s / profile.local_s * (1.0 + profile.sensitivity * _load(run, site, snapshot))
        return stretch - 1.0

    def touches(self, placement: Placement, snapshot: Snapshot) -> tuple[int, ...]:
        """Return the nodes of the tasks and of their devices, and the links between these nodes if they differ."""
        site = sites(placement, snapshot.machine)
        return tuple(sorted({*site.nodes, *site.device_nodes, *site.links}))


def _profile(reference: str, table: JobTable, job: int) -> DeviceProfile | None:
    """Return the profile of a job, None without one. Cached, since every speed change needs it."""
    profile: DeviceProfile | None = table.derived(("device profile", reference), partial(_profiles, reference))[job]
    return profile


def _profiles(reference: str, table: JobTable, rows: slice) -> Column:
    """Return the profiles of some jobs, (k,); None for jobs without one."""
    profiles, kinds = read_device_profiles(reference), table.attributes.get("kind")
    values = np.full(len(table.id[rows]), None, dtype=np.object_)
    if kinds is not None:
        values[:] = [profiles.get(str(kind)) for kind in kinds[rows].tolist()]
    return values


def _load(run: Run, site: UsedOwners, snapshot: Snapshot) -> float:
    """Return the load that other runs cause on the most loaded link on the path to any remote device."""
    machine = snapshot.machine
    if "bandwidth" not in machine.resources:
        return 0.0
    requests = snapshot.table.request("bandwidth")
    used = np.zeros(len(site.links))
    for k, link in enumerate(site.links):
        for number in snapshot.occupants(link):
            other = snapshot.run(number)
            if other.id != run.id:
                there = sites(other.placement, machine)
                if link in there.links:
                    used[k] += int(requests[other.job]) * there.shares[there.links.index(link)]
    capacity = snapshot.capacity[list(site.links), machine.resource("bandwidth")]
    return float(link_loads(used, capacity.astype(np.float64)).max(initial=0.0))


def _cores(placement: Placement, site: UsedOwners, snapshot: Snapshot) -> float:
    """Return the fraction of cores that other runs use on the run's node with the highest such fraction."""
    if "cores" not in snapshot.machine.resources:
        return 0.0
    column, most = snapshot.machine.resource("cores"), 0.0
    for node in site.nodes:
        own = int(placement.amount[(placement.owner == node) & (placement.resource == column)].sum())
        capacity = int(snapshot.capacity[node, column])
        most = max(most, (capacity - int(snapshot.free[node, column]) - own) / max(capacity, 1))
    return most


def _devices(site: UsedOwners, snapshot: Snapshot) -> float:
    """Return the largest fraction of devices in use by other runs, among the nodes of the run's devices."""
    if "devices" not in snapshot.machine.resources:
        return 0.0
    column, most = snapshot.machine.resource("devices"), 0.0
    for node in site.device_nodes:
        there = _attached(snapshot.machine)[node]
        own = sum(device in site.devices for device in there.tolist())
        taken = int((snapshot.capacity[there, column] - snapshot.free[there, column]).sum())
        most = max(most, (taken - own) / len(there))
    return most


@lru_cache(maxsize=8)
def _attached(machine: Machine) -> dict[int, IntArray]:
    """Return node -> devices attached to it."""
    owners = machine.of_kind(Kind.DEVICE)
    homes = machine.home[owners]
    return {int(home): owners[homes == home] for home in np.unique(homes).tolist() if home >= 0}
