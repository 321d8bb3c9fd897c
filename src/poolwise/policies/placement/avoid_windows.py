"""Placement around windows that are known beforehand: a job that would run into one does not start on its nodes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from poolwise.arrays import BoolArray, IntArray
from poolwise.interfaces import PlacementPolicy
from poolwise.model import Job, JobTable, Machine, Placement, Refusal, ReservedWindow, Snapshot

_WHO = (("user", "users"), ("account", "accounts"))
"""Column of the job table, and the names in a window that it is looked up in."""


@dataclass(frozen=True)
class AvoidWindows(PlacementPolicy):
    """Another placement, with nothing free on the nodes of a window that the job may not use and would run into.

    A job that may not use a window starts on its nodes only if it is expected to end by the window's start, counted with the
    time it requests and the slowdown expected where it is placed; or from the window's end on.
    """

    knows_eligibility: ClassVar[bool] = True
    placement: PlacementPolicy

    def check(self, machine: Machine, jobs: JobTable) -> None:
        """Ask the placement."""
        self.placement.check(machine, jobs)

    def place(self, job: Job, snapshot: Snapshot) -> Placement | Refusal:
        """Place the job beside the windows that it would run into, which may be more where it runs more slowly."""
        now, machine = snapshot.now, snapshot.machine
        ahead = [window for window in machine.windows if window.end > now and not may_use(job, window)]
        end, shut, met = now + job.requested, np.zeros(machine.n_owner, dtype=np.bool_), list[ReservedWindow]()
        while True:
            met += [window for window in ahead if window.start < end and window not in met]
            for window in met:
                shut |= window.owners
            view = snapshot.imagined(now, np.where(shut[:, None], 0, snapshot.free)) if met else snapshot
            found = self.placement.place(job, view)
            if isinstance(found, Refusal):
                return self._why(job, snapshot, met, found) if met else found
            end = max(end, snapshot.expected_end(job.index, found))
            taken = list(found.owners())
            if not any(window.start < end and window.owners[taken].any() for window in ahead if window not in met):
                return found

    def _why(self, job: Job, snapshot: Snapshot, met: list[ReservedWindow], refusal: Refusal) -> Refusal:
        """Name the first window that is in the way, where nothing else is."""
        if isinstance(self.placement.place(job, snapshot), Refusal):
            return refusal
        first = min(met, key=lambda window: window.start)
        return Refusal(f"{refusal.reason} beside window '{first.name}'", refusal.resource, refusal.needed, refusal.free)

    def screen(self, jobs: IntArray, free: IntArray, snapshot: Snapshot) -> BoolArray:
        """Ask the placement, which sees nodes of windows as free: the states that it is asked about are of many times."""
        return self.placement.screen(jobs, free, snapshot)


def users_of(jobs: JobTable, window: ReservedWindow) -> BoolArray:
    """(n_job,) which jobs may use the nodes of a window."""
    found, attributes = np.zeros(len(jobs), dtype=np.bool_), jobs.attributes
    for column, names in _WHO:
        if column in attributes:
            found |= np.isin(attributes[column].astype(np.str_), sorted(getattr(window, names)))
    return found


def may_use(job: Job, window: ReservedWindow) -> bool:
    """Whether a job may use the nodes of a window."""
    attributes = job.table.attributes
    return any(column in attributes and str(attributes[column][job.index]) in getattr(window, names) for column, names in _WHO)
