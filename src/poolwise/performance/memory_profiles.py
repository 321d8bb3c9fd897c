"""Remote-memory model with measured profiles per job, instead of randomly drawn kernels.

Source: memory-pool spec, "Job" (a profile of the job's own); profiles as in Sefati et al., IRoP, equation (2).
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from poolwise.errors import InputError, UnknownNameError
from poolwise.model import JobTable, Machine, Run, Snapshot
from poolwise.model.table_columns import Kinds
from poolwise.performance.csv_table import read_once
from poolwise.performance.profiles import Profile, read_profiles, shipped_profiles
from poolwise.performance.remote_memory import NEAR_NS, RemoteMemory
from poolwise.registry import InputFile, register
from poolwise.short_repr import short_repr


@register("models", "memory_profiles")
@dataclass(frozen=True)
class MemoryProfiles(RemoteMemory):
    """Slowdown due to remote memory, by measured profiles that the job table names.

    Slowdown = P(remote / memory) at the latency of the measurement, scaled linearly to other latencies. A job without a profile
    behaves as in `RemoteMemory`, with its random sensitivity; a warning reports the number of such jobs. The other parameters
    are those of `RemoteMemory`. With `expect = "mean"`, the estimate for a job is the mean slowdown, at its own fraction of
    remote memory, over the jobs that have a profile.

    Parameters
    ----------
    profiles
        Profiles, or the CSV file that contains them, as written by `poolwise profile fit`, in addition to the shipped ones.
    column
        Text column of the job table with the name of each job's profile ("text.profile" in its file); empty for none.
    default
        Profile of jobs without a name, or of all jobs if there is no column.
    measured_ns
        Added latency of remote memory at which the profiles were measured (ns).
    """

    __repr__ = short_repr

    profiles: InputFile | tuple[Profile, ...] = ()
    column: str = "profile"
    default: str = ""
    measured_ns: int = NEAR_NS

    def __post_init__(self) -> None:
        RemoteMemory.__post_init__(self)
        if self.measured_ns < 1:
            raise InputError(f"must be at least 1, got {self.measured_ns}", field="measured_ns", remedy="give nanoseconds")

    def slowdown(self, run: Run, snapshot: Snapshot) -> float:
        """Return the slowdown that the job's profile gives for the fraction and the location of its remote memory."""
        workload, machine = snapshot.table, snapshot.machine
        memory = int(workload.memory[run.job])
        if "nodes" in machine.resources and not machine.racks.uniform:
            return self._on_mixed_racks(run, memory, snapshot)
        remote = memory - machine.local_memory
        if remote <= 0 or self.expect == "none":
            return 0.0
        if not self._name(run, workload):
            return super().slowdown(run, snapshot)
        return self._slowdown_at(remote / memory, self._inside(run.placement, remote, snapshot), run, snapshot)

    def _slowdown_at(self, share: float, inside: float, run: Run, snapshot: Snapshot) -> float:
        """Return the slowdown for a share of remote memory, of which a fraction `inside` is in the pool of the run's rack."""
        names, name = self._names(snapshot.table), self._name(run, snapshot.table)
        if not name:
            return super()._slowdown_at(share, inside, run, snapshot)
        if self.expect == "mean":
            counts = np.bincount(names.of, minlength=len(names.value)).tolist()
            used = sorted((value[0], count) for value, count in zip(names.value, counts, strict=True) if value[0])
            whole = sum(count * _at(self._profile(name), share) for name, count in used) / sum(count for _, count in used)
        else:
            whole = _at(self._profile(name), share)
        near, far = whole * (self.near_ns / self.measured_ns), whole * (self.far_ns / self.measured_ns)
        return self._mixed(near, far, inside)

    def _name(self, run: Run, table: JobTable) -> str:
        """Return the name of a run's profile, "" without one."""
        names = self._names(table)
        return str(names.value[names.of[run.job]][0])

    def check(self, machine: Machine, jobs: JobTable) -> None:
        """Look up the profile of every job with remote memory, and warn of the number of jobs without one.

        Raises UnknownNameError for an unknown profile, and InputError if the profile column is missing or not text.
        """
        super().check(machine, jobs)
        if self.expect == "none" or not bool((jobs.memory > machine.local_memory).any()):
            return
        names = self._names(jobs)
        for name in sorted({value[0] for value in names.value} - {""}):
            self._profile(name)
        counts = np.bincount(names.of, minlength=len(names.value))
        without = sum(int(count) for value, count in zip(names.value, counts.tolist(), strict=True) if not value[0])
        if without and (without < len(jobs) or self.profiles):
            warnings.warn(f"{without} of {len(jobs)} jobs have no profile: their sensitivity is random", stacklevel=2)

    def _names(self, table: JobTable) -> Kinds:
        """Return the profile name of each job, "" for none."""

        def columns(table: JobTable, rows: slice) -> list[NDArray[np.generic]]:
            texts = table.attributes.get(self.column)
            if texts is None:
                if self.profiles and not self.default:
                    remedy = f"add a column text.{self.column} with each job's profile, or set default"
                    raise InputError(f"the workload has no column '{self.column}'", field=self.column, remedy=remedy)
                texts = np.full(len(table), "", dtype=np.str_)
            if texts.dtype.kind != "U":
                remedy = f"name the column text.{self.column}"
                raise InputError(f"column '{self.column}' contains numbers, not names", field=self.column, remedy=remedy)
            return [np.where(texts[rows] == "", self.default, texts[rows])]

        return table.kinds(("memory profile", self.column, self.default, bool(self.profiles)), columns)

    def _profile(self, name: str) -> Profile:
        """Return a profile by name. Raises UnknownNameError."""
        if name not in self._known:
            raise UnknownNameError.of("profile", name, self._known, field="default" if name == self.default else self.column)
        return self._known[name]

    @cached_property
    def _known(self) -> Mapping[str, Profile]:
        """Profiles by name; the user's own profiles replace shipped ones of the same name."""
        if isinstance(self.profiles, str) and self.profiles:
            own = read_once("memory_profiles", self.profiles, read_profiles, "profile file", "profiles")
            return {**shipped_profiles(), **own}
        return {**shipped_profiles(), **{p.name: p for p in self.profiles if isinstance(p, Profile)}}


def _at(profile: Profile, share: float) -> float:
    if share > profile.remote[-1]:
        reach = f"{profile.remote[-1]:g} of its memory remote"
        warnings.warn(f"profile '{profile.name}' was measured up to {reach}; extrapolating", stacklevel=2)
    return float(profile.at(share))
