"""What is free from each of a list of instants on.

The same as `policies.backfill.conservative.AvailabilityProfile`.
"""

from __future__ import annotations

from poolwise.arrays import IntArray
from poolwise.kernels.jit import inlined, step
from poolwise.kernels.list_scheduling.racks import copy, total
from poolwise.kernels.list_scheduling.runs import release
from poolwise.kernels.list_scheduling.state import (
    EARLY,
    ROWS,
    RUNNING,
    TIME,
    WAITING,
    ProfileArrays,
    RackArrays,
    RunArrays,
)
from poolwise.units import OVERDUE


@step
def has_instants(profile: ProfileArrays, now: IntArray) -> bool:
    """Whether the profile has room for all that a pass may add; else `now[ROWS]` says how many instants it needs."""
    now[ROWS] = now[RUNNING] + 2 * now[EARLY] + 6 * now[WAITING] + 8
    return bool(now[ROWS] <= profile.time.size)


@step
def foresee(racks: RackArrays, profile: ProfileArrays, runs: RunArrays, now: IntArray) -> None:
    """Fill the profile with the runs at work."""
    time, here = profile.time, profile.row[0]
    time[0] = now[TIME]
    copy(racks.free, profile.free[here])
    copy(racks.pool, profile.pool[here])
    k = 0
    soon = now[RUNNING] - 1
    while soon >= 0 and runs.expected[runs.due[soon]] <= now[TIME]:
        soon -= 1
    late = now[RUNNING] - 1  # from here down to soon + 1 the runs are overdue
    first_late = soon + 1
    while soon >= 0 or late >= first_late:
        if late >= first_late and (soon < 0 or now[TIME] + OVERDUE <= runs.expected[runs.due[soon]]):
            end, run = now[TIME] + OVERDUE, runs.due[late]
            late -= 1
        else:
            end, run = runs.expected[runs.due[soon]], runs.due[soon]
            soon -= 1
        if end > time[k]:
            k += 1
            time[k] = end
            previous, here = here, profile.row[k]
            copy(profile.free[previous], profile.free[here])
            copy(profile.pool[previous], profile.pool[here])
        release(run, racks, runs, profile.free[here], profile.pool[here])
    profile.size[0] = k + 1
    for m in range(k + 1):
        profile.nodes[m], profile.memory[m] = total(profile.free[profile.row[m]]), total(profile.pool[profile.row[m]])


@step
def before(time: int, profile: ProfileArrays) -> int:
    """Instants before a time (ns)."""
    low, high = 0, profile.size[0]
    while low < high:
        middle = (low + high) >> 1
        if profile.time[middle] < time:
            low = middle + 1
        else:
            high = middle
    return int(low)


@step
def change(begin: int, end: int, take: IntArray, borrow: IntArray, sign: int, profile: ProfileArrays) -> int:
    """Take a placement off the instants of an interval (sign -1), or give it back (sign 1); returns the instant at its end.

    Returns 0 where nothing changes.
    """
    if begin == end:
        return 0  # at the horizon
    first, last = _instant(begin, profile), _instant(end, profile)
    for r in range(take.size):
        nodes, memory = sign * take[r], sign * borrow[r]
        if nodes != 0 or memory != 0:
            for m in range(first, last):
                row = profile.row[m]
                profile.nodes[m], profile.memory[m] = profile.nodes[m] + nodes, profile.memory[m] + memory
                profile.free[row, r] += nodes
                profile.pool[row, r] += memory
    return last


@step
def _instant(time: int, profile: ProfileArrays) -> int:
    """Position of an instant, which is added if there is none; what is free does not change at it."""
    at, count = before(time, profile), profile.size[0]
    if at < count and profile.time[at] == time:
        return at
    row, like = profile.row[count], profile.row[at - 1]
    for m in range(count, at, -1):
        _move(m - 1, m, profile)
    profile.time[at], profile.nodes[at], profile.memory[at], profile.row[at] = (
        time,
        profile.nodes[at - 1],
        profile.memory[at - 1],
        row,
    )
    copy(profile.free[like], profile.free[row])
    copy(profile.pool[like], profile.pool[row])
    profile.size[0] = count + 1
    return at


@inlined
def _move(source: int, target: int, profile: ProfileArrays) -> None:
    """Give an instant another position."""
    profile.time[target], profile.row[target] = profile.time[source], profile.row[source]
    profile.nodes[target], profile.memory[target] = profile.nodes[source], profile.memory[source]


@step
def forget(time: int, profile: ProfileArrays) -> None:
    """Drop an instant, other than now, at which nothing changes any more."""
    at, count = before(time, profile), profile.size[0]
    if at == 0 or at == count or profile.time[at] != time:
        return
    row, previous = profile.row[at], profile.row[at - 1]
    for r in range(profile.free.shape[1]):
        if profile.free[row, r] != profile.free[previous, r] or profile.pool[row, r] != profile.pool[previous, r]:
            return
    for m in range(at + 1, count):
        _move(m, m - 1, profile)
    profile.row[count - 1] = row
    profile.size[0] = count - 1


@step
def pass_on(profile: ProfileArrays, now: IntArray) -> None:
    """Let the profile begin now: drop the instants before."""
    late = before(now[TIME] + 1, profile) - 1
    profile.size[0] -= late
    if late > 0:
        for k in range(profile.size[0]):
            row = profile.row[k]
            _move(k + late, k, profile)
            profile.row[k + late] = row
    profile.time[0] = now[TIME]


@step
def merge(profile: ProfileArrays) -> None:
    """Drop all instants at which nothing changes."""
    last = 0
    for k in range(1, profile.size[0]):
        row, previous, same = profile.row[k], profile.row[last], True
        for r in range(profile.free.shape[1]):
            same &= profile.free[row, r] == profile.free[previous, r] and profile.pool[row, r] == profile.pool[previous, r]
        if not same:
            last += 1
            other = profile.row[last]
            _move(k, last, profile)
            profile.row[k] = other
    profile.size[0] = last + 1
