"""Conservative backfilling: every waiting job has a reservation, and none delays a job of higher priority.

Source: Mu'alem and Feitelson 2001; memory-pool spec, "Backfilling". Each pass rebuilds the reservations in priority order,
giving each job the earliest interval that the reservations before it leave free, or keeps the reservations of the last pass.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from poolwise.arrays import IntArray
from poolwise.errors import PolicyError
from poolwise.interfaces import BackfillPolicy, PlacementPolicy, SchedulingPass
from poolwise.model import Job, Placement, Queue, Refusal, Snapshot, Start, WaitCause
from poolwise.model.rules import BackfillRule
from poolwise.quantities import HORIZON, NEVER
from poolwise.registry import register


@register("backfills", "conservative")
@dataclass(frozen=True)
class Conservative(BackfillPolicy):
    """Reserve the earliest free interval for each job in priority order; start the jobs whose interval begins now.

    Parameters
    ----------
    keep_reservations
        Keep reservations from pass to pass instead of rebuilding them; see `IncrementalConservative`.
    """

    keep_reservations: bool = False

    def open(self) -> BackfillPolicy:
        """Return the policy of one run."""
        return IncrementalConservative() if self.keep_reservations else self

    @property
    def keeps_state(self) -> str:
        """Kept reservations, if the policy keeps them."""
        return "kept reservations" if self.keep_reservations else ""

    def select(self, cycle: SchedulingPass) -> Iterable[Start]:
        """Select the starts, with reservations built from scratch.

        Reservations only take capacity, so a job that does not fit from now on cannot start later in the pass. Behind the last
        job that may still start now, or whose wait is to be explained, reservations have no effect and are skipped; most passes
        end after a few jobs.
        """
        if self.keep_reservations:
            return IncrementalConservative().select(cycle)
        queue, placement, profile = cycle.queue, cycle.placement, AvailabilityProfile(cycle.snapshot)
        waiting, starts, unblocked = cycle.ranked(), list[Start](), cycle.to_explain()
        last = int(np.flatnonzero(np.isin(waiting, unblocked))[-1]) if unblocked else -1
        able, at = profile.startable(waiting, np.arange(len(waiting)), placement), 0
        while len(able) or at <= last:
            job = int(waiting[at])
            if job in cycle.explain:
                cycle.place(job, cycle.snapshot.with_starts(starts))  # a shortage at its turn replaces an overlap
            reserved = profile.reserve(queue.job(job), placement)
            if reserved is not None and reserved.start == cycle.snapshot.now:
                starts.append(Start(job, queue.tasks(job), reserved.placement))
            unblocked = [k for k in unblocked if k != job and not _record_overlap(cycle, profile, k, job, reserved)]
            able, at = profile.startable(waiting, able[np.searchsorted(able, at, side="right") :], placement), at + 1
        return starts

    def rule(self) -> BackfillRule:
        """Return the rule: every waiting job has a reservation, rebuilt at each pass or kept."""
        return BackfillRule("all", keeps=self.keep_reservations)


def _record_overlap(
    cycle: SchedulingPass, profile: AvailabilityProfile, job: int, blocker: int, reserved: Reservation | None
) -> bool:
    """If a job that starts now would overlap a reservation of higher priority, record this; return whether it would."""
    row, begins = cycle.queue.job(job), None if reserved is None else reserved.start
    if profile.fit(row, 0, cycle.placement)[0] is not None:
        return False
    text = "it fits, but would overlap the reservation of a job of higher priority"
    if begins == cycle.snapshot.now:
        text = "it fits, but once a job of higher priority starts, it would overlap reservations"
    short = profile.first_shortage(row, cycle.placement)
    cycle.record(job, WaitCause.RESERVATION, text, short, blocker=blocker, reserved=begins)
    return True


class Reservation(NamedTuple):
    """An interval (ns) and the placement reserved in it."""

    start: int
    placement: Placement
    end: int


class IncrementalConservative(BackfillPolicy):
    """Conservative backfilling that keeps reservations: later arrivals never delay them, and early releases compress them.

    A new job reserves the earliest interval that is free of all earlier reservations; jobs that arrive together do so in
    priority order. As runs end early, jobs move, in priority order, into the capacity that becomes free, until no job can move.
    With exact estimates on constant capacity, in scope "rack", no job starts later than its first reservation. Reservations
    that no longer hold, because runs last longer than expected or capacity is lost, are made again.

    The reservations are part of the state of the run: a dispatcher opened in the middle of a run makes different reservations.

    Source: Mu'alem and Feitelson 2001, section 2 (compression); memory-pool spec, "Backfilling".
    """

    every_cycle: ClassVar[bool] = True  # a pass that starts nothing may still make reservations

    def __init__(self) -> None:
        self.reservations: dict[int, Reservation] = {}  # by row, of waiting jobs

    def select(self, cycle: SchedulingPass) -> Iterable[Start]:
        """Compress the reservations, reserve for new jobs, and select the starts."""
        queue, snapshot, profile = cycle.queue, cycle.snapshot, AvailabilityProfile(cycle.snapshot)
        ranked: list[int] = cycle.ranked().tolist()
        self.reservations = self._restore_valid(ranked, profile)
        order = sorted(ranked, key=lambda job: job not in self.reservations)  # stable: in priority order, new jobs last
        while self._compress(order, queue, profile, cycle.placement):
            order = ranked
        starting = [job for job in ranked if job in self.reservations and self.reservations[job].start == snapshot.now]
        return [Start(job, queue.tasks(job), self.reservations.pop(job).placement) for job in starting]

    def _restore_valid(self, ranked: list[int], profile: AvailabilityProfile) -> dict[int, Reservation]:
        """Enter the reservations that still hold into the profile, the earliest first, and return them."""
        held: dict[int, Reservation] = {}
        by_start = sorted((job for job in ranked if job in self.reservations), key=lambda job: self.reservations[job].start)
        for job in by_start:
            start, place, end = self.reservations[job]
            late = max(profile.snapshot.now - start, 0)
            if late and profile.snapshot.machine.windows:
                continue  # the shifted interval might overlap a window
            moved = Reservation(start + late, place, min(end + late, HORIZON))
            if profile.holds(moved):
                profile.occupy(moved)
                held[job] = moved
        return held

    def _compress(self, jobs: list[int], queue: Queue, profile: AvailabilityProfile, placement: PlacementPolicy) -> bool:
        """Move each job in turn to the earliest interval free of all other reservations; return whether any job moved."""
        moved = False
        for job in jobs:
            before = self.reservations.get(job)
            if before is not None:
                if before.start == profile.snapshot.now:
                    continue
                profile.release(before)
            reservation = profile.earliest(queue.job(job), placement)
            if reservation is not None and (before is None or reservation.start < before.start):
                self.reservations[job] = reservation
                moved = True
            if job in self.reservations:
                profile.occupy(self.reservations[job])
        return moved


class AvailabilityProfile:
    """Availability profile: a list of instants, and the amounts free from each instant on."""

    def __init__(self, snapshot: Snapshot) -> None:
        self.snapshot = snapshot
        ends, free = [np.array([snapshot.now], dtype=np.int64)], [snapshot.free[None]]
        for some, states in snapshot.futures():
            ends.append(some)
            free.append(states)
        self.count = sum(len(some) for some in ends)
        room = 2 * self.count + 16  # buffers double when full: a reservation adds up to two instants
        self._times = np.concatenate([*ends, np.zeros(room - self.count, dtype=np.int64)])
        self._windows = {window.end for window in snapshot.machine.windows}
        self._free = np.concatenate([*free, np.zeros((room - self.count, *snapshot.free.shape), dtype=np.int64)])

    @property
    def times(self) -> IntArray:
        """Instants in ascending order, (k,)."""
        return self._times[: self.count]

    @property
    def free(self) -> IntArray:
        """Amounts free from each instant on, (k, n_owner, n_resource)."""
        return self._free[: self.count]

    def startable(self, jobs: IntArray, positions: IntArray, placement: PlacementPolicy) -> IntArray:
        """Return those of the `positions` whose jobs may fit from now on for their requested time, (k,)."""
        if not len(positions):
            return positions
        view, rows = self.snapshot, jobs[positions]
        until = self.times.searchsorted(view.now + np.minimum(view.table.requested[rows], HORIZON - view.now))
        least = np.minimum.accumulate(self.free[: int(until.max())])  # (m, n_owner, n_resource) over [now, instant m]
        return positions[placement.prefilter(rows, least[until - 1], view)]

    def reserve(self, job: Job, placement: PlacementPolicy) -> Reservation | None:
        """Reserve the earliest interval in which the job fits throughout; return None if lost capacity leaves it none."""
        reservation = self.earliest(job, placement)
        if reservation is not None:
            self.occupy(reservation)
        return reservation

    def earliest(self, job: Job, placement: PlacementPolicy) -> Reservation | None:
        """Find the earliest interval in which the job fits throughout; return None if lost capacity leaves it none."""
        view, row, times = self.snapshot, np.array([job.index], dtype=np.int64), self.times
        infeasible = np.flatnonzero(~placement.prefilter(row, self.free, view))  # instants at which the job surely does not fit
        blocked = np.append(times[infeasible], NEVER)  # when a start at instant k meets the next such instant
        following = blocked[np.searchsorted(infeasible, np.arange(len(times)))]
        for k in np.flatnonzero(times + np.minimum(job.requested, HORIZON - times) <= following).tolist():
            place, end = self.fit(job, k, placement)
            if place is not None:
                return Reservation(int(times[k]), place, end)
        if isinstance(placement.place(job, view.empty()), Refusal):
            return None
        problem = "fits on the empty machine, but at no instant of the plan: its placement policy is not monotone"
        raise PolicyError(f"job in row {job.index} {problem}")

    def fit(self, job: Job, k: int, placement: PlacementPolicy) -> tuple[Placement | None, int]:
        """Return placement and end for a start at instant k. Placement and run time depend on each other, so this iterates."""
        times, view = self.times, self.snapshot
        start, length = int(times[k]), job.requested
        until = 0
        place: Placement | None = None
        while True:
            before, until = until, max(int(times.searchsorted(min(start + length, HORIZON))), k + 1)
            if until == before:  # the longer run meets no further instant, so the free amounts are the same
                return place, min(start + length, HORIZON)
            state = view.imagined(start, self.free[k:until].min(axis=0))
            answer = placement.place(job, state)
            if isinstance(answer, Refusal):
                return None, 0
            place = answer
            needed = state.expected_end(job.index, place) - start
            if needed <= length:
                return place, min(start + length, HORIZON)
            length = needed

    def first_shortage(self, job: Job, placement: PlacementPolicy) -> Refusal:
        """Return the shortage of a job that would start now, at the first instant at which it no longer fits."""
        view = self.snapshot
        for least in np.minimum.accumulate(self.free):
            refusal = placement.place(job, view.imagined(view.now, least))
            if isinstance(refusal, Refusal):
                return refusal
        raise PolicyError(
            f"job in row {job.index} fits at every instant but not throughout: its placement policy is not monotone"
        )

    def holds(self, reservation: Reservation) -> bool:
        """Return whether the reserved amounts are free throughout the interval of the reservation."""
        if reservation.start == reservation.end:
            return True  # an empty interval at the horizon
        first = int(self.times.searchsorted(reservation.start, side="right")) - 1
        least = self.free[first : int(self.times.searchsorted(reservation.end))].min(axis=0)
        return bool((self._amounts(reservation.placement) <= np.maximum(least, 0)).all())

    def occupy(self, reservation: Reservation) -> None:
        """Subtract the reserved amounts from the free amounts in the interval of the reservation."""
        if reservation.start == reservation.end:
            return  # an empty interval at the horizon
        first, last = self._instant(reservation.start), self._instant(reservation.end)
        self._free[first:last] -= self._amounts(reservation.placement)

    def release(self, reservation: Reservation) -> None:
        """Undo `occupy`, and remove instants at which nothing changes any more, except ends of windows."""
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
        """Return the amounts that a placement holds, (n_owner, n_resource)."""
        held = np.zeros(self._free.shape[1:], dtype=np.int64)
        placement.give_to(held)
        return held

    def _instant(self, time: int) -> int:
        """Return the position of an instant, which is inserted if missing, with the free amounts of the instant before."""
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
