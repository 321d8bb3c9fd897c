"""Conservative backfilling: every waiting job has a reservation, none delays one of higher priority.

Source: Mu'alem and Feitelson 2001; specs of the memory pools, "Backfilling": reservations are rebuilt at each pass in
priority order, each job taking the earliest interval in which it fits beside those before it; or they are kept.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from poolwise.arrays import FloatArray, IntArray
from poolwise.errors import PolicyError
from poolwise.interfaces import BackfillPolicy, PlacementPolicy
from poolwise.model import Job, Placement, Queue, Reason, Refusal, Rule, Snapshot, Start
from poolwise.model.rules import BackfillRule
from poolwise.policies.backfill.passed_over import PassedOver
from poolwise.registry import register
from poolwise.units import HORIZON, NEVER


@register("backfills", "conservative")
@dataclass(frozen=True)
class Conservative(BackfillPolicy):
    """Reserve in priority order, each job the earliest interval that is free; start those whose interval begins now.

    Parameters
    ----------
    keep_reservations
        Keep the reservations from pass to pass instead of making all anew: see `Promises`.
    """

    keep_reservations: bool = False

    def open(self) -> BackfillPolicy:
        """Begin a run."""
        return Promises() if self.keep_reservations else self

    @property
    def remembers(self) -> str:
        """The reservations, where they are kept."""
        return "kept reservations" if self.keep_reservations else ""

    def select(self, queue: Queue, priority: FloatArray, snapshot: Snapshot, placement: PlacementPolicy) -> Iterable[Start]:
        """Choose the starts, as if nothing had been promised before.

        Reservations only take away, so a job that does not fit from now on beside those made so far never will. Behind the
        last job that may still start now reservations have no effect, and are not made: most passes end after a few.
        """
        if self.keep_reservations:
            return Promises().select(queue, priority, snapshot, placement)
        jobs, profile = queue.jobs, AvailabilityProfile(snapshot)
        waiting = jobs[np.argsort(-priority, kind="stable")]
        starts: list[Start] = []
        able, at = profile.able_now(waiting, np.arange(len(waiting)), placement), 0
        while len(able):
            job = int(waiting[at])
            reserved = profile.reserve(queue.job(job), placement)
            if reserved is not None and reserved.start == snapshot.now:
                starts.append(Start(job, queue.tasks(job), reserved.placement))
            able, at = profile.able_now(waiting, able[np.searchsorted(able, at, side="right") :], placement), at + 1
        return starts

    def why(
        self,
        job: int,
        queue: Queue,
        priority: FloatArray,
        snapshot: Snapshot,
        placement: PlacementPolicy,
        starts: Sequence[Start],
    ) -> Reason:
        """Name the first reservation in the order of priority with which a job that fits now no longer fits throughout."""
        if self.keep_reservations:
            return super().why(job, queue, priority, snapshot, placement, starts)
        passed = PassedOver.of(job, queue, priority, snapshot, placement, starts)
        if (short := passed.short()) is not None:
            return short
        profile = AvailabilityProfile(snapshot)
        for row in passed.ranked[: passed.rank[job]]:
            reserved = profile.reserve(queue.job(row), placement)
            if profile.fit(queue.job(job), 0, placement)[0] is None:
                begins = None if reserved is None else reserved.start
                text = "it fits, but would run into a job of higher priority when that job's reservation begins"
                if begins == snapshot.now:
                    text = "it fits, but would run into reservations with the start of a job of higher priority"
                return Reason.of(
                    Rule.RESERVATION, text, profile.first_lack(queue.job(job), placement), blocker=row, reserved=begins
                )
        raise passed.contradiction()

    def rule(self) -> BackfillRule:
        """Everyone has a reservation, made anew at each pass, or kept."""
        return BackfillRule("everyone", keeps=self.keep_reservations)


class Reservation(NamedTuple):
    """An interval (ns) and what is held in it."""

    start: int
    placement: Placement
    end: int


class Promises(BackfillPolicy):
    """Conservative backfilling whose reservations are promises: whatever arrives later, a job's reservation only moves forward.

    A job is promised the earliest interval that is free beside all promises made before, jobs that come together in priority
    order. As runs end early, jobs move forward into what they leave, in priority order, until none can. With exact estimates
    on unchanging capacity, in scope rack, no job starts later than it was first promised. Where runs last longer than
    expected or capacity is lost, promises that no longer hold are made anew.

    The promises are the memory of a run: a dispatcher that is opened in the middle of a run makes others.

    Source: Mu'alem and Feitelson 2001, section 2 (compression); specs of the memory pools, "Backfilling".
    """

    sees_every_pass: ClassVar[bool] = True  # a job may be promised something in a pass that starts nothing

    def __init__(self) -> None:
        self.kept: dict[int, Reservation] = {}  # by row, of jobs that wait

    def select(self, queue: Queue, priority: FloatArray, snapshot: Snapshot, placement: PlacementPolicy) -> Iterable[Start]:
        """Bring the reservations forward, make those of new jobs, and choose the starts."""
        jobs, profile = queue.jobs, AvailabilityProfile(snapshot)
        ranked: list[int] = jobs[np.argsort(-priority, kind="stable")].tolist()
        self.kept = self._still_held(ranked, profile)
        turns = sorted(ranked, key=lambda job: job not in self.kept)  # stable: in priority order, new jobs last
        while self._bring_forward(turns, queue, profile, placement):
            turns = ranked
        starting = [job for job in ranked if job in self.kept and self.kept[job].start == snapshot.now]
        return [Start(job, queue.tasks(job), self.kept.pop(job).placement) for job in starting]

    def _still_held(self, ranked: list[int], profile: AvailabilityProfile) -> dict[int, Reservation]:
        """Put the reservations that still hold into the profile, those that begin first before others."""
        held: dict[int, Reservation] = {}
        for job in sorted((job for job in ranked if job in self.kept), key=lambda job: self.kept[job].start):
            start, found, end = self.kept[job]
            late = max(profile.snapshot.now - start, 0)
            if late and profile.snapshot.machine.windows:
                continue  # later it might run into one
            moved = Reservation(start + late, found, min(end + late, HORIZON))
            if profile.holds(moved):
                profile.occupy(moved)
                held[job] = moved
        return held

    def _bring_forward(self, jobs: list[int], queue: Queue, profile: AvailabilityProfile, placement: PlacementPolicy) -> bool:
        """Let each job in turn take the earliest interval that is free beside all the others; whether any moved."""
        moved = False
        for job in jobs:
            before = self.kept.get(job)
            if before is not None:
                if before.start == profile.snapshot.now:
                    continue
                profile.release(before)
            found = profile.earliest(queue.job(job), placement)
            if found is not None and (before is None or found.start < before.start):
                self.kept[job] = found
                moved = True
            if job in self.kept:
                profile.occupy(self.kept[job])
        return moved


class AvailabilityProfile:
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
        self._windows = {window.end for window in snapshot.machine.windows}
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
        until = self.times.searchsorted(view.now + np.minimum(view.table.requested[asked], HORIZON - view.now))
        least = np.minimum.accumulate(self.free[: int(until.max())])  # (m, n_owner, n_resource) over [now, instant m]
        return positions[placement.screen(asked, least[until - 1], view)]

    def reserve(self, job: Job, placement: PlacementPolicy) -> Reservation | None:
        """Take the earliest interval in which the job fits throughout; None while lost capacity leaves it none."""
        found = self.earliest(job, placement)
        if found is not None:
            self.occupy(found)
        return found

    def earliest(self, job: Job, placement: PlacementPolicy) -> Reservation | None:
        """Find the earliest interval in which the job fits throughout; None while lost capacity leaves it none."""
        view, row, times = self.snapshot, np.array([job.index], dtype=np.int64), self.times
        shut = np.flatnonzero(~placement.screen(row, self.free, view))  # instants at which the job surely does not fit
        blocked = np.append(times[shut], NEVER)  # when a start at k meets the next such instant
        following = blocked[np.searchsorted(shut, np.arange(len(times)))]
        for k in np.flatnonzero(times + np.minimum(job.requested, HORIZON - times) <= following).tolist():
            found, end = self.fit(job, k, placement)
            if found is not None:
                return Reservation(int(times[k]), found, end)
        if isinstance(placement.place(job, view.empty()), Refusal):
            return None
        raise PolicyError(
            f"job in row {job.index} fits at no time, though it fits the empty machine: its placement policy is not monotone"
        )

    def fit(self, job: Job, k: int, placement: PlacementPolicy) -> tuple[Placement | None, int]:
        """Placement and end for a start at instant k: the runtime depends on the placement, which depends on the interval."""
        times, view = self.times, self.snapshot
        start, length = int(times[k]), job.requested
        until = 0
        found: Placement | None = None
        while True:
            before, until = until, max(int(times.searchsorted(min(start + length, HORIZON))), k + 1)
            if until == before:  # longer than thought, but it meets no further instant: nothing else is known
                return found, min(start + length, HORIZON)
            state = view.imagined(start, self.free[k:until].min(axis=0))
            answer = placement.place(job, state)
            if isinstance(answer, Refusal):
                return None, 0
            found = answer
            needed = state.expected_end(job.index, found) - start
            if needed <= length:
                return found, min(start + length, HORIZON)
            length = needed

    def first_lack(self, job: Job, placement: PlacementPolicy) -> Refusal:
        """Find what a job that would start now lacks at the first instant from which on it no longer fits."""
        view = self.snapshot
        for least in np.minimum.accumulate(self.free):
            found = placement.place(job, view.imagined(view.now, least))
            if isinstance(found, Refusal):
                return found
        raise PolicyError(
            f"job in row {job.index} fits at every instant and yet not throughout: its placement policy is not monotone"
        )

    def holds(self, reservation: Reservation) -> bool:
        """Whether what a reservation holds is free throughout its interval."""
        if reservation.start == reservation.end:
            return True  # at the horizon
        first = int(self.times.searchsorted(reservation.start, side="right")) - 1
        least = self.free[first : int(self.times.searchsorted(reservation.end))].min(axis=0)
        return bool((self._amounts(reservation.placement) <= np.maximum(least, 0)).all())

    def occupy(self, reservation: Reservation) -> None:
        """Take what a reservation holds out of what is free in its interval."""
        if reservation.start == reservation.end:
            return  # at the horizon
        first, last = self._instant(reservation.start), self._instant(reservation.end)
        self._free[first:last] -= self._amounts(reservation.placement)

    def release(self, reservation: Reservation) -> None:
        """Undo `take`; an instant at which nothing changes any more is none, unless a window ends then."""
        if reservation.start == reservation.end:
            return
        first, last = self._instant(reservation.start), self._instant(reservation.end)
        self._free[first:last] += self._amounts(reservation.placement)
        for at in (last, first):
            if at and np.array_equal(self._free[at], self._free[at - 1]) and int(self._times[at]) not in self._windows:
                self._times[at : self.count - 1] = self._times[at + 1 : self.count]
                self._free[at : self.count - 1] = self._free[at + 1 : self.count]
                self.count -= 1

    def _amounts(self, placement: Placement) -> IntArray:
        """(n_owner, n_resource) what a placement holds."""
        held = np.zeros(self._free.shape[1:], dtype=np.int64)
        placement.give_to(held)
        return held

    def _instant(self, time: int) -> int:
        """Position of an instant, which is added if there is none; what is free does not change at it."""
        at = int(self.times.searchsorted(time))
        if at < self.count and int(self.times[at]) == time:
            return at
        if self.count == len(self._times):
            self._times = np.concatenate([self._times, np.zeros_like(self._times)])
            self._free = np.concatenate([self._free, np.zeros_like(self._free)])
        self._times[at + 1 : self.count + 1] = self._times[at : self.count]
        self._free[at + 1 : self.count + 1] = self._free[at : self.count]
        self._times[at], self._free[at] = time, self._free[at - 1]
        self.count += 1
        return at
