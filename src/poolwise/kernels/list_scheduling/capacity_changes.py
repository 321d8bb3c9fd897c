"""Capacity that racks lose and are given back while jobs run: nodes that fail and are repaired, pools that shrink and grow.

While something is still to be given, no job is turned away: one that the machine, as it is, could not hold if it were empty
waits aside, and nobody waits for it. Source: `platforms.simulated`, `schedulers.list`.
"""

from __future__ import annotations

from poolwise.arrays import IntArray
from poolwise.kernels.jit import inlined, step
from poolwise.kernels.list_scheduling import heap
from poolwise.kernels.list_scheduling.racks import fits
from poolwise.kernels.list_scheduling.runs import forget, release
from poolwise.kernels.list_scheduling.state import (
    ASIDE,
    CHANGES,
    FORESEEN,
    HEAD,
    INDEXED,
    LAST_GAIN,
    NONE,
    QUIET,
    REJECTED,
    RUNNING,
    STANDING,
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
from poolwise.kernels.list_scheduling.tournament import put, take
from poolwise.kernels.list_scheduling.waiting import join, leave
from poolwise.units import NEVER


@inlined
def next_change(changes: ChangeArrays, now: IntArray) -> int:
    """Time (ns) of the next change, NEVER if there is none."""
    return int(changes.time[now[CHANGES]] if now[CHANGES] < changes.time.size else NEVER)


@inlined
def wait_aside(job: int, changes: ChangeArrays, now: IntArray) -> None:
    """Let a job wait aside, until it is judged."""
    changes.aside[now[ASIDE]] = job
    now[ASIDE] += 1


@step
def make_changes(rules: Rules, racks: RackArrays, changes: ChangeArrays, runs: RunArrays, now: IntArray) -> None:
    """Make the changes of this instant; what a rack or a pool no longer has is taken from the runs there, the last first."""
    while next_change(changes, now) == now[TIME]:
        c = now[CHANGES]
        r, of_pool = changes.rack[c], changes.of_pool[c]
        have, free = (changes.memory, racks.pool) if of_pool else (changes.nodes, racks.free)
        amount = max(changes.amount[c], -have[r])
        have[r] += amount
        free[r] += amount
        while free[r] < 0:
            _lose(_last_on(r, of_pool, racks, runs, now), rules, racks, changes, runs, now)
        now[CHANGES] += 1
    now[HEAD] = -1
    now[FORESEEN] = now[STANDING] = 0


@inlined
def _last_on(r: int, of_pool: bool, racks: RackArrays, runs: RunArrays, now: IntArray) -> int:
    """The run that started last of those that hold nodes of a rack, or memory of its pool."""
    last, owner = -1, racks.pool_owner[r] if of_pool else racks.node_owner[r]
    for at in range(now[RUNNING]):
        k = runs.ending[at]
        for row in range(runs.offset[k], runs.offset[k + 1]):
            if runs.owner[row] == owner and k > last:
                last = k
    return int(last)


@inlined
def _lose(k: int, rules: Rules, racks: RackArrays, changes: ChangeArrays, runs: RunArrays, now: IntArray) -> None:
    """End a run before its time; its job waits again or is lost."""
    at = 0
    while runs.ending[at] != k:
        at += 1
    runs.ending[at] = runs.ending[now[RUNNING] - 1]
    heap.arrange(runs.ending, now[RUNNING] - 1, runs.end)
    runs.end[k], changes.lost[k] = now[TIME], True
    release(k, racks, runs, racks.free, racks.pool)
    if rules.backfill != NONE:
        forget(k, now[RUNNING], runs)
    now[RUNNING] -= 1
    if changes.requeues[0]:
        wait_aside(runs.job[k], changes, now)


@inlined
def _is_held(job: int, jobs: JobArrays, rules: Rules, changes: ChangeArrays) -> bool:
    """Whether the machine, as it is, would hold a job if it were empty."""
    return fits(jobs.nodes[job], jobs.remote[job], rules.anywhere, changes.nodes, changes.memory)


@step
def judge(
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
    """Let jobs aside, from the first one given on, wait as others do if the machine could hold them.

    The others stay aside as long as something is still to be given, and are turned away when nothing is.
    """
    count, now[ASIDE] = now[ASIDE], first
    for k in range(first, count):
        job = changes.aside[k]
        if _is_held(job, jobs, rules, changes):
            join(job, jobs, queue, now)
            if tree is not None and now[INDEXED]:
                put(job, now[TIME], jobs, order, tree)
        elif now[CHANGES] < now[LAST_GAIN]:
            wait_aside(job, changes, now)
        else:
            runs.rejected[now[REJECTED]], changes.after[now[REJECTED]] = job, now[CHANGES]
            now[REJECTED] += 1
            continue
        now[QUIET] = 0


@step
def put_aside(
    jobs: JobArrays, order: Order, rules: Rules, changes: ChangeArrays, queue: QueueArrays, tree: Tree | None, now: IntArray
) -> None:
    """Let waiting jobs wait aside that the machine could not hold, after a change; those aside stand in the order of jobs."""
    if not fits(changes.most[0], changes.most[1], rules.anywhere, changes.nodes, changes.memory):
        for k in range(now[WAITING] - 1, -1, -1):  # who takes the place of one that leaves has been asked
            job = queue.job[k]
            if not _is_held(job, jobs, rules, changes):
                if tree is not None and now[INDEXED]:
                    take(job, now[TIME], order, tree)
                leave(job, queue, now)
                wait_aside(job, changes, now)
    heap.arrange(changes.aside, now[ASIDE], jobs.submit)
    for k in range(now[ASIDE] - 1, -1, -1):
        changes.aside[k] = heap.pop(changes.aside, k + 1, jobs.submit)
    for k in range(now[ASIDE] // 2):  # a heap sort leaves the first last
        other = now[ASIDE] - 1 - k
        changes.aside[k], changes.aside[other] = changes.aside[other], changes.aside[k]


@inlined
def has_runs(changes: ChangeArrays, now: IntArray) -> bool:
    """Whether there is a row for each run that a pass may start."""
    return bool(now[STARTED] + now[WAITING] <= changes.lost.size)
