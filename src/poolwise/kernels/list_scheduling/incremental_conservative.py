"""One pass of conservative backfilling with held reservations: they only move forward, unless they no longer fit.

Equals `policies.backfill.conservative.IncrementalConservative`, reservation by reservation.
"""

from __future__ import annotations

from poolwise.kernels.common import heap
from poolwise.kernels.jit import step
from poolwise.kernels.list_scheduling.earliest import earliest
from poolwise.kernels.list_scheduling.profile import before, build_profile, change, drop_instant
from poolwise.kernels.list_scheduling.racks import copy
from poolwise.kernels.list_scheduling.runs import start_at
from poolwise.kernels.list_scheduling.state import ProfileArrays, RackState, ReservationArrays
from poolwise.kernels.list_scheduling.waiting import key_in_front, leave
from poolwise.quantities import HORIZON, NEVER

ALL, HELD, NEW = range(3)
"""Jobs whose reservations are moved forward: all waiting jobs, those with a reservation, those without."""


@step
def incremental_pass(state: RackState, profile: ProfileArrays, held: ReservationArrays) -> None:
    """Move reservations forward, reserve for new jobs, and start the jobs whose reservations begin now."""
    order, now = state.order, state.now
    build_profile(state, profile)
    waiting = now.waiting
    for k in range(waiting):
        job = state.queue.job[k]
        order.key[job], held.ranked[k] = key_in_front(job, order, now), job
    heap.sort(held.ranked, waiting, order.key)
    _book_held(waiting, state, profile, held)
    turn, moved = HELD, True
    while moved:
        moved = _bring_forward(turn, waiting, state, profile, held)
        if turn == HELD:
            moved = _bring_forward(NEW, waiting, state, profile, held) or moved
            turn = ALL
    for k in range(waiting):
        job = held.ranked[k]
        if held.start[job] == now.time:
            held.start[job] = -1
            start_at(job, held.take[job], held.borrow[job], state)
            leave(job, state)


@step
def _book_held(waiting: int, state: RackState, profile: ProfileArrays, held: ReservationArrays) -> None:
    """Add the reservations that still fit to the profile, in the order of their starts; drop the others."""
    for k in range(waiting):
        begin = held.start[held.ranked[k]]
        held.begin[k] = begin if begin >= 0 else NEVER
        state.waiting.chosen[k] = k
    heap.arrange(state.waiting.chosen, waiting, held.begin)
    for k in range(waiting):
        job = held.ranked[heap.pop(state.waiting.chosen, waiting - k, held.begin)]
        if held.start[job] < 0:
            return
        late = max(state.now.time - held.start[job], 0)
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
    while begin < end and m < profile.status.instants and profile.time[m] < end:
        for r in range(profile.free.shape[0]):
            if held.take[job, r] > profile.free[r, m] or held.borrow[job, r] > profile.pool[r, m]:
                return False
        m += 1
    return True


@step
def _bring_forward(turn: int, waiting: int, state: RackState, profile: ProfileArrays, held: ReservationArrays) -> bool:
    """Move each job's reservation to the earliest interval that the others leave free; return whether any moved."""
    racks = state.racks
    moved = False
    for i in range(waiting):
        job = held.ranked[i]
        begin, end = held.start[job], held.end[job]
        if (turn == HELD and begin < 0) or (turn == NEW and begin >= 0) or begin == state.now.time:
            continue
        if begin >= 0:
            change(begin, end, held.take[job], held.borrow[job], 1, profile)
            drop_instant(end, profile)
            drop_instant(begin, profile)
        k = earliest(job, 0, NEVER if begin < 0 else begin, state.jobs, state.rules, racks, profile)
        if k >= 0:
            copy(racks.take, held.take[job])
            copy(racks.borrow, held.borrow[job])
            held.start[job], held.end[job] = profile.time[k], profile.time[k] + profile.status.length_found
            moved = True
        if held.start[job] >= 0:
            change(held.start[job], held.end[job], held.take[job], held.borrow[job], -1, profile)
    return moved
