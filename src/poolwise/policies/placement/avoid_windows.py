"""Placement around maintenance and reservation windows: a job does not start on nodes whose window it would overlap."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from poolwise.arrays import BoolArray, IntArray
from poolwise.interfaces import PlacementPolicy
from poolwise.model import Job, JobTable, Machine, Placement, Refusal, ReservedWindow, Snapshot

_USER_COLUMNS = (("user", "users"), ("account", "accounts"))
"""Column of the job table, and the attribute of a window that lists its allowed values."""


@dataclass(frozen=True)
class AvoidWindows(PlacementPolicy):
    """Place with another policy, hiding the nodes whose windows the job may not use but would overlap.

    A job that may not use a window starts on its nodes only after the window has ended, or if the job is expected to end before
    the window starts. This expectation is based on its requested time and the slowdown expected at its placement.
    """

    filters_nodes: ClassVar[bool] = True
    placement: PlacementPolicy

    def check(self, machine: Machine, jobs: JobTable) -> None:
        """Check the inner placement."""
        self.placement.check(machine, jobs)

    def place(self, job: Job, snapshot: Snapshot) -> Placement | Refusal:
        """Place the job around the windows that it would overlap. A slower placement may overlap more of them, so iterate."""
        now, machine = snapshot.now, snapshot.machine
        ahead = [window for window in machine.windows if window.end > now and not may_use(job, window)]
        end, shut, met = now + job.requested, np.zeros(machine.n_owner, dtype=np.bool_), list[ReservedWindow]()
        while True:
            met += [window for window in ahead if window.start < end and window not in met]
            for window in met:
                shut |= window.owners
            view = snapshot.imagined(now, np.where(shut[:, None], 0, snapshot.free)) if met else snapshot
            placement = self.placement.place(job, view)
            if isinstance(placement, Refusal):
                return self._why(job, snapshot, met, placement) if met else placement
            end = max(end, snapshot.expected_end(job.index, placement))
            taken = list(placement.owners())
            if not any(window.start < end and window.owners[taken].any() for window in ahead if window not in met):
                return placement

    def _why(self, job: Job, snapshot: Snapshot, met: list[ReservedWindow], refusal: Refusal) -> Refusal:
        """Name the first window in the way, if only windows are."""
        if isinstance(self.placement.place(job, snapshot), Refusal):
            return refusal
        first = min(met, key=lambda window: window.start)
        return Refusal(f"{refusal.reason} outside window '{first.name}'", refusal.resource, refusal.needed, refusal.free)

    def prefilter(self, jobs: IntArray, free: IntArray, snapshot: Snapshot) -> BoolArray:
        """Filter with the inner placement and treat nodes of windows as free: states in `free` belong to different times."""
        return self.placement.prefilter(jobs, free, snapshot)


def without_windows(placement: PlacementPolicy) -> PlacementPolicy:
    """Return the inner placement of `AvoidWindows`; return other placements unchanged."""
    return placement.placement if isinstance(placement, AvoidWindows) else placement


def users_of(jobs: JobTable, window: ReservedWindow) -> BoolArray:
    """Return which jobs may use the nodes of a window, (n_job,)."""
    mask, attributes = np.zeros(len(jobs), dtype=np.bool_), jobs.attributes
    for column, names in _USER_COLUMNS:
        if column in attributes:
            mask |= np.isin(attributes[column].astype(np.str_), sorted(getattr(window, names)))
    return mask


def may_use(job: Job, window: ReservedWindow) -> bool:
    """Return whether a job may use the nodes of a window."""
    attributes = job.table.attributes
    return any(
        column in attributes and str(attributes[column][job.index]) in getattr(window, names) for column, names in _USER_COLUMNS
    )
