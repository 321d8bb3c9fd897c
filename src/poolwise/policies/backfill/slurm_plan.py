"""One pass of Slurm's backfill: for each job in turn when it could start, and what is held for it from then on.

Every rule here was read in the log of a Slurm 22.05.8 (DebugFlags=Backfill,BackfillMap,SelectType); `tests/policies/` holds
them against all that it decided in recorded days. slurm.conf(5) describes bf_resolution, bf_window and bf_window_linear.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Final, NamedTuple

import numpy as np

from poolwise.arrays import BoolArray, IntArray
from poolwise.interfaces import PlacementPolicy
from poolwise.model import Job, Kind, Placement, Refusal, Snapshot
from poolwise.units import HORIZON, OVERDUE, SECOND

PRECISION: Final = 30 * SECOND
"""Ends of runs within it are taken together at first, then twice as many ("bf_window_linear": by default it doubles)."""


class ExpectedStart(NamedTuple):
    """When (ns) a job could start, and where."""

    start: int
    placement: Placement


class _Segment(NamedTuple):
    """An interval (ns), and the (n_owner, n_resource) amounts held in it for jobs that wait."""

    begin: int
    end: int
    held: IntArray


class BackfillPlan:
    """What a pass has found so far: the runs, those that it has started among them, and what is held for jobs that wait.

    Times count in whole seconds, rounded down. What a job is to get is held from its expected start to the end of its limit,
    both rounded down to the resolution, with the whole of each shared node.

    Parameters
    ----------
    state
        The state in which the pass begins.
    window
        How far it looks ahead (ns).
    resolution
        Steps in which it counts time (ns).
    """

    def __init__(self, state: Snapshot, window: int, resolution: int) -> None:
        self.now, self._window, self._resolution = _seconds(state.now), window, resolution
        begin = self.now // resolution * resolution
        self._segments = [_Segment(begin, begin + window, np.zeros_like(state.free))]
        machine = state.machine
        nodes, shared = machine.kind == Kind.NODE, np.ones(machine.n_owner, dtype=np.bool_)
        if "nodes" in machine.resources:
            shared = machine.capacity[:, machine.resource("nodes")] == 0
        self._shared = nodes & shared
        self._counted = np.flatnonzero((nodes & ~shared) | (machine.kind == Kind.POOL))
        self._see(state)

    def _see(self, state: Snapshot) -> None:
        """Bring the runs up to a state, in the order of their ends, those that end together in that of their jobs.

        One that is overdue is expected to end a second from now.
        """
        self._state, machine = state, state.machine
        soon = self.now + OVERDUE
        ending = sorted((max(_seconds(run.expected_end), soon), run.job, run.id) for run in state.runs())
        runs = [state.run(number) for _, _, number in ending]
        windows = [window.end for window in machine.windows if window.end > state.now]
        ends = np.array([*(end for end, _, _ in ending), *windows], dtype=np.int64)
        released = np.zeros((len(ends), *state.free.shape), dtype=np.int64)
        for amounts, run in zip(released, runs, strict=False):
            run.placement.give_to(amounts)
        order = np.argsort(ends, kind="stable")
        self._ends, released = ends[order], released[order]
        self._everywhere = order >= len(runs)  # the end of a window concerns every job
        self._holds = released > 0
        self._free = state.free + np.concatenate([np.zeros_like(state.free)[None], released.cumsum(axis=0)])

    def plan_job(self, job: Job, placement: PlacementPolicy) -> ExpectedStart | None:
        """Find a job's start. It is a run from then on if that is now; else what it is to get is held for it.

        None where no start is known; nothing is held of what would begin beyond the window.
        """
        found = self.expected(job, placement)
        if found is None:
            return None
        if found.start <= self.now:
            self._see(self._state.with_started(job.index, found.placement))
        elif found.start <= self.now + self._window:
            self._hold(found, job)
        return found

    def expected(self, job: Job, placement: PlacementPolicy) -> ExpectedStart | None:
        """Find when a job could start; None where that is not known.

        It is tried from now on, beside all that is held up to the end of its limit: when enough runs are over it fits. If
        by then something that was held is given back, it is tried again from that instant; and if it would run into what is
        held later, from its start.
        """
        begin = self.now
        while True:
            held, later = self._held(begin, _end(begin, job))
            found = self._fit(job, held, placement)
            if found is not None:
                found = found._replace(start=max(found.start, begin))
                if found.start <= self.now:
                    return found
                if later is None or found.start <= later:
                    if found.start == begin or not self._meets(found, job):
                        return found
                    later = found.start
            if later is None:
                return None
            begin = later

    def starts_now(self, job: Job, placement: PlacementPolicy) -> bool:
        """Whether a job fits now beside all that is held up to the end of its limit."""
        found = self._fit(job, self._held(self.now, _end(self.now, job))[0], placement)
        return found is not None and found.start <= self.now

    def _held(self, begin: int, end: int) -> tuple[list[_Segment], int | None]:
        """What is held in an interval, and when first any of the most of it is given back."""
        met, held, later = list[_Segment](), np.zeros_like(self._state.free), None
        for segment, following in zip(self._segments, [*self._segments[1:], None], strict=True):
            if segment.end <= begin:
                continue
            if segment.begin <= end:
                held = np.maximum(held, segment.held)
                met.append(segment)
            elif later is not None:
                break
            if later is None and following is not None and bool((following.held < held).any()):
                later = segment.end
        return met, later

    def _fit(self, job: Job, held: list[_Segment], placement: PlacementPolicy) -> ExpectedStart | None:
        """When a job first fits beside what is held, as runs end; None where it does not even then.

        Nodes have names: one that is held at any time in the interval is no node for the job. What is counted (pools, nodes
        that are taken whole) needs to be there at each time.
        """
        most = np.maximum.reduce([segment.held for segment in held])
        times, over = [self.now], [0]
        for time, count in self._precise(self._state.capacity > most):
            times.append(time)
            over.append(count)
        free, rows = self._free[over] - most, self._counted
        if len(rows):
            each = (self._free[np.maximum(over, self._over(at.begin))][:, rows] - at.held[rows] for at in held)
            free[:, rows] = np.minimum.reduce([self._free[over][:, rows], *each])
        free = np.maximum(free, 0)
        row = np.array([job.index], dtype=np.int64)
        for k in np.flatnonzero(placement.screen(row, free, self._state)).tolist():
            found = placement.place(job, self._state.imagined(max(times[k], self._state.now), free[k]))
            if not isinstance(found, Refusal):
                return ExpectedStart(times[k], found)
        return None

    def _precise(self, usable: BoolArray) -> Iterator[tuple[int, int]]:
        """Instants at which a job is tried, and how many of the runs are over by then.

        Runs are taken off together whose ends lie up to the end of a period: the first period ends `PRECISION` after the next
        whole multiple of it behind the first end, further ones are twice as long each and follow it without a gap. A run that
        holds nothing of what is `usable`, (n_owner, n_resource), is passed over, and with it the question whether the period
        is over before the next one.
        """
        mine = self._everywhere | (self._holds & usable).any(axis=(1, 2))
        ends, period, k = self._ends.tolist(), PRECISION, 0
        until: int | None = None
        while k < len(ends):
            last, first = -1, True
            while k < len(ends):
                end, touches = ends[k], bool(mine[k])
                k += 1
                if not touches:
                    continue
                if first:
                    until = end + PRECISION - end % PRECISION if until is None else until
                    until += max(-((until + period - end) // period), 0) * period
                last, first = end, False
                if k < len(ends) and until is not None and ends[k] > until + period:
                    break
            if last < 0:
                return
            yield last, k
            period *= 2

    def _span(self, found: ExpectedStart, job: Job) -> tuple[int, int]:
        """The interval for which a start is held."""
        step = self._resolution
        return found.start // step * step, _end(found.start, job) // step * step

    def _meets(self, found: ExpectedStart, job: Job) -> bool:
        """Whether a start would take what is held for others in its interval."""
        (begin, end), amounts = self._span(found, job), self._amounts(found.placement)
        return any(
            bool((amounts > np.maximum(self._free[self._over(max(found.start, segment.begin))] - segment.held, 0)).any())
            for segment in self._segments
            if segment.begin < end and segment.end > begin
        )

    def _over(self, time: int) -> int:
        """How many runs are over at a time (ns)."""
        return int(self._ends.searchsorted(time, side="right"))

    def _hold(self, found: ExpectedStart, job: Job) -> None:
        (begin, end), amounts = self._span(found, job), self._amounts(found.placement)
        segments = list[_Segment]()
        for segment in self._segments:
            cuts = [segment.begin, *(at for at in (begin, end) if segment.begin < at < segment.end), segment.end]
            for low, high in pairwise(cuts):
                inside = begin <= low and high <= end
                segments.append(_Segment(low, high, segment.held + amounts if inside else segment.held))
        self._segments = segments

    def _amounts(self, placement: Placement) -> IntArray:
        """(n_owner, n_resource) what is held for a placement: of a shared node all that it has."""
        held = np.zeros_like(self._state.free)
        placement.give_to(held)
        whole = self._shared & (held > 0).any(axis=1)
        held[whole] = self._state.capacity[whole]
        return held


def _seconds(time: int) -> int:
    """A time (ns), rounded down to a whole second."""
    return time // SECOND * SECOND


def _end(begin: int, job: Job) -> int:
    """The end of a job's limit (ns)."""
    return begin + min(job.requested, HORIZON - begin)
