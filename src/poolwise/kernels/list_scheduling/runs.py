"""Starts and ends of runs."""

from __future__ import annotations

from poolwise.arrays import IntArray
from poolwise.kernels.common import heap
from poolwise.kernels.common.events import begin_run
from poolwise.kernels.common.state import NONE, RunArrays
from poolwise.kernels.jit import inlined, step
from poolwise.kernels.list_scheduling.racks import copy, expected, runtime, total
from poolwise.kernels.list_scheduling.state import RackArrays, RackState


@step
def start(job: int, state: RackState) -> None:
    """Start a job at the placement in `racks.take` and `racks.borrow`."""
    jobs, rules, racks, runs = state.jobs, state.rules, state.racks, state.runs
    actual = runtime(job, jobs, racks.take, racks.borrow, rules)
    believed = expected(job, jobs, racks.take, racks.borrow, rules)
    k = begin_run(job, actual, believed, state)
    _record(k, jobs.remote[job] > 0 or not rules.closed, racks, runs)
    if rules.backfill != NONE:
        _insert_due(k, state)
        if runs.expected[k] > state.now.shadow:
            release(k, -1, racks.shadow_free, racks.shadow_pool, state)


@inlined
def start_at(job: int, take: IntArray, borrow: IntArray, state: RackState) -> None:
    """Start a job at a placement, (n_rack,) nodes and MiB."""
    racks = state.racks
    copy(take, racks.take)
    copy(borrow, racks.borrow)
    start(job, state)


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
def end_first(state: RackState) -> None:
    """End the run at the top of the heap."""
    racks, runs, now = state.racks, state.runs, state.now
    now.settled = 0
    k = heap.pop(runs.ending, now.running, runs.end)
    release(k, 1, racks.free, racks.pool, state)
    if state.rules.backfill != NONE:
        remove_due(k, state)
        if runs.expected[k] > now.shadow:
            release(k, 1, racks.shadow_free, racks.shadow_pool, state)
        if runs.expected[k] != runs.end[k]:
            now.head = -1  # the release came at another time than the reservation assumed
            if now.profile_valid and runs.expected[k] > now.time:
                state.due.early[now.early] = k
                now.early += 1
    now.running -= 1


@inlined
def release(k: int, sign: int, free: IntArray, pool: IntArray, state: RackState) -> int:
    """Release the capacity of run k (sign 1), or subtract it again (sign -1); return its number of nodes."""
    racks, runs, nodes = state.racks, state.runs, 0
    for row in range(runs.offset[k], runs.offset[k + 1]):
        r, amount = racks.of_owner[runs.owner[row]], runs.amount[row]
        if runs.resource[row] == racks.node_column:
            free[r] += sign * amount
            nodes += amount
        else:
            pool[r] += sign * amount
    return nodes


@inlined
def is_overdue(state: RackState) -> bool:
    """Return whether a current run is overdue."""
    now = state.now
    last = now.running - 1
    return bool(last >= 0 and state.runs.expected[state.due.run[last]] <= now.time)


@step
def first_due(time: int, count: int, state: RackState) -> int:
    """Return the position, among `count` in `due.run`, of the first run expected to end before a time; `count` if none."""
    low, high = 0, count
    while low < high:
        middle = (low + high) >> 1
        if state.runs.expected[state.due.run[middle]] < time:
            high = middle
        else:
            low = middle + 1
    return low


@inlined
def _insert_due(k: int, state: RackState) -> None:
    """Insert the last run, k, in descending order of expected ends: the earliest are removed first, from the end."""
    due, last = state.due.run, state.now.running - 1
    low = first_due(state.runs.expected[k], last, state)
    for i in range(last, low, -1):
        due[i] = due[i - 1]
    due[low] = k


@inlined
def remove_due(k: int, state: RackState) -> None:
    """Remove run k, which `now.running` still counts, from the runs by expected end."""
    due, count = state.due.run, state.now.running
    at = first_due(state.runs.expected[k], count, state) - 1
    while due[at] != k:  # other runs may have the same expected end
        at -= 1
    for i in range(at, count - 1):
        due[i] = due[i + 1]


@inlined
def has_rows(starts: int, state: RackState) -> bool:
    """Return whether the record has rows for `starts` placements; write the rows needed to `now.rows`."""
    racks, runs, now = state.racks, state.runs, state.now
    now.rows = runs.offset[now.started] + min(starts, total(racks.free)) * 2 * racks.free.size
    return bool(now.rows <= runs.owner.size)
