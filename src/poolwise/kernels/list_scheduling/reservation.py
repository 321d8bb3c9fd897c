"""Reservation of the head of the queue under EASY: its shadow time, and the extra nodes and memory until then.

Source: specs of the memory pools, "Backfilling"; `policies.backfill.easy`.
"""

from __future__ import annotations

from poolwise.arrays import IntArray
from poolwise.kernels.common.events import window
from poolwise.kernels.common.state import EASY
from poolwise.kernels.jit import inlined, step
from poolwise.kernels.list_scheduling.racks import copy, expected, fits, offer, place_job, total
from poolwise.kernels.list_scheduling.runs import first_due, is_overdue, release, start
from poolwise.kernels.list_scheduling.state import MixedArrays, RackState
from poolwise.quantities import NEVER, OVERDUE


@step
def reserve(job: int, state: RackState) -> None:
    """Find the head's shadow time and the machine at that time: `now.shadow`, `racks.shadow_free`, `racks.shadow_pool`.

    `now.window` is the longest expected runtime that ends by then. The rest is cached while the head stays the same; the cache
    is exact. A job backfilled since either ends by the shadow time or was subtracted from the machine at that time with the
    head still fitting. Before the shadow time even less is free, and the head did not fit there already; at the shadow time the
    cached machine is correct. A run that ended when expected was accounted for. A run that ends at another time, a start in
    order or another head invalidates the cache (`now.head = -1`); the search then starts from the last shadow time. While a run
    is overdue its expected end moves with the clock, so nothing is cached. Nothing is cached either if the reservation counts
    only nodes: the head may fit now, and its reservation is for the next release, whatever has started since.
    """
    rules, racks, now = state.rules, state.racks, state.now
    overdue = is_overdue(state)
    if now.head != job or overdue:
        cached = not (overdue or rules.nodes_only)
        now.head = job if cached else -1
        soon = now.running - 1
        if cached and now.shadow_tracked:
            soon = _step_back(job, state)
        else:
            copy(racks.free, racks.shadow_free)
            copy(racks.unlimited_pool if rules.nodes_only else racks.pool, racks.shadow_pool)
        find_shadow_time(job, soon, racks.shadow_free, racks.shadow_pool, state)
        now.shadow_tracked = int(cached)
        compute_extra(job, state)
    now.window = window(now)


@inlined
def _step_back(job: int, state: RackState) -> int:
    """Undo releases, the latest first, while a job fits; return the position in `due` of the next one.

    `racks.shadow_free` and `.shadow_pool` describe the machine at `now.shadow`, whichever job was the head: `runs` updates
    them at each start and end. Free capacity only grows with time, so this stops at the first time at which the job fits.
    """
    jobs, racks, now = state.jobs, state.racks, state.now
    n, remote = jobs.nodes[job], jobs.remote[job]
    free, pool = racks.shadow_free, racks.shadow_pool
    soon = first_due(now.shadow + 1, now.running, state) - 1
    while soon + 1 < now.running and fits(job, n, remote, state.rules.anywhere, jobs.mixed, free, pool):
        soon += 1
        release(state.due.run[soon], -1, free, pool, state)
    return int(soon)


@inlined
def find_shadow_time(job: int, soon: int, free: IntArray, pool: IntArray, state: RackState) -> None:
    """Release the runs from position `soon` as they are expected to end, until a job fits; those before it have ended."""
    jobs, runs, now, due = state.jobs, state.runs, state.now, state.due
    n, remote = jobs.nodes[job], jobs.remote[job]
    nodes, last = total(free), soon
    while soon >= 0 and runs.expected[due.run[soon]] <= now.time:  # overdue runs are last
        soon -= 1
    late = last - soon
    while soon >= 0 or late > 0:
        time = runs.expected[due.run[soon]] if soon >= 0 else NEVER
        if late > 0 and now.time + OVERDUE <= time:
            time = now.time + OVERDUE
            for i in range(now.running - late, now.running):
                nodes += release(due.run[i], 1, free, pool, state)
            late = 0
        while soon >= 0 and runs.expected[due.run[soon]] == time:  # all releases of one instant together
            nodes += release(due.run[soon], 1, free, pool, state)
            soon -= 1
        now.shadow = time
        if nodes >= n and fits(job, n, remote, state.rules.anywhere, jobs.mixed, free, pool):
            return


@step
def compute_extra(head: int, state: RackState) -> None:
    """Compute the head's extra capacity at its shadow time: nodes and MiB of all racks, and the most MiB for one more node.

    A job that ends after the shadow time and requests more than `now.extra_nodes`, `.extra_memory` or `.extra_per_node`
    certainly delays the head, wherever it is placed: all racks together would have less than the head needs, or the first node
    of the job, in any rack, would leave the head too few. All three only shrink within a pass. In scope "rack" this also
    writes, for `closed_form.classify`: `racks.offered`, `racks.required`, and `now.surplus`, the offered nodes
    minus those that the head needs.
    """
    jobs, rules, racks, now = state.jobs, state.rules, state.racks, state.now
    now.extra_nodes, now.extra_memory, now.extra_per_node = -1, -1, -1
    if rules.backfill != EASY:
        return
    n, remote = jobs.nodes[head], jobs.remote[head]
    free, pool = racks.shadow_free, racks.shadow_pool
    now.extra_nodes, now.extra_memory = total(free) - n, total(pool) - n * remote
    if not rules.closed:
        now.extra_per_node = NEVER
        return
    now.surplus = -n
    for r in range(free.size):
        racks.offered[r] = offer(free[r], pool[r], remote)
        now.surplus += racks.offered[r]
    for r in range(free.size):
        racks.required[r] = max(racks.offered[r] - now.surplus, 0)
        if free[r] > racks.required[r]:
            now.extra_per_node = max(now.extra_per_node, pool[r] - racks.required[r] * remote)


@inlined
def backfill(job: int, head: int, state: RackState) -> None:
    """Start a candidate that `may_start`."""
    now = state.now
    place_job(job, state)
    start(job, state)
    if state.runs.expected[now.started - 1] > now.shadow:
        compute_extra(head, state)


@inlined
def may_start(job: int, head: int, state: RackState) -> bool:
    """Return whether a job fits now and either ends by the shadow time or leaves the head room then (see `leaves_room`)."""
    rules, racks = state.rules, state.racks
    if not place_job(job, state):
        return False
    length = expected(job, state.jobs, racks.take, racks.borrow, rules)
    return length <= state.now.window or (rules.backfill == EASY and leaves_room(head, state))


@inlined
def leaves_room(head: int, state: RackState) -> bool:
    """Return whether the placement found last leaves the head room at its shadow time."""
    return _leaves_room(head, state.jobs.mixed, state)


@inlined
def _leaves_room(head: int, mixed: MixedArrays | None, state: RackState) -> bool:
    """Implement `leaves_room`, given the mixed nodes."""
    jobs, racks = state.jobs, state.racks
    n, remote, anywhere = jobs.nodes[head], jobs.remote[head], state.rules.anywhere
    shadow_free, shadow_pool = racks.shadow_free, racks.shadow_pool
    nodes, memory = 0, 0
    for r in range(shadow_free.size):
        free, pool = shadow_free[r] - racks.take[r], shadow_pool[r] - racks.borrow[r]
        if free < 0 or pool < 0:
            return False
        if mixed is not None:
            racks.offered[r], racks.required[r] = free, pool
        nodes += free if remote == 0 or anywhere else offer(free, pool, remote)
        memory += pool
    if mixed is not None:
        return fits(head, n, remote, anywhere, mixed, racks.offered, racks.required)
    return bool(nodes >= n and (not anywhere or memory >= n * remote))
