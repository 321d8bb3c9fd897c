"""Conservative backfilling: every waiting job has a reservation, none delays one of higher priority.

Source: Mu'alem and Feitelson 2001; specs of the memory pools, "Backfilling": reservations are rebuilt at each pass in
priority order, each job taking the earliest interval in which it fits beside those before it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from poolwise.arrays import FloatArray, IntArray
from poolwise.errors import PolicyError
from poolwise.interfaces import BackfillPolicy, PlacementPolicy
from poolwise.model import Placement, Refusal, Snapshot, Start
from poolwise.registry import register


@register("backfills", "conservative")
@dataclass(frozen=True)
class Conservative(BackfillPolicy):
    """Reserve in priority order, each job the earliest interval that is free; start those whose interval begins now."""

    def select(self, jobs: IntArray, priority: FloatArray, snapshot: Snapshot, placement: PlacementPolicy) -> Iterable[Start]:
        """Choose the starts."""
        profile = _Profile(snapshot)
        starts = []
        for job in jobs[np.argsort(-priority, kind="stable")].tolist():
            begin, found = profile.reserve(job, placement)
            if begin == snapshot.now:
                starts.append(Start(job, tuple(range(int(snapshot.workload.tasks[job]))), found))
        return starts


class _Profile:
    """What is free from each of a list of instants on."""

    def __init__(self, snapshot: Snapshot) -> None:
        self.snapshot = snapshot
        ends, free = [np.array([snapshot.now], dtype=np.int64)], [snapshot.free[None]]
        for some, states in snapshot.futures():
            ends.append(some)
            free.append(states)
        self.times = np.concatenate(ends)  # (k,) ascending
        self.free = np.concatenate(free)  # (k, n_owner, n_resource)

    def reserve(self, job: int, placement: PlacementPolicy) -> tuple[int, Placement]:
        """Take the earliest interval in which the job fits throughout."""
        view, row = self.snapshot, np.array([job], dtype=np.int64)
        open_ = placement.screen(row, self.free, view)
        shut = np.concatenate([[0], np.cumsum(~open_)])  # instants before each at which the job surely does not fit
        until = np.searchsorted(self.times, self.times + int(view.workload.requested[job]), side="left")
        for k in np.flatnonzero(open_ & (shut[until] == shut[:-1])).tolist():
            found, end = self._fit(job, k, placement)
            if found is not None:
                self._occupy(k, end, found)
                return int(self.times[k]), found
        raise PolicyError(
            f"job in row {job} fits at no time, though it fits the empty machine: its placement policy is not monotone"
        )

    def _fit(self, job: int, k: int, placement: PlacementPolicy) -> tuple[Placement | None, int]:
        """Placement and end for a start at instant k: the runtime depends on the placement, which depends on the interval."""
        start = int(self.times[k])
        requested = int(self.snapshot.workload.requested[job])
        length = requested
        while True:
            until = int(np.searchsorted(self.times, start + length, side="left"))
            state = self.snapshot.imagined(start, self.free[k : max(until, k + 1)].min(axis=0))
            found = placement.place(self.snapshot.workload.job(job), state)
            if isinstance(found, Refusal):
                return None, 0
            needed = state.expected_end(job, found) - start
            if needed <= length:
                return found, start + length
            length = needed

    def _occupy(self, k: int, end: int, placement: Placement) -> None:
        at = int(np.searchsorted(self.times, end, side="left"))
        if at == len(self.times) or int(self.times[at]) != end:
            self.times = np.insert(self.times, at, end)
            self.free = np.insert(self.free, at, self.free[at - 1], axis=0)
        taken = np.zeros(self.free.shape[1:], dtype=np.int64)
        np.add.at(taken, (placement.owner, placement.resource), placement.amount)
        self.free[k:at] -= taken
