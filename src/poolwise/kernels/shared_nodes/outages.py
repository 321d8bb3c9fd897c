"""Nodes that fail and are repaired, and what becomes of the jobs on them.

While a repair is still to come no job is turned away: one that the machine, as it is, could not hold if it were empty waits
aside, and nobody waits for it. Source: `platforms.simulated`, `schedulers.list`.
"""

from __future__ import annotations

from poolwise.arrays import IntArray
from poolwise.kernels.jit import inlined, step
from poolwise.kernels.list_scheduling import heap
from poolwise.kernels.list_scheduling.state import CONSERVATIVE, Order, Tree
from poolwise.kernels.list_scheduling.tournament import put, take
from poolwise.kernels.shared_nodes.choose import missing
from poolwise.kernels.shared_nodes.nodes import note_given, set_free
from poolwise.kernels.shared_nodes.runs import release
from poolwise.kernels.shared_nodes.state import (
    ASIDE,
    CHANGES,
    KEPT,
    LAST_REPAIR,
    QUIET,
    REJECTED,
    RUNNING,
    SETTLED,
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
    """Time (ns) of the next failure or repair, NEVER if there is none."""
    return int(outages.time[now[CHANGES]] if now[CHANGES] < outages.time.size else NEVER)


@step
def make_changes(
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
    """Let nodes fail and be repaired that do so at this instant."""
    while next_change(outages, now) == now[TIME]:
        n, up = outages.node[now[CHANGES]], outages.up[now[CHANGES]]
        now[CHANGES] += 1
        while not up and timeline.size[n] > 0:
            _lose(timeline.by[n, 0], jobs, kinds, order, rules, nodes, timeline, outages, queue, tree, runs, now)
        set_free(n, outages.free[n], up, nodes)
        set_free(n, outages.free[n], up, empty)
        touch(n, timeline, now)
        if up:
            note_given(n, nodes, now)
    now[KEPT], now[SETTLED] = -1, 0
    now[STATE] += 1
    _put_aside(jobs, kinds, order, rules, empty, outages, queue, tree, now)
    _take_back(jobs, kinds, order, rules, empty, outages, queue, tree, runs, now)


@step
def _lose(
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
    """End a run before its time; its job waits again or is lost."""
    at = 0
    while runs.ending[at] != k:
        at += 1
    runs.ending[at] = runs.ending[now[RUNNING] - 1]
    heap.arrange(runs.ending, now[RUNNING] - 1, runs.end)
    runs.end[k], outages.lost[k] = now[TIME], True
    release(k, jobs, kinds, nodes, timeline, runs, now)
    if outages.requeues[0]:
        _wait(runs.job[k], jobs, order, rules, queue, tree, now)


@inlined
def _wait(job: int, jobs: SharedJobs, order: Order, rules: SharedRules, queue: SharedQueue, tree: Tree, now: IntArray) -> None:
    """Let a job wait as others do."""
    join(job, queue, now)
    if rules.backfill != CONSERVATIVE:
        put(job, now[TIME], jobs, order, tree)


@step
def waits_aside(job: int, jobs: SharedJobs, kinds: KindArrays, empty: NodeArrays, outages: OutageArrays, now: IntArray) -> bool:
    """Let a job that arrives wait aside if the machine, as it is, could not hold it but may yet."""
    if now[CHANGES] >= now[LAST_REPAIR] or _is_held(jobs.nodes[job], kinds, empty, outages, now):
        return False
    outages.aside[now[ASIDE]] = job
    now[ASIDE] += 1
    now[QUIET] = 0
    return True


@inlined
def _is_held(kind: int, kinds: KindArrays, empty: NodeArrays, outages: OutageArrays, now: IntArray) -> bool:
    """Whether the machine, as it is, would hold a job of a kind if it were empty."""
    if outages.held_at[kind] != now[CHANGES]:
        outages.held_at[kind] = now[CHANGES]
        outages.held[kind] = missing(kind, kinds, empty) == 0
    return bool(outages.held[kind])


@inlined
def _put_aside(
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
    """Let jobs wait aside that the machine could not hold."""
    for k in range(now[WAITING] - 1, -1, -1):  # who takes the place of one that leaves has been asked
        job = queue.job[k]
        if not _is_held(jobs.nodes[job], kinds, empty, outages, now):
            if rules.backfill != CONSERVATIVE:
                take(job, now[TIME], order, tree)
            leave(job, queue, now)
            outages.aside[now[ASIDE]] = job
            now[ASIDE] += 1


@inlined
def _take_back(
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
    """Let jobs aside wait as others do once the machine could hold them; turn the rest away after the last repair."""
    count = now[ASIDE]
    now[ASIDE] = 0
    for k in range(count):
        job = outages.aside[k]
        if _is_held(jobs.nodes[job], kinds, empty, outages, now):
            _wait(job, jobs, order, rules, queue, tree, now)
        elif now[CHANGES] < now[LAST_REPAIR]:
            outages.aside[now[ASIDE]] = job
            now[ASIDE] += 1
        else:  # in the order of arrival: none has ever been anywhere else
            runs.rejected[now[REJECTED]] = job
            now[REJECTED] += 1


@inlined
def has_runs(rules: SharedRules, outages: OutageArrays, runs: SharedRuns, now: IntArray) -> bool:
    """Whether there is a row for each run that a pass may start, and for each of its parts."""
    parts = runs.part[now[STARTED]] + min(now[WAITING] * rules.parts, rules.cores)
    return bool(now[STARTED] + now[WAITING] <= outages.lost.size and parts <= runs.node.size)
