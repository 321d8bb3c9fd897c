"""What is free from each of a list of instants on, and the earliest interval in which a job fits.

The same as `policies.backfill.conservative.AvailabilityProfile`.
"""

from __future__ import annotations

from poolwise.arrays import IntArray
from poolwise.kernels.jit import inlined, step
from poolwise.kernels.list_scheduling.racks import copy, expected, fits, place, total
from poolwise.kernels.list_scheduling.runs import release
from poolwise.kernels.list_scheduling.state import (
    ROWS,
    RUNNING,
    TIME,
    WAITING,
    JobArrays,
    ProfileArrays,
    RackArrays,
    Rules,
    RunArrays,
)
from poolwise.units import HORIZON, OVERDUE


@step
def has_instants(profile: ProfileArrays, now: IntArray) -> bool:
    """Whether the profile has room for all ends and reservations; else `now[ROWS]` says how many instants it needs."""
    now[ROWS] = now[RUNNING] + 2 * now[WAITING] + 4
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
def until(length: int, profile: ProfileArrays) -> int:
    """Instants that an interval of this length from now on meets, at least 1; it ends at the horizon at the latest."""
    end = profile.time[0] + min(length, HORIZON - profile.time[0])
    return max(before(end, profile), 1)


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
def minima(first: int, last: int, count: int, profile: ProfileArrays) -> bool:
    """Write the least from now to each of the first `count` instants; whether any is less than was written.

    What is free has changed at instants from `first` to before `last` alone.
    """
    less = False
    if first == 0:
        row = profile.row[0]
        copy(profile.free[row], profile.low_free[row])
        copy(profile.pool[row], profile.low_pool[row])
        first, less = 1, True
    for m in range(first, count):
        row, previous, same = profile.row[m], profile.row[m - 1], True
        for r in range(profile.free.shape[1]):
            free = min(profile.low_free[previous, r], profile.free[row, r])
            pool = min(profile.low_pool[previous, r], profile.pool[row, r])
            same = same and free == profile.low_free[row, r] and pool == profile.low_pool[row, r]
            profile.low_free[row, r], profile.low_pool[row, r] = free, pool
        less = less or not same
        if same and m >= last:
            break
    return less


@step
def earliest(job: int, jobs: JobArrays, rules: Rules, racks: RackArrays, profile: ProfileArrays) -> int:
    """Find the instant from which on a job fits throughout, -1 if there is none.

    The placement is in `racks.take` and `racks.borrow`, the length of the interval in `profile.size[1]`.

    An interval begins at instant k and has grown up to instant m. Where the job does not fit throughout any more, no interval
    that begins at k holds it, and the next one is tried, which has grown as far. The least over what slides along so is kept
    in two parts (see `_shorten`), so that an instant is looked at a few times, however many intervals it is in.
    """
    n, remote, count = jobs.nodes[job], jobs.remote[job], profile.size[0]
    length = jobs.asked[job] if rules.anywhere and remote > 0 else max(jobs.asked[job], jobs.length[job])
    k, middle, m = 0, 0, 0
    while m < count or k < m:
        if m == count or (k < m and profile.time[m] - profile.time[k] >= min(length, HORIZON - profile.time[k])):
            profile.size[1] = _length(job, k, m, length, jobs, rules, racks, profile)
            if profile.size[1] >= 0:
                return int(k)
            k, middle = _shorten(k, middle, m, profile)
            _least(k, middle, m, profile)
        elif not _fits_at(m, n, remote, rules.anywhere, profile):
            k, middle, m = m + 1, m + 1, m + 1
        else:
            less = _lengthen(k, middle, m, profile)
            m += 1
            while less and k < m - 1 and not fits(n, remote, rules.anywhere, profile.least_free, profile.least_pool):
                k, middle = _shorten(k, middle, m, profile)
                _least(k, middle, m, profile)
    return -1


@inlined
def _fits_at(k: int, n: int, remote: int, anywhere: bool, profile: ProfileArrays) -> bool:
    """Whether n nodes with `remote` MiB each find room at instant k; what is free in all mostly says that they do not."""
    if profile.nodes[k] < n or profile.memory[k] < n * remote:
        return False
    return remote == 0 or anywhere or bool(fits(n, remote, False, profile.free[profile.row[k]], profile.pool[profile.row[k]]))


@inlined
def _lengthen(k: int, middle: int, m: int, profile: ProfileArrays) -> bool:
    """Let an interval from k on, whose later part is from `middle` to before m, reach instant m; whether its least is less."""
    row, less = profile.row[m], False
    for r in range(profile.recent_free.size):
        free, pool = profile.free[row, r], profile.pool[row, r]
        if m == middle or free < profile.recent_free[r]:
            profile.recent_free[r] = free
        if m == middle or pool < profile.recent_pool[r]:
            profile.recent_pool[r] = pool
        if m == k or free < profile.least_free[r]:
            profile.least_free[r], less = free, True
        if m == k or pool < profile.least_pool[r]:
            profile.least_pool[r], less = pool, True
    return less


@step
def _shorten(k: int, middle: int, m: int, profile: ProfileArrays) -> tuple[int, int]:
    """Let an interval from k to before m begin at the next instant; returns it, and where its later part begins.

    Where nothing is left of its earlier part, all of it becomes that: the least from each instant to the last.
    """
    k += 1
    if k < middle or k == m:
        return k, max(k, middle)
    for j in range(m - 1, k - 1, -1):
        row = profile.row[j]
        for r in range(profile.recent_free.size):
            free, pool = profile.free[row, r], profile.pool[row, r]
            profile.tail_free[j, r] = free if j == m - 1 else min(profile.tail_free[j + 1, r], free)
            profile.tail_pool[j, r] = pool if j == m - 1 else min(profile.tail_pool[j + 1, r], pool)
    return k, m


@inlined
def _least(k: int, middle: int, m: int, profile: ProfileArrays) -> None:
    """Write the least over an interval from k to before m, of its two parts."""
    for r in range(profile.recent_free.size):
        if k >= middle:
            profile.least_free[r], profile.least_pool[r] = profile.recent_free[r], profile.recent_pool[r]
        elif middle == m:
            profile.least_free[r], profile.least_pool[r] = profile.tail_free[k, r], profile.tail_pool[k, r]
        else:
            profile.least_free[r] = min(profile.tail_free[k, r], profile.recent_free[r])
            profile.least_pool[r] = min(profile.tail_pool[k, r], profile.recent_pool[r])


@step
def _length(
    job: int, k: int, m: int, length: int, jobs: JobArrays, rules: Rules, racks: RackArrays, profile: ProfileArrays
) -> int:
    """Length of the interval from instant k that a job needs, -1 if it does not fit; it ends at the horizon at the latest.

    The runtime depends on the placement, which depends on what is free throughout the interval. The least up to before instant
    m, over a first `length`, is known.
    """
    most = HORIZON - profile.time[k]
    length = min(length, most)
    while True:
        while m < profile.size[0] and profile.time[m] - profile.time[k] < length:
            row = profile.row[m]
            for r in range(racks.free.size):
                profile.least_free[r] = min(profile.least_free[r], profile.free[row, r])
                profile.least_pool[r] = min(profile.least_pool[r], profile.pool[row, r])
            m += 1
        if not place(
            jobs.nodes[job], jobs.remote[job], rules.anywhere, profile.least_free, profile.least_pool, racks.take, racks.borrow
        ):
            return -1
        needed = min(expected(job, jobs, racks.take, racks.borrow, rules.anywhere, rules.believed_spread), most)
        if needed <= length:
            return int(length)
        length = needed


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
    copy(profile.low_free[like], profile.low_free[row])
    copy(profile.low_pool[like], profile.low_pool[row])
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
