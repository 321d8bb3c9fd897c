"""Reservation of the head of the queue under EASY: its shadow time, and which backfill candidates leave it room then.

Without borrowing, the head starts at the k-th of the times at which nodes can first hold a part of it, where k is its number of
parts (`shadow`). They are cached from pass to pass (`timeline.update_ready`).
Source: `policies.backfill.easy`.
"""

from __future__ import annotations

from poolwise.kernels.common.events import window
from poolwise.kernels.common.state import EASY
from poolwise.kernels.jit import inlined, step
from poolwise.kernels.shared_nodes.borrowing import adjust_shadow, find_shadow_time, shadow_holds
from poolwise.kernels.shared_nodes.choose import borrows, choose
from poolwise.kernels.shared_nodes.room import finds_room, place
from poolwise.kernels.shared_nodes.runs import start
from poolwise.kernels.shared_nodes.shadow import time_of_fit
from poolwise.kernels.shared_nodes.slowdown import expected
from poolwise.kernels.shared_nodes.state import (
    MEMORY,
    KindArrays,
    NodeArrays,
    ShadowArrays,
    SharedState,
    WindowArrays,
)
from poolwise.kernels.shared_nodes.timeline import evaluate_node, is_overdue, released_until, update_ready
from poolwise.kernels.shared_nodes.windows import kind_now, next_closing, shadow_time_with_windows


@step
def reserve(head: int, state: SharedState, windows: WindowArrays | None) -> None:
    """Find the shadow time of a head that does not fit now, and the machine at that time."""
    now = state.now
    kind = state.jobs.kind[head]
    now.head, now.borrows = head, int(borrows(kind, state.kinds, state.nodes))
    now.reservation += 1
    if now.borrows:
        find_shadow_time(kind, state, is_overdue(state))
    else:
        now.shadow_kind = -1
        update_ready(kind, state)
        if windows is None:
            now.shadow = time_of_fit(kind, 0, state)
        else:
            shadow_time_with_windows(head, state, windows)
    now.window = window(now)


@step
def leaves_room(kind: int, state: SharedState) -> bool:
    """Return whether a job of a kind that fits now and runs beyond the shadow time leaves the head room; cached per kind."""
    kinds, timeline, now = state.kinds, state.timeline, state.now
    if state.rules.backfill != EASY:
        return False
    if kinds.room_at[kind] != now.reservation:
        kinds.room_at[kind] = now.reservation
        head = state.jobs.kind[now.head]
        if not now.borrows and timeline.holding[now.counted] - kinds.parts[kind] >= kinds.parts[head]:
            kinds.room[kind] = True  # regardless of the nodes chosen
            return True
        place(kind, state)
        if now.borrows:
            kinds.room[kind] = _head_still_fits(kind, head, kinds, state.nodes, state.at_shadow)
        else:
            lost = _count_lost_nodes(kind, head, state)
            kinds.room[kind] = timeline.holding[now.counted] - lost >= kinds.parts[head]
    return bool(kinds.room[kind])


@inlined
def _head_still_fits(kind: int, head: int, kinds: KindArrays, nodes: NodeArrays, at_shadow: ShadowArrays) -> bool:
    """Return whether the head still fits at its shadow time if the placement found last is made."""
    adjust_shadow(kind, -1, kinds, nodes, at_shadow)
    still_fits = shadow_holds(head, kinds, nodes, at_shadow)
    adjust_shadow(kind, 1, kinds, nodes, at_shadow)
    return still_fits


@inlined
def _count_lost_nodes(kind: int, head: int, state: SharedState) -> int:
    """Count the chosen nodes that could hold a part of the head at its shadow time, but not together with this job."""
    kinds, nodes, timeline, now = state.kinds, state.nodes, state.timeline, state.now
    lost, leaves = 0, nodes.top.shape[0] // 2
    for part in range(kinds.parts[kind]):
        n = nodes.chosen[part]
        if not timeline.exact[n]:
            evaluate_node(n, head, state)
        if timeline.ready[leaves + n] > now.shadow or nodes.group[n] & timeline.closed[now.counted] != 0:
            continue
        for d in range(nodes.top.shape[1]):
            short = kinds.request[head, d] + kinds.request[kind, d] - nodes.top[leaves + n, d]
            if d == MEMORY:
                short -= nodes.borrow[part]
            if short > 0 and released_until(n, d, now.shadow, kinds, timeline, now) < short:
                lost += 1
                break
    return lost


@step
def may_start(job: int, state: SharedState, windows: WindowArrays | None) -> bool:
    """Return whether a job fits now and either ends by the shadow time or leaves the head room then."""
    now = state.now
    kind = kind_now(job, state, windows)
    if not finds_room(kind, state):
        return False
    if state.jobs.length[job] <= now.window and _ends_in_time(job, state):
        return True
    if leaves_room(kind, state):
        return True
    if windows is not None:
        now.next_shift = min(now.next_shift, next_closing(job, state, windows))
    return False


@inlined
def _ends_in_time(job: int, state: SharedState) -> bool:
    """Return whether a job whose minimum runtime ends by the shadow time also ends by then with the memory that it borrows."""
    jobs = state.jobs
    if jobs.near.size == 0:
        return True
    choose(jobs.kind[job], state.rules, state.kinds, state.nodes)
    return bool(expected(job, state) <= state.now.window)


@step
def backfill(job: int, state: SharedState, windows: WindowArrays | None) -> None:
    """Start a candidate that `may_start`, and subtract it from the machine at the head's shadow time."""
    kinds, nodes, now = state.kinds, state.nodes, state.now
    kind = kind_now(job, state, windows)
    choose(kind, state.rules, kinds, nodes)
    if now.borrows and expected(job, state) > now.window:
        adjust_shadow(kind, -1, kinds, nodes, state.at_shadow)
    start(job, state)
    if not now.borrows:
        update_ready(state.jobs.kind[now.head], state)
