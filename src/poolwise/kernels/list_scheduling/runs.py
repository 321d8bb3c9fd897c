"""Starts and ends of runs."""

from __future__ import annotations

from poolwise.arrays import IntArray
from poolwise.kernels.jit import inlined, step
from poolwise.kernels.list_scheduling import heap
from poolwise.kernels.list_scheduling.racks import expected, runtime, total
from poolwise.kernels.list_scheduling.state import (
    AWAITED,
    EARLY,
    HEAD,
    NONE,
    PROFILE_VALID,
    ROWS,
    RUNNING,
    SETTLED,
    SHADOW,
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
    runs.end[k] = now[TIME] + min(length, HORIZON + 1 - now[TIME])  # saturates just beyond the horizon
    heap.push(runs.ending, now[RUNNING], k, runs.end)
    length = expected(job, jobs, racks.take, racks.borrow, rules.anywhere, rules.believed_spread)
    runs.expected[k] = now[TIME] + min(length, HORIZON - now[TIME])
    if rules.backfill != NONE:
        _insert_due(k, now[RUNNING], runs)
        if runs.expected[k] > now[SHADOW]:
            reoccupy(k, racks, runs, racks.shadow_free, racks.shadow_pool)
    now[RUNNING] += 1
    now[STARTED] += 1
    if jobs.awaited.size > 0:
        now[AWAITED] -= int(jobs.awaited[job])


@inlined
def _record(k: int, borrows: bool, racks: RackArrays, runs: RunArrays) -> None:
    """Record the placement of run k and subtract it from the machine."""
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
        remove_due(k, now[RUNNING], runs)
        if runs.expected[k] > now[SHADOW]:
            release(k, racks, runs, racks.shadow_free, racks.shadow_pool)
        if runs.expected[k] != runs.end[k]:
            now[HEAD] = -1  # the release came at another time than the reservation assumed
            if now[PROFILE_VALID] and runs.expected[k] > now[TIME]:
                runs.early[now[EARLY]] = k
                now[EARLY] += 1
    now[RUNNING] -= 1


@inlined
def release(k: int, racks: RackArrays, runs: RunArrays, free: IntArray, pool: IntArray) -> int:
    """Release the capacity of run k; return its number of nodes."""
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
def reoccupy(k: int, racks: RackArrays, runs: RunArrays, free: IntArray, pool: IntArray) -> None:
    """Subtract the capacity of run k again; undoes `release`."""
    for row in range(runs.offset[k], runs.offset[k + 1]):
        r, amount = racks.of_owner[runs.owner[row]], runs.amount[row]
        if runs.resource[row] == racks.node_column:
            free[r] -= amount
        else:
            pool[r] -= amount


@step
def first_due(time: int, count: int, runs: RunArrays) -> int:
    """Return the position in `due`, of `count` runs, of the first that is expected to end before a time; `count` if none."""
    low, high = 0, count
    while low < high:
        middle = (low + high) >> 1
        if runs.expected[runs.due[middle]] < time:
            high = middle
        else:
            low = middle + 1
    return low


@inlined
def _insert_due(k: int, count: int, runs: RunArrays) -> None:
    """Insert run k into `due`, latest first: the earliest are removed first, from the end."""
    low = first_due(runs.expected[k], count, runs)
    for i in range(count, low, -1):
        runs.due[i] = runs.due[i - 1]
    runs.due[low] = k


@inlined
def remove_due(k: int, count: int, runs: RunArrays) -> None:
    """Remove run k from `due`."""
    at = first_due(runs.expected[k], count, runs) - 1
    while runs.due[at] != k:  # other runs may have the same expected end
        at -= 1
    for i in range(at, count - 1):
        runs.due[i] = runs.due[i + 1]


@inlined
def has_rows(starts: int, racks: RackArrays, runs: RunArrays, now: IntArray) -> bool:
    """Return whether the record has rows for `starts` placements; write the rows needed to `now[ROWS]`."""
    now[ROWS] = runs.offset[now[STARTED]] + min(starts, total(racks.free)) * 2 * racks.free.size
    return bool(now[ROWS] <= runs.owner.size)
