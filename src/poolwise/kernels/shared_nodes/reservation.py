"""Reservation of the head of the queue under EASY: its shadow time, and which backfill candidates leave it room then.

Without borrowing, the first times at which each node can hold a part of the head decide: the head starts at the k-th of them,
k being its number of parts (`shadow`). They are cached from pass to pass (`timeline.update_ready`).
Source: `policies.backfill.easy`.
"""

from __future__ import annotations

from poolwise.arrays import IntArray
from poolwise.kernels.jit import inlined, step
from poolwise.kernels.list_scheduling.state import EASY
from poolwise.kernels.shared_nodes.borrowing import adjust_shadow, find_shadow_time, shadow_holds
from poolwise.kernels.shared_nodes.choose import borrows, choose
from poolwise.kernels.shared_nodes.room import finds_room, place
from poolwise.kernels.shared_nodes.runs import start
from poolwise.kernels.shared_nodes.shadow import time_of_fit
from poolwise.kernels.shared_nodes.slowdown import expected
from poolwise.kernels.shared_nodes.state import (
    BORROWS,
    COUNTED,
    HEAD,
    MEMORY,
    NEXT_SHIFT,
    RESERVATION,
    SHADOW,
    SHADOW_KIND,
    TIME,
    WINDOW,
    KindArrays,
    NodeArrays,
    ShadowArrays,
    SharedJobs,
    SharedRules,
    SharedRuns,
    TimelineArrays,
    WindowArrays,
)
from poolwise.kernels.shared_nodes.timeline import evaluate_node, is_overdue, released_until, update_ready
from poolwise.kernels.shared_nodes.windows import kind_now, next_closing, shadow_time_with_windows
from poolwise.units import HORIZON, NEVER


@step
def reserve(
    head: int,
    jobs: SharedJobs,
    kinds: KindArrays,
    nodes: NodeArrays,
    timeline: TimelineArrays,
    at_shadow: ShadowArrays,
    windows: WindowArrays | None,
    runs: SharedRuns,
    now: IntArray,
) -> None:
    """Find the shadow time of a head that does not fit now, and the machine at that time."""
    kind = jobs.nodes[head]
    now[HEAD], now[BORROWS] = head, int(borrows(kind, kinds, nodes))
    now[RESERVATION] += 1
    if now[BORROWS]:
        find_shadow_time(kind, jobs, kinds, nodes, at_shadow, runs, is_overdue(timeline, now), now)
    else:
        now[SHADOW_KIND] = -1
        update_ready(kind, kinds, nodes, timeline, now)
        if windows is None:
            now[SHADOW] = time_of_fit(kind, 0, kinds, nodes, timeline, now)
        else:
            shadow_time_with_windows(head, jobs, kinds, nodes, timeline, windows, now)
    now[WINDOW] = window(now)


@inlined
def window(now: IntArray) -> int:
    """Return the longest expected runtime that ends by the shadow time; later ends are cut off at the horizon."""
    return int(now[SHADOW] - now[TIME] if now[SHADOW] < HORIZON else NEVER)


@step
def leaves_room(
    kind: int,
    rules: SharedRules,
    jobs: SharedJobs,
    kinds: KindArrays,
    nodes: NodeArrays,
    timeline: TimelineArrays,
    at_shadow: ShadowArrays,
    now: IntArray,
) -> bool:
    """Return whether a job of a kind that fits now and runs beyond the shadow time leaves the head room; cached per kind."""
    if rules.backfill != EASY:
        return False
    if kinds.room_at[kind] != now[RESERVATION]:
        kinds.room_at[kind] = now[RESERVATION]
        head = jobs.nodes[now[HEAD]]
        if not now[BORROWS] and timeline.holding[now[COUNTED]] - kinds.parts[kind] >= kinds.parts[head]:
            kinds.room[kind] = True  # regardless of the nodes chosen
            return True
        place(kind, rules, kinds, nodes)
        if now[BORROWS]:
            kinds.room[kind] = _head_still_fits(kind, head, kinds, nodes, at_shadow)
        else:
            lost = _count_lost_nodes(kind, head, kinds, nodes, timeline, now)
            kinds.room[kind] = timeline.holding[now[COUNTED]] - lost >= kinds.parts[head]
    return bool(kinds.room[kind])


@inlined
def _head_still_fits(kind: int, head: int, kinds: KindArrays, nodes: NodeArrays, at_shadow: ShadowArrays) -> bool:
    """Return whether the head still fits at its shadow time if the placement found last is made."""
    adjust_shadow(kind, -1, kinds, nodes, at_shadow)
    found = shadow_holds(head, kinds, nodes, at_shadow)
    adjust_shadow(kind, 1, kinds, nodes, at_shadow)
    return found


@inlined
def _count_lost_nodes(
    kind: int, head: int, kinds: KindArrays, nodes: NodeArrays, timeline: TimelineArrays, now: IntArray
) -> int:
    """Count the chosen nodes that could hold a part of the head at its shadow time, but not together with this job."""
    lost, leaves = 0, nodes.top.shape[0] // 2
    for part in range(kinds.parts[kind]):
        n = nodes.chosen[part]
        if not timeline.exact[n]:
            evaluate_node(n, head, kinds, nodes, timeline, now)
        if timeline.ready[leaves + n] > now[SHADOW] or nodes.group[n] & timeline.closed[now[COUNTED]] != 0:
            continue
        for d in range(nodes.top.shape[1]):
            short = kinds.request[head, d] + kinds.request[kind, d] - nodes.top[leaves + n, d]
            if d == MEMORY:
                short -= nodes.borrow[part]
            if short > 0 and released_until(n, d, now[SHADOW], kinds, timeline, now) < short:
                lost += 1
                break
    return lost


@step
def may_start(
    job: int,
    rules: SharedRules,
    jobs: SharedJobs,
    kinds: KindArrays,
    nodes: NodeArrays,
    timeline: TimelineArrays,
    at_shadow: ShadowArrays,
    windows: WindowArrays | None,
    now: IntArray,
) -> bool:
    """Return whether a job fits now and either ends by the shadow time or leaves the head room then."""
    kind = kind_now(job, jobs, windows, now)
    if not finds_room(kind, kinds, nodes, now):
        return False
    if jobs.length[job] <= now[WINDOW] and _ends_in_time(job, rules, jobs, kinds, nodes, now):
        return True
    if leaves_room(kind, rules, jobs, kinds, nodes, timeline, at_shadow, now):
        return True
    if windows is not None:
        now[NEXT_SHIFT] = min(now[NEXT_SHIFT], next_closing(job, jobs, windows, now))
    return False


@inlined
def _ends_in_time(job: int, rules: SharedRules, jobs: SharedJobs, kinds: KindArrays, nodes: NodeArrays, now: IntArray) -> bool:
    """Return whether a job whose lower bound ends by the shadow time does so with the memory that it borrows."""
    if jobs.near.size == 0:
        return True
    choose(jobs.nodes[job], rules, kinds, nodes)
    return bool(expected(job, rules, jobs, kinds, nodes) <= now[WINDOW])


@step
def backfill(
    job: int,
    rules: SharedRules,
    jobs: SharedJobs,
    kinds: KindArrays,
    nodes: NodeArrays,
    timeline: TimelineArrays,
    at_shadow: ShadowArrays,
    windows: WindowArrays | None,
    runs: SharedRuns,
    now: IntArray,
) -> None:
    """Start a candidate that `may_start`, and subtract it from the machine at the head's shadow time."""
    kind = kind_now(job, jobs, windows, now)
    choose(kind, rules, kinds, nodes)
    if now[BORROWS] and expected(job, rules, jobs, kinds, nodes) > now[WINDOW]:
        adjust_shadow(kind, -1, kinds, nodes, at_shadow)
    start(job, rules, jobs, kinds, nodes, timeline, runs, now)
    if not now[BORROWS]:
        update_ready(jobs.nodes[now[HEAD]], kinds, nodes, timeline, now)
