"""Slowdown by remote memory and by a processor slower than asked for: (1 + P^m) P^f - 1, each job by its own profile.

Source: Sefati et al., IRoP, equations (2) and (3).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from poolwise.errors import InputError
from poolwise.model import JobTable, Kind, Run, Snapshot
from poolwise.performance.ideal import FixedAtStart
from poolwise.performance.profiles import Profile, find_profile
from poolwise.registry import register


@register("models", "cpu_frequency")
@dataclass(frozen=True)
class CpuFrequency(FixedAtStart):
    """Shared nodes of different frequency with memory of their own and a pool: slowdown (1 + P^m(r)) P^f - 1.

    A job asks for "cores" and "memory", and for a frequency by its attribute "frequency" (none: any will do); its attribute
    "profile" names P^m. Nodes have the attribute "frequency".

    Parameters
    ----------
    profile
        Profile of jobs that name none.
    """

    profile: str = "kmeans"

    def slowdown(self, run: Run, view: Snapshot) -> float:
        """Slowdown at the run's node and share of remote memory."""
        machine, workload = view.machine, view.table
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
            given = machine.attributes.get("frequency")
            if given is None or not given[node] > 0:
                raise InputError(
                    f"node '{machine.owners[node]}' has no frequency", field="frequency", remedy="add it to the attributes"
                )
            pace = float(profile.pace(float(workload.attributes["frequency"][run.job]), float(given[node])))
        return (1 + float(profile.at(share))) * pace - 1


@register("models", "profiled_memory")
@dataclass(frozen=True)
class ProfiledMemory(FixedAtStart):
    """Racks of whole nodes with memory pools: a job slows down by its own curve P^m, instead of a drawn sensitivity.

    Parameters
    ----------
    profile
        Profile of jobs that name none in their attribute "profile".
    """

    profile: str = "kmeans"

    def slowdown(self, run: Run, view: Snapshot) -> float:
        """P^m at the share of the job's memory that lies outside its nodes."""
        memory = int(view.table.memory[run.job])
        remote = max(0, memory - view.machine.local_memory)
        if not remote:
            return 0.0
        return float(profile_of(view.table, run.job, self.profile).at(remote / memory))


def profile_of(workload: JobTable, job: int, default: str) -> Profile:
    """Profile of a job: its attribute "profile" where the job table has one; raises UnknownNameError."""
    column = workload.attributes.get("profile")
    return find_profile(default if column is None else str(np.asarray(column)[job]))
