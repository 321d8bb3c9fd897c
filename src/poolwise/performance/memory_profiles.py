"""Slowdown by remote memory where jobs have measured profiles of their own, instead of a drawn kernel.

Source: specs of the memory pools, "Job" (a profile of the job's own); profiles as in Sefati et al., IRoP, equation (2).
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np

from poolwise import catalog
from poolwise.arrays import IntArray
from poolwise.errors import InputError, UnknownNameError
from poolwise.model import Run, Snapshot, Workload
from poolwise.performance.profiles import Profile, read_profiles, shipped_profiles
from poolwise.performance.remote_memory import NEAR_NS, RemoteMemory
from poolwise.registry import register


@register("models", "memory_profiles")
@dataclass(frozen=True)
class MemoryProfiles(RemoteMemory):
    """Remote memory where the workload says which measured slowdown profile each job follows.

    Slowdown = P(remote / memory) at the latency of the measurement, in proportion to the latency at another one. A job
    without a profile is one of `RemoteMemory`, with its draw; how many are is said in a warning. Parameters besides these are
    those of `RemoteMemory`; `expect = "mean"` takes, at a job's own share of remote memory, the mean over the jobs that have a
    profile.

    Parameters
    ----------
    profiles
        Profiles, or the CSV file that holds them, as `poolwise profile fit` writes it. The shipped ones are known too.
    column
        Text column of the workload with the name of each job's profile ("text.profile" in a job table); empty for none.
    default
        Profile of the jobs that name none; without a column, of all.
    measured_ns
        Added latency of remote memory at which the profiles were measured.
    """

    profiles: str | tuple[Profile, ...] = ()
    column: str = "profile"
    default: str = ""
    measured_ns: int = NEAR_NS

    def __post_init__(self) -> None:
        RemoteMemory.__post_init__(self)
        if self.measured_ns < 1:
            raise InputError("profiles are measured at a latency", field="measured_ns", remedy="give nanoseconds, at least 1")

    def slowdown(self, run: Run, view: Snapshot) -> float:
        """Slowdown of the job's profile at its share of remote memory, where that memory lies."""
        workload, machine = view.table, view.machine
        memory = int(workload.memory[run.job])
        remote = memory - machine.local_memory
        if remote <= 0 or self.expect == "none":
            return 0.0
        named = self.named(workload)
        number = int(named.number[run.job])
        if number < 0:
            return super().slowdown(run, view)
        share = remote / memory
        if self.expect == "mean":
            whole = sum(count * _at(profile, share) for profile, count in zip(named.profiles, named.counts, strict=True))
            whole /= sum(named.counts)
        else:
            whole = _at(named.profiles[number], share)
        near, far = whole * (self.near_ns / self.measured_ns), whole * (self.far_ns / self.measured_ns)
        return self._mixed(near, far, self._inside(run.placement, remote, view))

    def named(self, workload: Workload) -> Named:
        """Find the profile of every job.

        Raises UnknownNameError for a name without a profile, InputError where the workload does not say what it should.
        """
        known = _named.get(id(workload))
        if known is None or known[0] is not workload or known[1] != self:
            _named.clear()  # one workload at a time is enough, and keeps memory bounded
            known = _named[id(workload)] = (workload, self, self._find(workload))
        return known[2]

    def _find(self, workload: Workload) -> Named:
        texts = workload.attributes.get(self.column)
        if texts is None:
            if self.profiles and not self.default:
                remedy = f"name each job's profile in a column text.{self.column}, or set default"
                raise InputError(f"the workload has no column '{self.column}'", field=self.column, remedy=remedy)
            texts = np.full(len(workload), "", dtype=np.str_)
        if texts.dtype.kind != "U":
            remedy = f"call the column text.{self.column}"
            raise InputError(f"the column '{self.column}' holds numbers, not names", field=self.column, remedy=remedy)
        names = np.where(texts == "", self.default, texts)
        known, used = self._known(), sorted(set(names.tolist()) - {""})
        for name in used:
            if name not in known:
                raise UnknownNameError.of("profile", name, known, field="default" if name == self.default else self.column)
        number = np.searchsorted(np.array(used, dtype=np.str_), names) if used else np.zeros(len(names), dtype=np.int64)
        number = np.where(names == "", -1, number).astype(np.int64)
        without = int(np.count_nonzero(number < 0))
        if without and (used or self.profiles):
            warnings.warn(f"{without} of {len(names)} jobs name no profile: they draw a measured kernel", stacklevel=2)
        counts = np.bincount(number[number >= 0], minlength=len(used)).tolist()
        return Named(tuple(known[name] for name in used), tuple(counts), number)

    def _known(self) -> Mapping[str, Profile]:
        """Profiles by name, one's own before the shipped ones."""
        if isinstance(self.profiles, str) and self.profiles:
            path = catalog.resolve("memory_profiles", self.profiles)
            if not path.is_file():
                remedy = f'give a CSV file, or "{catalog.PREFIX}NAME"'
                raise InputError("no such file of profiles", file=path, field="profiles", remedy=remedy)
            return {**shipped_profiles(), **_read(path, path.stat().st_mtime_ns)}
        return {**shipped_profiles(), **{p.name: p for p in self.profiles if isinstance(p, Profile)}}


@dataclass(frozen=True, eq=False)
class Named:
    """The profiles of a workload's jobs.

    Attributes
    ----------
    profiles : those that some job follows
    counts : jobs that follow each
    number : (n_job,) which of them a job follows, -1 for none
    """

    profiles: tuple[Profile, ...]
    counts: tuple[int, ...]
    number: IntArray


_named: dict[int, tuple[Workload, MemoryProfiles, Named]] = {}


@lru_cache(maxsize=16)
def _read(path: Path, modified: int) -> Mapping[str, Profile]:
    """Read a file that was last modified at `modified`; a changed file is another key."""
    return read_profiles(path)


def _at(profile: Profile, share: float) -> float:
    if share > profile.remote[-1]:
        reach = f"{profile.remote[-1]:g} of its memory remote"
        warnings.warn(f"profile '{profile.name}' was measured up to {reach}: extrapolated", stacklevel=2)
    return float(profile.at(share))
