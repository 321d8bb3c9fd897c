"""One pass of conservative backfilling whose reservations are kept: they only move forward, unless they no longer hold.

The same as `policies.backfill.conservative.IncrementalConservative`, reservation by reservation.
"""

from __future__ import annotations

from poolwise.arrays import IntArray
from poolwise.kernels.jit import step
from poolwise.kernels.list_scheduling import heap
from poolwise.kernels.list_scheduling.earliest import earliest
from poolwise.kernels.list_scheduling.order import key_in_front
from poolwise.kernels.list_scheduling.profile import before, change, foresee, forget
from poolwise.kernels.list_scheduling.racks import copy
from poolwise.kernels.list_scheduling.runs import start
from poolwise.kernels.list_scheduling.state import (
    INSTANT_COUNT,
    LENGTH_FOUND,
    TIME,
    WAITING,
    JobArrays,
    KeptArrays,
    Order,
    ProfileArrays,
    QueueArrays,
    RackArrays,
    Rules,
    RunArrays,
)
from poolwise.kernels.list_scheduling.waiting import leave
from poolwise.units import HORIZON, NEVER

ALL, HELD, NEW = range(3)
"""Whose turn it is: all waiting jobs, those with a reservation, those without."""


@step
def keep_promises(
    jobs: JobArrays,
    order: Order,
    rules: Rules,
    racks: RackArrays,
    queue: QueueArrays,
    profile: ProfileArrays,
    kept: KeptArrays,
    runs: RunArrays,
    now: IntArray,
) -> None:
    """Bring the reservations forward, make those of new jobs, and start the jobs whose reservations begin now."""
    foresee(racks, profile, runs, now)
    waiting = now[WAITING]
    for k in range(waiting):
        order.key[queue.job[k]] = key_in_front(queue.job[k], order, now)
        queue.chosen[k] = queue.job[k]
    heap.arrange(queue.chosen, waiting, order.key)
    for k in range(waiting):
        kept.ranked[k] = heap.pop(queue.chosen, waiting - k, order.key)
    _hold(waiting, queue, profile, kept, now)
    turn, moved = HELD, True
    while moved:
        moved = _bring_forward(turn, waiting, jobs, rules, racks, profile, kept, now)
        if turn == HELD:
            moved = _bring_forward(NEW, waiting, jobs, rules, racks, profile, kept, now) or moved
            turn = ALL
    for k in range(waiting):
        job = kept.ranked[k]
        if kept.start[job] == now[TIME]:
            copy(kept.take[job], racks.take)
            copy(kept.borrow[job], racks.borrow)
            kept.start[job] = -1
            start(job, jobs, rules, racks, runs, now)
            leave(job, queue, now)


@step
def _hold(waiting: int, queue: QueueArrays, profile: ProfileArrays, kept: KeptArrays, now: IntArray) -> None:
    """Put the reservations that still hold into the profile, those that begin first before others; drop the others."""
    for k in range(waiting):
        begin = kept.start[kept.ranked[k]]
        kept.begin[k] = begin if begin >= 0 else NEVER
        queue.chosen[k] = k
    heap.arrange(queue.chosen, waiting, kept.begin)
    for k in range(waiting):
        job = kept.ranked[heap.pop(queue.chosen, waiting - k, kept.begin)]
        if kept.start[job] < 0:
            return
        late = max(now[TIME] - kept.start[job], 0)
        kept.start[job] += late
        kept.end[job] += min(late, HORIZON - kept.end[job])
        if _holds(job, profile, kept):
            change(kept.start[job], kept.end[job], kept.take[job], kept.borrow[job], -1, profile)
        else:
            kept.start[job] = -1


@step
def _holds(job: int, profile: ProfileArrays, kept: KeptArrays) -> bool:
    """Whether what a reservation holds is free throughout its interval."""
    begin, end = kept.start[job], kept.end[job]
    m = before(begin + 1, profile) - 1
    while begin < end and m < profile.size[INSTANT_COUNT] and profile.time[m] < end:
        for r in range(profile.free.shape[0]):
            if kept.take[job, r] > profile.free[r, m] or kept.borrow[job, r] > profile.pool[r, m]:
                return False
        m += 1
    return True


@step
def _bring_forward(
    turn: int,
    waiting: int,
    jobs: JobArrays,
    rules: Rules,
    racks: RackArrays,
    profile: ProfileArrays,
    kept: KeptArrays,
    now: IntArray,
) -> bool:
    """Let each job in turn take the earliest interval that is free beside all the others; whether any moved."""
    moved = False
    for i in range(waiting):
        job = kept.ranked[i]
        begin, end = kept.start[job], kept.end[job]
        if (turn == HELD and begin < 0) or (turn == NEW and begin >= 0) or begin == now[TIME]:
            continue
        if begin >= 0:
            change(begin, end, kept.take[job], kept.borrow[job], 1, profile)
            forget(end, profile)
            forget(begin, profile)
        k = earliest(job, 0, NEVER if begin < 0 else begin, jobs, rules, racks, profile)
        if k >= 0:
            copy(racks.take, kept.take[job])
            copy(racks.borrow, kept.borrow[job])
            kept.start[job], kept.end[job] = profile.time[k], profile.time[k] + profile.size[LENGTH_FOUND]
            moved = True
        if kept.start[job] >= 0:
            change(kept.start[job], kept.end[job], kept.take[job], kept.borrow[job], -1, profile)
    return moved
