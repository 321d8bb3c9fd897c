"""Reservation of the head of the queue under EASY: its shadow time, and the extra nodes and memory until then.

Source: specs of the memory pools, "Backfilling"; `policies.backfill.easy`.
"""

from __future__ import annotations

from poolwise.arrays import IntArray
from poolwise.kernels.jit import inlined, step
from poolwise.kernels.list_scheduling.racks import copy, expected, fits, offer, place, total
from poolwise.kernels.list_scheduling.runs import first_due, release, reoccupy, start
from poolwise.kernels.list_scheduling.state import (
    EASY,
    EXTRA_MEMORY,
    EXTRA_NODES,
    EXTRA_PER_NODE,
    HEAD,
    RUNNING,
    SHADOW,
    SHADOW_TRACKED,
    STARTED,
    SURPLUS,
    TIME,
    WINDOW,
    JobArrays,
    RackArrays,
    Rules,
    RunArrays,
)
from poolwise.units import HORIZON, NEVER, OVERDUE


@step
def reserve(job: int, jobs: JobArrays, rules: Rules, racks: RackArrays, runs: RunArrays, now: IntArray) -> None:
    """Find the head's shadow time and the machine at that time: `now[SHADOW]`, `racks.shadow_free`, `racks.shadow_pool`.

    `now[WINDOW]` is the longest expected runtime that ends by then. The rest is cached while the same job is the head, which is
    exact. A job backfilled since either ends by the shadow time or was subtracted from the machine at that time with the head
    still fitting. Before the shadow time even less is free, and the head did not fit there already; at the shadow time the
    cached machine is correct. A run that ended when expected was accounted for. A run that ends at another time, a start in
    order or another head invalidates the cache (`now[HEAD] = -1`); the search then starts from the last shadow time. While a
    run is overdue its expected end moves with the clock, so nothing is cached. Nothing is cached either if the reservation
    counts only nodes: the head may fit now, and its reservation is for the next release, whatever has started since.
    """
    overdue = now[RUNNING] > 0 and runs.expected[runs.due[now[RUNNING] - 1]] <= now[TIME]
    if now[HEAD] != job or overdue:
        cached = not (overdue or rules.nodes_only)
        now[HEAD] = job if cached else -1
        soon = now[RUNNING] - 1
        if cached and now[SHADOW_TRACKED]:
            soon = _step_back(job, jobs, rules, racks, runs, now)
        else:
            copy(racks.free, racks.shadow_free)
            copy(racks.unlimited_pool if rules.nodes_only else racks.pool, racks.shadow_pool)
        _find_shadow_time(job, soon, jobs, rules, racks, runs, now)
        now[SHADOW_TRACKED] = int(cached)
        compute_extra(job, jobs, rules, racks, now)
    now[WINDOW] = now[SHADOW] - now[TIME] if now[SHADOW] < HORIZON else NEVER  # later ends are cut off at the horizon


@inlined
def _step_back(job: int, jobs: JobArrays, rules: Rules, racks: RackArrays, runs: RunArrays, now: IntArray) -> int:
    """Undo releases, the latest first, while a job fits; return the position in `due` of the next one.

    `racks.shadow_free` and `.shadow_pool` describe the machine at `now[SHADOW]`, whichever job was the head: `runs` updates
    them at each start and end. Free capacity only grows with time, so this stops at the first time at which the job fits.
    """
    n, remote = jobs.nodes[job], jobs.remote[job]
    free, pool = racks.shadow_free, racks.shadow_pool
    soon = first_due(now[SHADOW] + 1, now[RUNNING], runs) - 1
    while soon + 1 < now[RUNNING] and fits(n, remote, rules.anywhere, free, pool):
        soon += 1
        reoccupy(runs.due[soon], racks, runs, free, pool)
    return int(soon)


@inlined
def _find_shadow_time(
    job: int, soon: int, jobs: JobArrays, rules: Rules, racks: RackArrays, runs: RunArrays, now: IntArray
) -> None:
    """Release the runs from position `soon` as they are expected to end, until a job fits; those before it have ended."""
    n, remote = jobs.nodes[job], jobs.remote[job]
    free, pool = racks.shadow_free, racks.shadow_pool
    nodes, last = total(free), soon
    while soon >= 0 and runs.expected[runs.due[soon]] <= now[TIME]:  # overdue runs are last
        soon -= 1
    late = last - soon
    while soon >= 0 or late > 0:
        time = runs.expected[runs.due[soon]] if soon >= 0 else NEVER
        if late > 0 and now[TIME] + OVERDUE <= time:
            time = now[TIME] + OVERDUE
            for i in range(now[RUNNING] - late, now[RUNNING]):
                nodes += release(runs.due[i], racks, runs, free, pool)
            late = 0
        while soon >= 0 and runs.expected[runs.due[soon]] == time:  # all releases of one instant together
            nodes += release(runs.due[soon], racks, runs, free, pool)
            soon -= 1
        now[SHADOW] = time
        if nodes >= n and fits(n, remote, rules.anywhere, free, pool):
            return


@step
def compute_extra(head: int, jobs: JobArrays, rules: Rules, racks: RackArrays, now: IntArray) -> None:
    """Compute the head's extra capacity at its shadow time: nodes and MiB of all racks, most MiB for one more node.

    A job that ends after the shadow time and requests more than `now[EXTRA_NODES]`, `[EXTRA_MEMORY]` or `[EXTRA_PER_NODE]`
    certainly delays the head, wherever it is placed: all racks together would have less than the head needs, or the first node
    of the job, in any rack, would leave the head too few. All three only shrink within a pass. In scope "rack" this also
    writes, for `closed_form.classify`: `racks.offered`, `racks.required`, and `now[SURPLUS]`, the offered nodes
    minus those that the head needs.
    """
    now[EXTRA_NODES], now[EXTRA_MEMORY], now[EXTRA_PER_NODE] = -1, -1, -1
    if rules.backfill != EASY:
        return
    n, remote = jobs.nodes[head], jobs.remote[head]
    free, pool = racks.shadow_free, racks.shadow_pool
    now[EXTRA_NODES], now[EXTRA_MEMORY] = total(free) - n, total(pool) - n * remote
    if rules.anywhere:
        now[EXTRA_PER_NODE] = NEVER
        return
    now[SURPLUS] = -n
    for r in range(free.size):
        racks.offered[r] = offer(free[r], pool[r], remote)
        now[SURPLUS] += racks.offered[r]
    for r in range(free.size):
        racks.required[r] = max(racks.offered[r] - now[SURPLUS], 0)
        if free[r] > racks.required[r]:
            now[EXTRA_PER_NODE] = max(now[EXTRA_PER_NODE], pool[r] - racks.required[r] * remote)


@inlined
def try_start(job: int, head: int, jobs: JobArrays, rules: Rules, racks: RackArrays, runs: RunArrays, now: IntArray) -> bool:
    """Start a backfill candidate if it may start now; return whether it did."""
    if not may_start(job, head, jobs, rules, racks, now):
        return False
    start(job, jobs, rules, racks, runs, now)
    if runs.expected[now[STARTED] - 1] > now[SHADOW]:
        compute_extra(head, jobs, rules, racks, now)
    return True


@inlined
def may_start(job: int, head: int, jobs: JobArrays, rules: Rules, racks: RackArrays, now: IntArray) -> bool:
    """Return whether a job fits now and either ends by the shadow time or leaves the head room then (see `leaves_room`)."""
    anywhere = rules.anywhere
    if not place(jobs.nodes[job], jobs.remote[job], anywhere, racks.free, racks.pool, racks.take, racks.borrow):
        return False
    length = expected(job, jobs, racks.take, racks.borrow, anywhere, rules.believed_spread)
    return length <= now[WINDOW] or (rules.backfill == EASY and leaves_room(head, jobs, rules, racks, now))


@inlined
def leaves_room(head: int, jobs: JobArrays, rules: Rules, racks: RackArrays, now: IntArray) -> bool:
    """Return whether the placement found last leaves the head room at its shadow time."""
    n, remote, anywhere = jobs.nodes[head], jobs.remote[head], rules.anywhere
    shadow_free, shadow_pool = racks.shadow_free, racks.shadow_pool
    nodes, memory = 0, 0
    for r in range(shadow_free.size):
        free, pool = shadow_free[r] - racks.take[r], shadow_pool[r] - racks.borrow[r]
        if free < 0 or pool < 0:
            return False
        nodes += free if remote == 0 or anywhere else offer(free, pool, remote)
        memory += pool
    return bool(nodes >= n and (not anywhere or memory >= n * remote))
