"""Models with measured profiles: the slowdown of each job due to remote memory and CPU frequency, (1 + P^m) P^f - 1.

Source: Sefati et al., IRoP, equations (2) and (3).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from poolwise.errors import InputError
from poolwise.model import JobTable, Kind, Run, Snapshot
from poolwise.performance.ideal import SimpleModel
from poolwise.performance.profiles import Profile, find_profile
from poolwise.registry import register


@register("models", "cpu_frequency")
@dataclass(frozen=True)
class CpuFrequency(SimpleModel):
    """Slowdown (1 + P^m(r)) P^f - 1 on shared nodes of different frequencies with local memory and a pool.

    A job requests "cores" and "memory", and a frequency by its attribute "frequency" (without it, any node is equally fast).
    Its attribute "profile" names P^m. Nodes have the attribute "frequency".

    Parameters
    ----------
    profile
        Profile of jobs that name none.
    """

    profile: str = "kmeans"

    def slowdown(self, run: Run, snapshot: Snapshot) -> float:
        """Return the slowdown at the run's node and fraction of remote memory."""
        machine, workload = snapshot.machine, snapshot.table
        profile = profile_of(workload, run.job, self.profile)
        local = remote = 0
        node = -1
        memory = machine.resources.index("memory") if "memory" in machine.resources else -1
        for _, owner, resource, amount in run.placement.rows():
            if machine.kind[owner] == Kind.NODE:
                node = owner
            if resource == memory:
                local, remote = (local + amount, remote) if machine.kind[owner] == Kind.NODE else (local, remote + amount)
        share = remote / (local + remote) if local + remote else 0.0
        pace = 1.0
        if "frequency" in workload.attributes and node >= 0:
            frequency = machine.attributes.get("frequency")
            if frequency is None or not frequency[node] > 0:
                raise InputError(
                    f"node '{machine.owners[node]}' has no frequency", field="frequency", remedy="add it to the attributes"
                )
            pace = float(profile.pace(float(workload.attributes["frequency"][run.job]), float(frequency[node])))
        return (1 + float(profile.at(share))) * pace - 1


@register("models", "profiled_memory")
@dataclass(frozen=True)
class ProfiledMemory(SimpleModel):
    """Slowdown P^m by each job's own profile, instead of a random sensitivity, on racks of whole nodes with memory pools.

    Parameters
    ----------
    profile
        Profile of jobs without one in their attribute "profile".
    """

    profile: str = "kmeans"

    def slowdown(self, run: Run, snapshot: Snapshot) -> float:
        """Return P^m at the fraction of the job's memory that is outside its nodes, on the smallest of them."""
        memory = int(snapshot.table.memory[run.job])
        layout = snapshot.machine.racks
        local = (
            snapshot.machine.local_memory if layout.uniform else int(layout.local[[*layout.node_counts(run.placement)]].min())
        )
        remote = max(0, memory - local)
        if not remote:
            return 0.0
        return float(profile_of(snapshot.table, run.job, self.profile).at(remote / memory))


def profile_of(workload: JobTable, job: int, default: str) -> Profile:
    """Return the profile that a job's attribute "profile" names, else `default`. Raises UnknownNameError."""
    column = workload.attributes.get("profile")
    return find_profile(default if column is None else str(np.asarray(column)[job]))
