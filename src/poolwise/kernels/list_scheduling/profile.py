"""What is free from each of a list of instants on, and the earliest interval in which a job fits.

The same as `policies.backfill.conservative.AvailabilityProfile`.
"""

from __future__ import annotations

from poolwise.arrays import IntArray
from poolwise.kernels.jit import step
from poolwise.kernels.list_scheduling.racks import copy, expected, fits, place
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
    time, free, pool = profile.time, profile.free, profile.pool
    time[0] = now[TIME]
    copy(racks.free, free[0])
    copy(racks.pool, pool[0])
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
            copy(free[k - 1], free[k])
            copy(pool[k - 1], pool[k])
        release(run, racks, runs, free[k], pool[k])
    profile.size[0] = k + 1


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
def minima(count: int, profile: ProfileArrays) -> None:
    """Write the least from now to each of the first instants."""
    copy(profile.free[0], profile.low_free[0])
    copy(profile.pool[0], profile.low_pool[0])
    for m in range(1, count):
        for r in range(profile.free.shape[1]):
            profile.low_free[m, r] = min(profile.low_free[m - 1, r], profile.free[m, r])
            profile.low_pool[m, r] = min(profile.low_pool[m - 1, r], profile.pool[m, r])


@step
def earliest(job: int, jobs: JobArrays, rules: Rules, racks: RackArrays, profile: ProfileArrays) -> int:
    """Find the instant from which on a job fits throughout, -1 if there is none.

    The placement is in `racks.take` and `racks.borrow`, the length of the interval in `profile.size[1]`.
    """
    n, remote, anywhere = jobs.nodes[job], jobs.remote[job], rules.anywhere
    k = 0
    while k < profile.size[0]:
        m, length = k, min(int(jobs.asked[job]), HORIZON - profile.time[k])
        # An interval in which some instant is too full holds no job; none that begins before that instant's end does.
        while m < profile.size[0] and (m == k or profile.time[m] - profile.time[k] < length):
            if not fits(n, remote, anywhere, profile.free[m], profile.pool[m]):
                break
            m += 1
        else:
            profile.size[1] = _length(job, k, jobs, rules, racks, profile)
            if profile.size[1] >= 0:
                return int(k)
            k += 1
            continue
        k = m + 1
    return -1


@step
def _length(job: int, k: int, jobs: JobArrays, rules: Rules, racks: RackArrays, profile: ProfileArrays) -> int:
    """Length of the interval from instant k that a job needs, -1 if it does not fit; it ends at the horizon at the latest.

    The runtime depends on the placement, which depends on what is free throughout the interval.
    """
    most = HORIZON - profile.time[k]
    length = min(int(jobs.asked[job]), most)
    while True:
        copy(profile.free[k], profile.least_free)
        copy(profile.pool[k], profile.least_pool)
        m = k + 1
        while m < profile.size[0] and profile.time[m] - profile.time[k] < length:
            for r in range(racks.free.size):
                profile.least_free[r] = min(profile.least_free[r], profile.free[m, r])
                profile.least_pool[r] = min(profile.least_pool[r], profile.pool[m, r])
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
def change(begin: int, end: int, take: IntArray, borrow: IntArray, sign: int, profile: ProfileArrays) -> None:
    """Take a placement off the instants of an interval (sign -1), or give it back (sign 1)."""
    if begin == end:
        return  # at the horizon
    first, last = _instant(begin, profile), _instant(end, profile)
    for m in range(first, last):
        for r in range(take.size):
            profile.free[m, r] += sign * take[r]
            profile.pool[m, r] += sign * borrow[r]


@step
def _instant(time: int, profile: ProfileArrays) -> int:
    """Position of an instant, which is added if there is none; what is free does not change at it."""
    at, count = before(time, profile), profile.size[0]
    if at < count and profile.time[at] == time:
        return at
    for m in range(count, at, -1):
        profile.time[m] = profile.time[m - 1]
        copy(profile.free[m - 1], profile.free[m])
        copy(profile.pool[m - 1], profile.pool[m])
    profile.time[at] = time
    copy(profile.free[at - 1], profile.free[at])
    copy(profile.pool[at - 1], profile.pool[at])
    profile.size[0] = count + 1
    return at


@step
def forget(time: int, profile: ProfileArrays) -> None:
    """Drop an instant, other than now, at which nothing changes any more."""
    at, count = before(time, profile), profile.size[0]
    if at == 0 or at == count or profile.time[at] != time:
        return
    for r in range(profile.free.shape[1]):
        if profile.free[at, r] != profile.free[at - 1, r] or profile.pool[at, r] != profile.pool[at - 1, r]:
            return
    for m in range(at + 1, count):
        profile.time[m - 1] = profile.time[m]
        copy(profile.free[m], profile.free[m - 1])
        copy(profile.pool[m], profile.pool[m - 1])
    profile.size[0] = count - 1
