"""Capacity that racks lose and regain while jobs run: nodes fail and are repaired, pools shrink and grow.

While a later change can still add capacity, no job is rejected. A job that would not fit the machine as it is now, even if it
were empty, is deferred and does not block the queue. Source: `platforms.simulated`, `schedulers.list`.
"""

from __future__ import annotations

from poolwise.arrays import IntArray
from poolwise.kernels.jit import inlined, step
from poolwise.kernels.list_scheduling import heap
from poolwise.kernels.list_scheduling.racks import fits
from poolwise.kernels.list_scheduling.runs import release, remove_due
from poolwise.kernels.list_scheduling.state import (
    CHANGES,
    DEFERRED,
    HEAD,
    INDEXED,
    LAST_GAIN,
    NONE,
    PROFILE_VALID,
    QUIET,
    REJECTED,
    RUNNING,
    SHADOW_TRACKED,
    STARTED,
    TIME,
    WAITING,
    ChangeArrays,
    JobArrays,
    Order,
    QueueArrays,
    RackArrays,
    Rules,
    RunArrays,
    Tree,
)
from poolwise.kernels.list_scheduling.tournament import insert, remove
from poolwise.kernels.list_scheduling.waiting import join, leave
from poolwise.units import NEVER


@inlined
def next_change(changes: ChangeArrays, now: IntArray) -> int:
    """Return the time (ns) of the next change, NEVER if there is none."""
    return int(changes.time[now[CHANGES]] if now[CHANGES] < changes.time.size else NEVER)


@inlined
def defer(job: int, changes: ChangeArrays, now: IntArray) -> None:
    """Defer a job until it is readmitted or rejected."""
    changes.deferred[now[DEFERRED]] = job
    now[DEFERRED] += 1


@step
def apply_changes(rules: Rules, racks: RackArrays, changes: ChangeArrays, runs: RunArrays, now: IntArray) -> None:
    """Apply the changes of this instant; a rack or pool that lost capacity in use aborts its latest runs first."""
    while next_change(changes, now) == now[TIME]:
        c = now[CHANGES]
        r, of_pool = changes.rack[c], changes.of_pool[c]
        have, free = (changes.memory, racks.pool) if of_pool else (changes.nodes, racks.free)
        amount = max(changes.amount[c], -have[r])
        have[r] += amount
        free[r] += amount
        while free[r] < 0:
            _abort(_latest_run_on(r, of_pool, racks, runs, now), rules, racks, changes, runs, now)
        now[CHANGES] += 1
    now[HEAD] = -1
    now[SHADOW_TRACKED] = now[PROFILE_VALID] = 0


@inlined
def _latest_run_on(r: int, of_pool: bool, racks: RackArrays, runs: RunArrays, now: IntArray) -> int:
    """Return the latest started run of those that hold nodes of a rack, or memory of its pool."""
    last, owner = -1, racks.pool_owner[r] if of_pool else racks.node_owner[r]
    for at in range(now[RUNNING]):
        k = runs.ending[at]
        for row in range(runs.offset[k], runs.offset[k + 1]):
            if runs.owner[row] == owner and k > last:
                last = k
    return int(last)


@inlined
def _abort(k: int, rules: Rules, racks: RackArrays, changes: ChangeArrays, runs: RunArrays, now: IntArray) -> None:
    """Abort a run; its job is requeued or lost."""
    at = 0
    while runs.ending[at] != k:
        at += 1
    runs.ending[at] = runs.ending[now[RUNNING] - 1]
    heap.arrange(runs.ending, now[RUNNING] - 1, runs.end)
    runs.end[k], changes.lost[k] = now[TIME], True
    release(k, racks, runs, racks.free, racks.pool)
    if rules.backfill != NONE:
        remove_due(k, now[RUNNING], runs)
    now[RUNNING] -= 1
    if changes.requeues[0]:
        defer(runs.job[k], changes, now)


@inlined
def _fits_empty(job: int, jobs: JobArrays, rules: Rules, changes: ChangeArrays) -> bool:
    """Return whether a job would fit the machine as it is now if it were empty."""
    return fits(jobs.nodes[job], jobs.remote[job], rules.anywhere, changes.nodes, changes.memory)


@step
def readmit(
    first: int,
    jobs: JobArrays,
    order: Order,
    rules: Rules,
    racks: RackArrays,
    changes: ChangeArrays,
    queue: QueueArrays,
    tree: Tree | None,
    runs: RunArrays,
    now: IntArray,
) -> None:
    """Readmit deferred jobs, from the position `first`, that the machine could hold if it were empty.

    The others stay deferred while a later change can still add capacity, and are rejected otherwise.
    """
    count, now[DEFERRED] = now[DEFERRED], first
    for k in range(first, count):
        job = changes.deferred[k]
        if _fits_empty(job, jobs, rules, changes):
            join(job, jobs, queue, now)
            if tree is not None and now[INDEXED]:
                insert(job, now[TIME], jobs, order, tree)
        elif now[CHANGES] < now[LAST_GAIN]:
            defer(job, changes, now)
        else:
            runs.rejected[now[REJECTED]], changes.rejected_after[now[REJECTED]] = job, now[CHANGES]
            now[REJECTED] += 1
            continue
        now[QUIET] = 0


@step
def defer_infeasible(
    jobs: JobArrays, order: Order, rules: Rules, changes: ChangeArrays, queue: QueueArrays, tree: Tree | None, now: IntArray
) -> None:
    """Defer waiting jobs that no longer fit the empty machine after a change, and sort the deferred jobs by submit time."""
    if not fits(changes.max_request[0], changes.max_request[1], rules.anywhere, changes.nodes, changes.memory):
        for k in range(now[WAITING] - 1, -1, -1):  # `leave` moves the last job to the gap, and that job was checked before
            job = queue.job[k]
            if not _fits_empty(job, jobs, rules, changes):
                if tree is not None and now[INDEXED]:
                    remove(job, now[TIME], order, tree)
                leave(job, queue, now)
                defer(job, changes, now)
    heap.arrange(changes.deferred, now[DEFERRED], jobs.submit)
    for k in range(now[DEFERRED] - 1, -1, -1):
        changes.deferred[k] = heap.pop(changes.deferred, k + 1, jobs.submit)
    for k in range(now[DEFERRED] // 2):  # heap sort yields descending order
        other = now[DEFERRED] - 1 - k
        changes.deferred[k], changes.deferred[other] = changes.deferred[other], changes.deferred[k]


@inlined
def has_run_rows(changes: ChangeArrays, now: IntArray) -> bool:
    """Return whether there is a row for each run that a pass may start."""
    return bool(now[STARTED] + now[WAITING] <= changes.lost.size)
