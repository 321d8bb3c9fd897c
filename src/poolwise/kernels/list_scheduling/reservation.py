"""What the head of the queue is promised under EASY: when it will start, and what others may use until then.

Source: specs of the memory pools, "Backfilling"; `policies.backfill.easy`.
"""

from __future__ import annotations

from poolwise.arrays import IntArray
from poolwise.kernels.jit import inlined, step
from poolwise.kernels.list_scheduling.racks import copy, expected, fits, offer, place, total
from poolwise.kernels.list_scheduling.runs import first_due, release, retain, start
from poolwise.kernels.list_scheduling.state import (
    EASY,
    FORESEEN,
    HEAD,
    RUNNING,
    SHADOW,
    SPARE_MEMORY,
    SPARE_MOST,
    SPARE_NODES,
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
    """Find the head's shadow time and the machine as it will be then: `now[SHADOW]`, `racks.then_free`, `racks.then_pool`.

    `now[WINDOW]` says how long a run may take that ends by then. The rest is kept while the same job is the head, and
    that is exact. A job backfilled since ends by the shadow time, or was taken off the machine of that time with the head
    still finding room: before it less is free than was counted on, where the head found no room already, and at it what
    was counted on. A run that ended when expected was counted on. What ends at another time, a start in order, or
    another head drops it (`now[HEAD] = -1`); then it is looked for from where the last one was found. While a run is
    overdue its release moves with the clock and nothing is kept. Nor is it where only nodes count: there the head may find
    room now, and its reservation is for the next release, whatever started since.
    """
    overdue = now[RUNNING] > 0 and runs.expected[runs.due[now[RUNNING] - 1]] <= now[TIME]
    if now[HEAD] != job or overdue:
        kept = not (overdue or rules.nodes_only)
        now[HEAD] = job if kept else -1
        soon = now[RUNNING] - 1
        if kept and now[FORESEEN]:
            soon = _step_back(job, jobs, rules, racks, runs, now)
        else:
            copy(racks.free, racks.then_free)
            copy(racks.endless if rules.nodes_only else racks.pool, racks.then_pool)
        _foresee(job, soon, jobs, rules, racks, runs, now)
        now[FORESEEN] = int(kept)
        spare(job, jobs, rules, racks, now)
    now[WINDOW] = now[SHADOW] - now[TIME] if now[SHADOW] < HORIZON else NEVER  # what would end later ends at the horizon


@inlined
def _step_back(job: int, jobs: JobArrays, rules: Rules, racks: RackArrays, runs: RunArrays, now: IntArray) -> int:
    """Take back releases, the latest first, as long as a job finds room; returns the position in `due` of the next one.

    The machine in `racks.then_free` and `.then_pool` is that at `now[SHADOW]`, whoever was the head: `runs` follows what
    starts and ends. More is free the later it is, so the first time at which there is room is where going back stops.
    """
    n, remote = jobs.nodes[job], jobs.remote[job]
    free, pool = racks.then_free, racks.then_pool
    soon = first_due(now[SHADOW] + 1, now[RUNNING], runs) - 1
    while soon + 1 < now[RUNNING] and fits(n, remote, rules.anywhere, free, pool):
        soon += 1
        retain(runs.due[soon], racks, runs, free, pool)
    return int(soon)


@inlined
def _foresee(job: int, soon: int, jobs: JobArrays, rules: Rules, racks: RackArrays, runs: RunArrays, now: IntArray) -> None:
    """Let the runs end as expected until a job finds room, from the one at `soon` on, those before it having ended."""
    n, remote = jobs.nodes[job], jobs.remote[job]
    free, pool = racks.then_free, racks.then_pool
    nodes, last = total(free), soon
    while soon >= 0 and runs.expected[runs.due[soon]] <= now[TIME]:  # behind are the overdue ones
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
def spare(head: int, jobs: JobArrays, rules: Rules, racks: RackArrays, now: IntArray) -> None:
    """Find what the head leaves over at its shadow time: nodes and MiB of all racks together, most MiB for one more node.

    A job that runs beyond the shadow time and asks for more than `now[SPARE_NODES]`, `[SPARE_MEMORY]` or `[SPARE_MOST]`
    surely delays the head, wherever it is placed: all racks together would have less than the head takes, or already the
    first node of the job, in whatever rack, would leave the head too few. All three only shrink within a pass. In scope
    "rack" also, for `verdict`: `racks.offered`, `racks.kept`, and `now[SURPLUS]`, nodes offered beyond those that it takes.
    """
    now[SPARE_NODES], now[SPARE_MEMORY], now[SPARE_MOST] = -1, -1, -1
    if rules.backfill != EASY:
        return
    n, remote = jobs.nodes[head], jobs.remote[head]
    free, pool = racks.then_free, racks.then_pool
    now[SPARE_NODES], now[SPARE_MEMORY] = total(free) - n, total(pool) - n * remote
    if rules.anywhere:
        now[SPARE_MOST] = NEVER
        return
    now[SURPLUS] = -n
    for r in range(free.size):
        racks.offered[r] = offer(free[r], pool[r], remote)
        now[SURPLUS] += racks.offered[r]
    for r in range(free.size):
        racks.kept[r] = max(racks.offered[r] - now[SURPLUS], 0)
        if free[r] > racks.kept[r]:
            now[SPARE_MOST] = max(now[SPARE_MOST], pool[r] - racks.kept[r] * remote)


@inlined
def try_start(job: int, head: int, jobs: JobArrays, rules: Rules, racks: RackArrays, runs: RunArrays, now: IntArray) -> bool:
    """Start a job if it may start now."""
    if not may_start(job, head, jobs, rules, racks, now):
        return False
    start(job, jobs, rules, racks, runs, now)
    if runs.expected[now[STARTED] - 1] > now[SHADOW]:
        spare(head, jobs, rules, racks, now)
    return True


@inlined
def may_start(job: int, head: int, jobs: JobArrays, rules: Rules, racks: RackArrays, now: IntArray) -> bool:
    """Whether a job fits now and ends by the shadow time, or leaves the head room at that time (see `leaves_room`)."""
    anywhere = rules.anywhere
    if not place(jobs.nodes[job], jobs.remote[job], anywhere, racks.free, racks.pool, racks.take, racks.borrow):
        return False
    length = expected(job, jobs, racks.take, racks.borrow, anywhere, rules.believed_spread)
    return length <= now[WINDOW] or (rules.backfill == EASY and leaves_room(head, jobs, rules, racks, now))


@inlined
def leaves_room(head: int, jobs: JobArrays, rules: Rules, racks: RackArrays, now: IntArray) -> bool:
    """Whether the placement just found leaves the head room at its shadow time."""
    n, remote, anywhere = jobs.nodes[head], jobs.remote[head], rules.anywhere
    then_free, then_pool = racks.then_free, racks.then_pool
    nodes, memory = 0, 0
    for r in range(then_free.size):
        free, pool = then_free[r] - racks.take[r], then_pool[r] - racks.borrow[r]
        if free < 0 or pool < 0:
            return False
        nodes += free if remote == 0 or anywhere else offer(free, pool, remote)
        memory += pool
    return bool(nodes >= n and (not anywhere or memory >= n * remote))
