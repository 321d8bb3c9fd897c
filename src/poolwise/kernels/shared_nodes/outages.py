"""Nodes that fail and are repaired, and the jobs that this affects.

While a later repair is scheduled no job is rejected. A job that would not fit the machine as it is now, even if it were empty,
is deferred and does not block the queue. Source: `platforms.simulated`, `schedulers.list`.
"""

from __future__ import annotations

from poolwise.arrays import IntArray
from poolwise.kernels.jit import inlined, step
from poolwise.kernels.list_scheduling import heap
from poolwise.kernels.list_scheduling.state import CONSERVATIVE, Order, Tree
from poolwise.kernels.list_scheduling.tournament import insert, remove
from poolwise.kernels.shared_nodes.choose import missing_nodes
from poolwise.kernels.shared_nodes.nodes import note_released, set_free
from poolwise.kernels.shared_nodes.runs import release
from poolwise.kernels.shared_nodes.state import (
    CHANGES,
    DEFERRED,
    LAST_REPAIR,
    QUIET,
    REJECTED,
    RUNNING,
    SETTLED,
    SHADOW_KIND,
    STARTED,
    STATE,
    TIME,
    WAITING,
    KindArrays,
    NodeArrays,
    OutageArrays,
    SharedJobs,
    SharedQueue,
    SharedRules,
    SharedRuns,
    TimelineArrays,
)
from poolwise.kernels.shared_nodes.timeline import touch
from poolwise.kernels.shared_nodes.waiting import join, leave
from poolwise.units import NEVER


@inlined
def next_change(outages: OutageArrays, now: IntArray) -> int:
    """Return the time (ns) of the next failure or repair, NEVER if there is none."""
    return int(outages.time[now[CHANGES]] if now[CHANGES] < outages.time.size else NEVER)


@step
def apply_changes(
    jobs: SharedJobs,
    kinds: KindArrays,
    order: Order,
    rules: SharedRules,
    nodes: NodeArrays,
    empty: NodeArrays,
    timeline: TimelineArrays,
    outages: OutageArrays,
    queue: SharedQueue,
    tree: Tree,
    runs: SharedRuns,
    now: IntArray,
) -> None:
    """Apply the failures and repairs of this instant."""
    while next_change(outages, now) == now[TIME]:
        n, up = outages.node[now[CHANGES]], outages.up[now[CHANGES]]
        now[CHANGES] += 1
        while not up and timeline.size[n] > 0:
            _abort(timeline.run_of[n, 0], jobs, kinds, order, rules, nodes, timeline, outages, queue, tree, runs, now)
        set_free(n, outages.free[n], up, nodes)
        set_free(n, outages.free[n], up, empty)
        touch(n, timeline, now)
        if up:
            note_released(n, nodes, now)
    now[SHADOW_KIND], now[SETTLED] = -1, 0
    now[STATE] += 1
    _defer_infeasible(jobs, kinds, order, rules, empty, outages, queue, tree, now)
    _readmit(jobs, kinds, order, rules, empty, outages, queue, tree, runs, now)


@step
def _abort(
    k: int,
    jobs: SharedJobs,
    kinds: KindArrays,
    order: Order,
    rules: SharedRules,
    nodes: NodeArrays,
    timeline: TimelineArrays,
    outages: OutageArrays,
    queue: SharedQueue,
    tree: Tree,
    runs: SharedRuns,
    now: IntArray,
) -> None:
    """Abort a run; its job is requeued or lost."""
    at = 0
    while runs.ending[at] != k:
        at += 1
    runs.ending[at] = runs.ending[now[RUNNING] - 1]
    heap.arrange(runs.ending, now[RUNNING] - 1, runs.end)
    runs.end[k], outages.lost[k] = now[TIME], True
    release(k, jobs, kinds, nodes, timeline, runs, now)
    if outages.requeues[0]:
        _enqueue(runs.job[k], jobs, order, rules, queue, tree, now)


@inlined
def _enqueue(
    job: int, jobs: SharedJobs, order: Order, rules: SharedRules, queue: SharedQueue, tree: Tree, now: IntArray
) -> None:
    """Add a job to the queue and, if there is one, to the tree."""
    join(job, queue, now)
    if rules.backfill != CONSERVATIVE:
        insert(job, now[TIME], jobs, order, tree)


@step
def defer_if_unfit(
    job: int, jobs: SharedJobs, kinds: KindArrays, empty: NodeArrays, outages: OutageArrays, now: IntArray
) -> bool:
    """Defer an arriving job if the machine could not hold it now but may after a repair; return whether it was deferred."""
    if now[CHANGES] >= now[LAST_REPAIR] or _fits_empty(jobs.nodes[job], kinds, empty, outages, now):
        return False
    outages.deferred[now[DEFERRED]] = job
    now[DEFERRED] += 1
    now[QUIET] = 0
    return True


@inlined
def _fits_empty(kind: int, kinds: KindArrays, empty: NodeArrays, outages: OutageArrays, now: IntArray) -> bool:
    """Return whether a job of a kind would fit the machine as it is now if it were empty."""
    if outages.checked_at[kind] != now[CHANGES]:
        outages.checked_at[kind] = now[CHANGES]
        outages.fits_empty[kind] = missing_nodes(kind, kinds, empty) == 0
    return bool(outages.fits_empty[kind])


@inlined
def _defer_infeasible(
    jobs: SharedJobs,
    kinds: KindArrays,
    order: Order,
    rules: SharedRules,
    empty: NodeArrays,
    outages: OutageArrays,
    queue: SharedQueue,
    tree: Tree,
    now: IntArray,
) -> None:
    """Defer the waiting jobs that the machine could not hold."""
    for k in range(now[WAITING] - 1, -1, -1):  # `leave` moves the last job to the gap, and that job was checked before
        job = queue.job[k]
        if not _fits_empty(jobs.nodes[job], kinds, empty, outages, now):
            if rules.backfill != CONSERVATIVE:
                remove(job, now[TIME], order, tree)
            leave(job, queue, now)
            outages.deferred[now[DEFERRED]] = job
            now[DEFERRED] += 1


@inlined
def _readmit(
    jobs: SharedJobs,
    kinds: KindArrays,
    order: Order,
    rules: SharedRules,
    empty: NodeArrays,
    outages: OutageArrays,
    queue: SharedQueue,
    tree: Tree,
    runs: SharedRuns,
    now: IntArray,
) -> None:
    """Readmit deferred jobs that the machine could hold; reject the others after the last repair."""
    count = now[DEFERRED]
    now[DEFERRED] = 0
    for k in range(count):
        job = outages.deferred[k]
        if _fits_empty(jobs.nodes[job], kinds, empty, outages, now):
            _enqueue(job, jobs, order, rules, queue, tree, now)
        elif now[CHANGES] < now[LAST_REPAIR]:
            outages.deferred[now[DEFERRED]] = job
            now[DEFERRED] += 1
        else:  # in arrival order: these jobs have never been anywhere else
            runs.rejected[now[REJECTED]] = job
            now[REJECTED] += 1


@inlined
def has_run_rows(rules: SharedRules, outages: OutageArrays, runs: SharedRuns, now: IntArray) -> bool:
    """Return whether there is a row for each run that a pass may start, and for each of its parts."""
    parts = runs.part[now[STARTED]] + min(now[WAITING] * rules.parts, rules.cores)
    return bool(now[STARTED] + now[WAITING] <= outages.lost.size and parts <= runs.node.size)
