"""Runs that start and end."""

from __future__ import annotations

from poolwise.arrays import IntArray
from poolwise.kernels.jit import inlined, step
from poolwise.kernels.list_scheduling import heap
from poolwise.kernels.list_scheduling.racks import expected, runtime, total
from poolwise.kernels.list_scheduling.state import (
    EARLY,
    HEAD,
    NONE,
    ROWS,
    RUNNING,
    SETTLED,
    SHADOW,
    SOUGHT,
    STANDING,
    STARTED,
    TIME,
    JobArrays,
    RackArrays,
    Rules,
    RunArrays,
)
from poolwise.units import HORIZON


@step
def start(job: int, jobs: JobArrays, rules: Rules, racks: RackArrays, runs: RunArrays, now: IntArray) -> None:
    """Start a job at the placement in `racks.take` and `racks.borrow`."""
    now[SETTLED] = 0
    k = now[STARTED]
    _record(k, jobs.remote[job] > 0, racks, runs)
    runs.job[k], runs.start[k] = job, now[TIME]
    length = runtime(job, jobs, racks.take, racks.borrow, rules.anywhere, rules.spread)
    runs.end[k] = now[TIME] + min(length, HORIZON + 1 - now[TIME])  # beyond the horizon is beyond it
    heap.push(runs.ending, now[RUNNING], k, runs.end)
    length = expected(job, jobs, racks.take, racks.borrow, rules.anywhere, rules.believed_spread)
    runs.expected[k] = now[TIME] + min(length, HORIZON - now[TIME])
    if rules.backfill != NONE:
        _expect(k, now[RUNNING], runs)
        if runs.expected[k] > now[SHADOW]:
            retain(k, racks, runs, racks.then_free, racks.then_pool)
    now[RUNNING] += 1
    now[STARTED] += 1
    if jobs.sought.size > 0:
        now[SOUGHT] -= int(jobs.sought[job])


@inlined
def _record(k: int, borrows: bool, racks: RackArrays, runs: RunArrays) -> None:
    """Write the placement of run k and take it off the machine."""
    row = runs.offset[k]
    for r in range(racks.free.size):
        if racks.take[r] > 0:
            runs.owner[row], runs.resource[row], runs.amount[row] = racks.node_owner[r], racks.node_column, racks.take[r]
            racks.free[r] -= racks.take[r]
            row += 1
    if borrows:
        for r in range(racks.free.size):
            if racks.borrow[r] > 0:
                runs.owner[row], runs.resource[row], runs.amount[row] = (
                    racks.pool_owner[r],
                    racks.memory_column,
                    racks.borrow[r],
                )
                racks.pool[r] -= racks.borrow[r]
                row += 1
    runs.offset[k + 1] = row


@inlined
def end_first(rules: Rules, racks: RackArrays, runs: RunArrays, now: IntArray) -> None:
    """End the run at the top of the heap."""
    now[SETTLED] = 0
    k = heap.pop(runs.ending, now[RUNNING], runs.end)
    release(k, racks, runs, racks.free, racks.pool)
    if rules.backfill != NONE:
        forget(k, now[RUNNING], runs)
        if runs.expected[k] > now[SHADOW]:
            release(k, racks, runs, racks.then_free, racks.then_pool)
        if runs.expected[k] != runs.end[k]:
            now[HEAD] = -1  # a release came at another time than the reservation counted on
            if now[STANDING] and runs.expected[k] > now[TIME]:
                runs.early[now[EARLY]] = k
                now[EARLY] += 1
    now[RUNNING] -= 1


@inlined
def release(k: int, racks: RackArrays, runs: RunArrays, free: IntArray, pool: IntArray) -> int:
    """Give back what run k holds; returns how many nodes."""
    nodes = 0
    for row in range(runs.offset[k], runs.offset[k + 1]):
        r, amount = racks.of_owner[runs.owner[row]], runs.amount[row]
        if runs.resource[row] == racks.node_column:
            free[r] += amount
            nodes += amount
        else:
            pool[r] += amount
    return nodes


@inlined
def retain(k: int, racks: RackArrays, runs: RunArrays, free: IntArray, pool: IntArray) -> None:
    """Take off what run k holds; undoes `release`."""
    for row in range(runs.offset[k], runs.offset[k + 1]):
        r, amount = racks.of_owner[runs.owner[row]], runs.amount[row]
        if runs.resource[row] == racks.node_column:
            free[r] -= amount
        else:
            pool[r] -= amount


@step
def first_due(time: int, count: int, runs: RunArrays) -> int:
    """Position in `due`, of `count` runs, of the first that is expected to end before a time; `count` if there is none."""
    low, high = 0, count
    while low < high:
        middle = (low + high) >> 1
        if runs.expected[runs.due[middle]] < time:
            high = middle
        else:
            low = middle + 1
    return low


@inlined
def _expect(k: int, count: int, runs: RunArrays) -> None:
    """Insert run k into `due`, latest first: the earliest, which go first, stand at the end."""
    low = first_due(runs.expected[k], count, runs)
    for i in range(count, low, -1):
        runs.due[i] = runs.due[i - 1]
    runs.due[low] = k


@inlined
def forget(k: int, count: int, runs: RunArrays) -> None:
    """Take run k out of `due`."""
    at = first_due(runs.expected[k], count, runs) - 1
    while runs.due[at] != k:  # others are expected to end then as well
        at -= 1
    for i in range(at, count - 1):
        runs.due[i] = runs.due[i + 1]


@inlined
def has_room(starts: int, racks: RackArrays, runs: RunArrays, now: IntArray) -> bool:
    """Whether the record can take the placements of `starts` starts; else `now[ROWS]` says how many rows it needs."""
    now[ROWS] = runs.offset[now[STARTED]] + min(starts, total(racks.free)) * 2 * racks.free.size
    return bool(now[ROWS] <= runs.owner.size)
