"""Availability profile: the free capacity from each of a sequence of instants.

Equals `policies.backfill.conservative.AvailabilityProfile`.
"""

from __future__ import annotations

from poolwise.arrays import IntArray
from poolwise.kernels.jit import inlined, step
from poolwise.kernels.list_scheduling.racks import copy
from poolwise.kernels.list_scheduling.runs import release
from poolwise.kernels.list_scheduling.state import ProfileArrays, RackNow, RackState
from poolwise.quantities import OVERDUE


@step
def has_instants(profile: ProfileArrays, now: RackNow) -> bool:
    """Return whether the profile has room for the instants that a pass may add; write the number needed to `now.rows`."""
    now.rows = now.running + 2 * now.early + 6 * now.waiting + 8
    return bool(now.rows <= profile.time.size)


@step
def build_profile(state: RackState, profile: ProfileArrays) -> None:
    """Fill the profile from the current runs."""
    racks, runs, now, due = state.racks, state.runs, state.now, state.due
    free, pool = profile.least_free, profile.least_pool
    copy(racks.free, free)
    copy(racks.pool, pool)
    profile.time[0], k = now.time, 0
    _write(k, profile)
    soon = now.running - 1
    while soon >= 0 and runs.expected[due.run[soon]] <= now.time:
        soon -= 1
    late = now.running - 1  # the runs at positions soon + 1 to late are overdue
    first_late = soon + 1
    while soon >= 0 or late >= first_late:
        if late >= first_late and (soon < 0 or now.time + OVERDUE <= runs.expected[due.run[soon]]):
            end, run = now.time + OVERDUE, due.run[late]
            late -= 1
        else:
            end, run = runs.expected[due.run[soon]], due.run[soon]
            soon -= 1
        k += int(end > profile.time[k])
        profile.time[k] = end
        release(run, 1, free, pool, state)
        _write(k, profile)
    profile.status.instants, profile.status.present, profile.status.merged = k + 1, 0, k + 1


@inlined
def _write(k: int, profile: ProfileArrays) -> None:
    """Set the racks at instant k to `least_free` and `least_pool`."""
    nodes, memory = 0, 0
    for r in range(profile.least_free.size):
        free, pool = profile.least_free[r], profile.least_pool[r]
        profile.free[r, k], profile.pool[r, k] = free, pool
        nodes += free
        memory += pool
    profile.nodes[k], profile.memory[k], profile.begins[k] = nodes, memory, 0


@step
def before(time: int, profile: ProfileArrays) -> int:
    """Return the number of instants before a time (ns)."""
    low, high = profile.status.present, profile.status.instants
    while low < high:
        middle = (low + high) >> 1
        if profile.time[middle] < time:
            low = middle + 1
        else:
            high = middle
    return int(low)


@step
def change(begin: int, end: int, take: IntArray, borrow: IntArray, sign: int, profile: ProfileArrays) -> None:
    """Subtract a placement from the instants of an interval (sign -1), or add it back (sign 1)."""
    if begin == end:
        return  # at the horizon
    first, last = _instant(begin, profile), _instant(end, profile)
    profile.begins[first] -= sign
    all_nodes, all_memory = 0, 0
    for r in range(take.size):
        nodes, memory = sign * take[r], sign * borrow[r]
        all_nodes += nodes
        all_memory += memory
        if nodes != 0:
            for m in range(first, last):
                profile.free[r, m] += nodes
        if memory != 0:
            for m in range(first, last):
                profile.pool[r, m] += memory
    for m in range(first, last):
        profile.nodes[m] += all_nodes
    if all_memory != 0:
        for m in range(first, last):
            profile.memory[m] += all_memory


@step
def _instant(time: int, profile: ProfileArrays) -> int:
    """Return the position of an instant, inserting it if necessary; a new instant copies the free capacity before it."""
    at, count = before(time, profile), profile.status.instants
    if at < count and profile.time[at] == time:
        return at
    for m in range(count, at, -1):
        profile.time[m] = profile.time[m - 1]
    for m in range(count, at - 1, -1):
        profile.nodes[m] = profile.nodes[m - 1]
    for m in range(count, at - 1, -1):
        profile.memory[m] = profile.memory[m - 1]
    for m in range(count, at, -1):
        profile.begins[m] = profile.begins[m - 1]
    profile.begins[at] = 0
    for r in range(profile.free.shape[0]):
        for m in range(count, at - 1, -1):
            profile.free[r, m] = profile.free[r, m - 1]
        for m in range(count, at - 1, -1):
            profile.pool[r, m] = profile.pool[r, m - 1]
    profile.time[at] = time
    profile.status.instants = count + 1
    return at


@step
def _move(first: int, last: int, by: int, profile: ProfileArrays) -> None:
    """Shift the instants from `first` to before `last` down by some positions."""
    for m in range(first, last):
        profile.time[m - by] = profile.time[m]
    for m in range(first, last):
        profile.nodes[m - by] = profile.nodes[m]
    for m in range(first, last):
        profile.memory[m - by] = profile.memory[m]
    for m in range(first, last):
        profile.begins[m - by] = profile.begins[m]
    for r in range(profile.free.shape[0]):
        for m in range(first, last):
            profile.free[r, m - by] = profile.free[r, m]
        for m in range(first, last):
            profile.pool[r, m - by] = profile.pool[r, m]


@inlined
def _changes_nothing(m: int, profile: ProfileArrays) -> bool:
    """Return whether an instant, not the first, has the free capacity of the one before it and no reservation begins there."""
    if profile.begins[m] > 0:
        return False
    for r in range(profile.free.shape[0]):
        if profile.free[r, m] != profile.free[r, m - 1] or profile.pool[r, m] != profile.pool[r, m - 1]:
            return False
    return True


@step
def drop_instant(time: int, profile: ProfileArrays) -> None:
    """Drop an instant, other than now, at which nothing changes any more."""
    at, count = before(time, profile), profile.status.instants
    if at > profile.status.present and at < count and profile.time[at] == time and _changes_nothing(at, profile):
        _move(at + 1, count, 1, profile)
        profile.status.instants = count - 1


@step
def advance(profile: ProfileArrays, now: RackNow) -> None:
    """Advance the start of the profile to now."""
    profile.status.present = before(now.time + 1, profile) - 1
    profile.time[profile.status.present] = now.time


@step
def merge(profile: ProfileArrays) -> None:
    """Drop past instants and those at which nothing changes."""
    present, written = profile.status.present, 1
    _move(present, profile.status.instants, present, profile)
    count = profile.status.instants - present
    first = 1
    while first < count:  # keep the instants from `first` up to the next one at which nothing changes
        last = first
        while last < count and not _changes_nothing(last, profile):
            last += 1
        _move(first, last, first - written, profile)
        written += last - first
        first = last + 1
    profile.status.instants, profile.status.present, profile.status.merged = written, 0, written
