"""Runs that start and end, and the machine as it will be when they end as expected."""

from __future__ import annotations

from poolwise.arrays import IntArray
from poolwise.kernels.jit import inlined, step
from poolwise.kernels.list_scheduling import heap
from poolwise.kernels.list_scheduling.racks import copy, expected, fits, runtime, total
from poolwise.kernels.list_scheduling.state import (
    HEAD,
    NEVER,
    NONE,
    OVERDUE,
    ROWS,
    RUNNING,
    SETTLED,
    SHADOW,
    STARTED,
    TIME,
    Jobs,
    Racks,
    Rules,
    Runs,
)


@step
def start(job: int, jobs: Jobs, rules: Rules, racks: Racks, runs: Runs, now: IntArray) -> None:
    """Start a job at the placement in `racks.take` and `racks.borrow`."""
    now[SETTLED] = 0
    k, row = now[STARTED], runs.offset[now[STARTED]]
    for r in range(racks.free.size):
        if racks.take[r] > 0 or racks.borrow[r] > 0:
            runs.rack[row], runs.nodes[row], runs.memory[row] = r, racks.take[r], racks.borrow[r]
            racks.free[r] -= racks.take[r]
            racks.pool[r] -= racks.borrow[r]
            row += 1
    runs.offset[k + 1] = row
    runs.job[k], runs.start[k] = job, now[TIME]
    runs.end[k] = now[TIME] + runtime(job, jobs, racks.take, racks.borrow, rules.anywhere, rules.spread)
    heap.push(runs.ending, now[RUNNING], k, runs.end)
    length = expected(job, jobs, racks.take, racks.borrow, rules.anywhere, rules.believed_spread)
    runs.expected[k] = now[TIME] + length
    if rules.backfill != NONE:
        _expect(k, now[RUNNING], runs)
    now[RUNNING] += 1
    now[STARTED] += 1


@inlined
def end_first(rules: Rules, racks: Racks, runs: Runs, now: IntArray) -> None:
    """End the run at the top of the heap."""
    now[SETTLED] = 0
    k = heap.pop(runs.ending, now[RUNNING], runs.end)
    release(k, runs, racks.free, racks.pool)
    if rules.backfill != NONE:
        _forget(k, now[RUNNING], runs)
        if runs.expected[k] != runs.end[k]:
            now[HEAD] = -1  # a release came at another time than the reservation counted on
    now[RUNNING] -= 1


@inlined
def release(k: int, runs: Runs, free: IntArray, pool: IntArray) -> None:
    """Give back what run k holds."""
    for row in range(runs.offset[k], runs.offset[k + 1]):
        free[runs.rack[row]] += runs.nodes[row]
        pool[runs.rack[row]] += runs.memory[row]


@inlined
def _expect(k: int, count: int, runs: Runs) -> None:
    """Insert run k into `due`, latest first: the earliest, which go first, stand at the end."""
    low, high = 0, count
    while low < high:
        middle = (low + high) >> 1
        if runs.expected[runs.due[middle]] < runs.expected[k]:
            high = middle
        else:
            low = middle + 1
    for i in range(count, low, -1):
        runs.due[i] = runs.due[i - 1]
    runs.due[low] = k


@inlined
def _forget(k: int, count: int, runs: Runs) -> None:
    """Take run k out of `due`; where ends come as expected it is the last."""
    at = count - 1
    while runs.due[at] != k:
        at -= 1
    for i in range(at, count - 1):
        runs.due[i] = runs.due[i + 1]


@step
def reserve(job: int, jobs: Jobs, rules: Rules, racks: Racks, runs: Runs, now: IntArray) -> None:
    """Find the head's shadow time and the machine as it will be then: `now[SHADOW]`, `racks.then_free`, `racks.then_pool`.

    It is kept while the same job is the head, and that is exact. A job backfilled since ends by the shadow time, or was
    taken off the machine of that time with the head still finding room: before it less is free than was counted on, where
    the head found no room already, and at it what was counted on. A run that ended when expected was counted on. What
    ends at another time, a start in order, or another head drops it (`now[HEAD] = -1`); while a run is overdue its
    release moves with the clock and nothing is kept. Nor is it where only nodes count: there the head may find room now,
    and its reservation is for the next release, whatever started since.
    """
    overdue = now[RUNNING] > 0 and runs.expected[runs.due[now[RUNNING] - 1]] <= now[TIME]
    if now[HEAD] == job and not overdue:
        return
    now[HEAD] = -1 if overdue or rules.nodes_only else job
    n, remote = jobs.nodes[job], jobs.remote[job]
    free, pool = racks.then_free, racks.then_pool
    copy(racks.free, free)
    copy(racks.endless if rules.nodes_only else racks.pool, pool)
    nodes = total(free)
    soon = now[RUNNING] - 1  # expected after now: 0..soon, the earliest last; behind them the overdue ones
    while soon >= 0 and runs.expected[runs.due[soon]] <= now[TIME]:
        soon -= 1
    late = now[RUNNING] - 1 - soon
    while soon >= 0 or late > 0:
        time = runs.expected[runs.due[soon]] if soon >= 0 else NEVER
        if late > 0 and now[TIME] + OVERDUE <= time:
            time = now[TIME] + OVERDUE
            for i in range(now[RUNNING] - late, now[RUNNING]):
                nodes += _return(runs.due[i], runs, free, pool)
            late = 0
        while soon >= 0 and runs.expected[runs.due[soon]] == time:  # all releases of one instant together
            nodes += _return(runs.due[soon], runs, free, pool)
            soon -= 1
        now[SHADOW] = time
        if nodes >= n and fits(n, remote, rules.anywhere, free, pool):
            return


@inlined
def _return(k: int, runs: Runs, free: IntArray, pool: IntArray) -> int:
    """Nodes that run k gives back, pool memory with them."""
    release(k, runs, free, pool)
    nodes = 0
    for row in range(runs.offset[k], runs.offset[k + 1]):
        nodes += runs.nodes[row]
    return nodes


@inlined
def has_room(starts: int, racks: Racks, runs: Runs, now: IntArray) -> bool:
    """Whether the record can take the placements of so many starts; else `now[ROWS]` says how many rows it needs."""
    now[ROWS] = runs.offset[now[STARTED]] + min(starts, total(racks.free)) * racks.free.size
    return bool(now[ROWS] <= runs.rack.size)
