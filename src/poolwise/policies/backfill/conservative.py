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

_NEVER = np.iinfo(np.int64).max


@register("backfills", "conservative")
@dataclass(frozen=True)
class Conservative(BackfillPolicy):
    """Reserve in priority order, each job the earliest interval that is free; start those whose interval begins now."""

    def select(self, jobs: IntArray, priority: FloatArray, snapshot: Snapshot, placement: PlacementPolicy) -> Iterable[Start]:
        """Choose the starts.

        Reservations only take away, so a job that does not fit from now on beside those made so far never will. Behind the
        last job that may still start now reservations have no effect, and are not made: most passes end after a few.
        """
        workload, profile = snapshot.workload, Profile(snapshot)
        waiting = jobs[np.argsort(-priority, kind="stable")]
        starts: list[Start] = []
        able, at = profile.able_now(waiting, np.arange(len(waiting)), placement), 0
        while len(able):
            job = int(waiting[at])
            reserved = profile.reserve(job, placement)
            if reserved is not None and reserved[0] == snapshot.now:
                starts.append(Start(job, tuple(range(int(workload.tasks[job]))), reserved[1]))
            able, at = profile.able_now(waiting, able[np.searchsorted(able, at, side="right") :], placement), at + 1
        return starts


class Profile:
    """What is free from each of a list of instants on."""

    def __init__(self, snapshot: Snapshot) -> None:
        self.snapshot = snapshot
        ends, free = [np.array([snapshot.now], dtype=np.int64)], [snapshot.free[None]]
        for some, states in snapshot.futures():
            ends.append(some)
            free.append(states)
        self.count = sum(len(some) for some in ends)
        room = 2 * self.count + 16  # buffers that grow by doubling: a reservation adds one instant
        self._times = np.concatenate([*ends, np.zeros(room - self.count, dtype=np.int64)])
        self._free = np.concatenate([*free, np.zeros((room - self.count, *snapshot.free.shape), dtype=np.int64)])

    @property
    def times(self) -> IntArray:
        """(k,) instants, ascending."""
        return self._times[: self.count]

    @property
    def free(self) -> IntArray:
        """(k, n_owner, n_resource) what is free from each instant on."""
        return self._free[: self.count]

    def able_now(self, jobs: IntArray, positions: IntArray, placement: PlacementPolicy) -> IntArray:
        """(k,) those of the `positions` whose jobs may fit from now on for the time they request."""
        if not len(positions):
            return positions
        view, asked = self.snapshot, jobs[positions]
        until = self.times.searchsorted(view.now + view.workload.requested[asked])
        least = np.minimum.accumulate(self.free[: int(until.max())])  # (m, n_owner, n_resource) over [now, instant m]
        return positions[placement.screen(asked, least[until - 1], view)]

    def reserve(self, job: int, placement: PlacementPolicy) -> tuple[int, Placement] | None:
        """Take the earliest interval in which the job fits throughout; None while lost capacity leaves it none."""
        view, row, times = self.snapshot, np.array([job], dtype=np.int64), self.times
        shut = np.flatnonzero(~placement.screen(row, self.free, view))  # instants at which the job surely does not fit
        blocked = np.append(times[shut], _NEVER)  # when a start at k meets the next such instant
        following = blocked[np.searchsorted(shut, np.arange(len(times)))]
        for k in np.flatnonzero(times + int(view.workload.requested[job]) <= following).tolist():
            found, end = self.fit(job, k, placement)
            if found is not None:
                self._occupy(k, end, found)
                return int(times[k]), found
        if isinstance(placement.place(view.workload.job(job), view.empty()), Refusal):
            return None
        raise PolicyError(
            f"job in row {job} fits at no time, though it fits the empty machine: its placement policy is not monotone"
        )

    def fit(self, job: int, k: int, placement: PlacementPolicy) -> tuple[Placement | None, int]:
        """Placement and end for a start at instant k: the runtime depends on the placement, which depends on the interval."""
        times, view = self.times, self.snapshot
        start, length = int(times[k]), int(view.workload.requested[job])
        until = 0
        found: Placement | None = None
        while True:
            before, until = until, max(int(times.searchsorted(start + length)), k + 1)
            if until == before:  # longer than thought, but it meets no further instant: nothing else is known
                return found, start + length
            state = view.imagined(start, self.free[k:until].min(axis=0))
            answer = placement.place(view.workload.job(job), state)
            if isinstance(answer, Refusal):
                return None, 0
            found = answer
            needed = state.expected_end(job, found) - start
            if needed <= length:
                return found, start + length
            length = needed

    def _occupy(self, k: int, end: int, placement: Placement) -> None:
        at = int(self.times.searchsorted(end))
        if at == self.count or int(self.times[at]) != end:
            self._insert(at, end)
        taken = np.zeros(self._free.shape[1:], dtype=np.int64)
        np.add.at(taken, (placement.owner, placement.resource), placement.amount)
        self._free[k:at] -= taken

    def _insert(self, at: int, time: int) -> None:
        """Add an instant; what is free does not change at it."""
        if self.count == len(self._times):
            self._times = np.concatenate([self._times, np.zeros_like(self._times)])
            self._free = np.concatenate([self._free, np.zeros_like(self._free)])
        self._times[at + 1 : self.count + 1] = self._times[at : self.count]
        self._free[at + 1 : self.count + 1] = self._free[at : self.count]
        self._times[at], self._free[at] = time, self._free[at - 1]
        self.count += 1
