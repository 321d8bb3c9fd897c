"""One pass of conservative backfilling with held reservations: they only move forward, unless they no longer fit.

Equals `policies.backfill.conservative.IncrementalConservative`, reservation by reservation.
"""

from __future__ import annotations

from poolwise.arrays import IntArray
from poolwise.kernels.jit import step
from poolwise.kernels.list_scheduling import heap
from poolwise.kernels.list_scheduling.earliest import earliest
from poolwise.kernels.list_scheduling.order import key_in_front
from poolwise.kernels.list_scheduling.profile import before, build_profile, change, drop_instant
from poolwise.kernels.list_scheduling.racks import copy
from poolwise.kernels.list_scheduling.runs import start
from poolwise.kernels.list_scheduling.state import (
    INSTANT_COUNT,
    LENGTH_FOUND,
    TIME,
    WAITING,
    JobArrays,
    Order,
    ProfileArrays,
    QueueArrays,
    RackArrays,
    ReservationArrays,
    Rules,
    RunArrays,
)
from poolwise.kernels.list_scheduling.waiting import leave
from poolwise.units import HORIZON, NEVER

ALL, HELD, NEW = range(3)
"""Jobs whose reservations are moved forward: all waiting jobs, those with a reservation, those without."""


@step
def incremental_pass(
    jobs: JobArrays,
    order: Order,
    rules: Rules,
    racks: RackArrays,
    queue: QueueArrays,
    profile: ProfileArrays,
    held: ReservationArrays,
    runs: RunArrays,
    now: IntArray,
) -> None:
    """Move reservations forward, make those of new jobs, and start the jobs whose reservations begin now."""
    build_profile(racks, profile, runs, now)
    waiting = now[WAITING]
    for k in range(waiting):
        order.key[queue.job[k]] = key_in_front(queue.job[k], order, now)
        queue.chosen[k] = queue.job[k]
    heap.arrange(queue.chosen, waiting, order.key)
    for k in range(waiting):
        held.ranked[k] = heap.pop(queue.chosen, waiting - k, order.key)
    _book_held(waiting, queue, profile, held, now)
    turn, moved = HELD, True
    while moved:
        moved = _bring_forward(turn, waiting, jobs, rules, racks, profile, held, now)
        if turn == HELD:
            moved = _bring_forward(NEW, waiting, jobs, rules, racks, profile, held, now) or moved
            turn = ALL
    for k in range(waiting):
        job = held.ranked[k]
        if held.start[job] == now[TIME]:
            copy(held.take[job], racks.take)
            copy(held.borrow[job], racks.borrow)
            held.start[job] = -1
            start(job, jobs, rules, racks, runs, now)
            leave(job, queue, now)


@step
def _book_held(waiting: int, queue: QueueArrays, profile: ProfileArrays, held: ReservationArrays, now: IntArray) -> None:
    """Add the reservations that still fit to the profile, in the order of their starts; drop the others."""
    for k in range(waiting):
        begin = held.start[held.ranked[k]]
        held.begin[k] = begin if begin >= 0 else NEVER
        queue.chosen[k] = k
    heap.arrange(queue.chosen, waiting, held.begin)
    for k in range(waiting):
        job = held.ranked[heap.pop(queue.chosen, waiting - k, held.begin)]
        if held.start[job] < 0:
            return
        late = max(now[TIME] - held.start[job], 0)
        held.start[job] += late
        held.end[job] += min(late, HORIZON - held.end[job])
        if _still_fits(job, profile, held):
            change(held.start[job], held.end[job], held.take[job], held.borrow[job], -1, profile)
        else:
            held.start[job] = -1


@step
def _still_fits(job: int, profile: ProfileArrays, held: ReservationArrays) -> bool:
    """Return whether the capacity of a reservation is free throughout its interval."""
    begin, end = held.start[job], held.end[job]
    m = before(begin + 1, profile) - 1
    while begin < end and m < profile.size[INSTANT_COUNT] and profile.time[m] < end:
        for r in range(profile.free.shape[0]):
            if held.take[job, r] > profile.free[r, m] or held.borrow[job, r] > profile.pool[r, m]:
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
    held: ReservationArrays,
    now: IntArray,
) -> bool:
    """Move each job's reservation to the earliest interval that the others leave free; return whether any moved."""
    moved = False
    for i in range(waiting):
        job = held.ranked[i]
        begin, end = held.start[job], held.end[job]
        if (turn == HELD and begin < 0) or (turn == NEW and begin >= 0) or begin == now[TIME]:
            continue
        if begin >= 0:
            change(begin, end, held.take[job], held.borrow[job], 1, profile)
            drop_instant(end, profile)
            drop_instant(begin, profile)
        k = earliest(job, 0, NEVER if begin < 0 else begin, jobs, rules, racks, profile)
        if k >= 0:
            copy(racks.take, held.take[job])
            copy(racks.borrow, held.borrow[job])
            held.start[job], held.end[job] = profile.time[k], profile.time[k] + profile.size[LENGTH_FOUND]
            moved = True
        if held.start[job] >= 0:
            change(held.start[job], held.end[job], held.take[job], held.borrow[job], -1, profile)
    return moved
