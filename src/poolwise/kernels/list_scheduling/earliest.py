"""The earliest interval of a profile in which a job fits.

The same as `policies.backfill.conservative.AvailabilityProfile.earliest`.
"""

from __future__ import annotations

from poolwise.kernels.jit import inlined, step
from poolwise.kernels.list_scheduling.racks import expected, fits, place
from poolwise.kernels.list_scheduling.state import INSTANT_COUNT, LENGTH_FOUND, JobArrays, ProfileArrays, RackArrays, Rules
from poolwise.units import HORIZON


@inlined
def shortest(job: int, jobs: JobArrays, rules: Rules) -> int:
    """Length (ns) of a job's interval; where it depends on the placement, the least."""
    if rules.anywhere and jobs.remote[job] > 0:
        return int(jobs.asked[job])
    return int(max(jobs.asked[job], jobs.length[job]))


@step
def earliest(job: int, first: int, limit: int, jobs: JobArrays, rules: Rules, racks: RackArrays, profile: ProfileArrays) -> int:
    """Find the instant, from the `first` on and before the time `limit` (ns), from which on a job fits; -1 if there is none.

    The placement is in `racks.take` and `racks.borrow`, the length of the interval in `profile.size`; the least over it in
    `profile.least_free` and `.least_pool`.

    An interval begins at instant k and has grown up to instant m. Where the job does not fit throughout any more, no interval
    that begins at k holds it, and the next one is tried, which has grown as far. The least over what slides along so is kept
    in two parts (see `_shorten`), so that an instant is looked at a few times, however many intervals it is in.
    """
    n, remote, count = jobs.nodes[job], jobs.remote[job], profile.size[INSTANT_COUNT]
    length = shortest(job, jobs, rules)
    k, middle, m = first, first, first
    while True:
        if k == m:
            k, m = _next(k, n, remote, length, limit, profile)
            if k == m:
                return -1
            middle = k
            _cover(k, m, profile)
        elif profile.time[k] >= limit:
            return -1
        elif m == count or profile.time[m] - profile.time[k] >= min(length, HORIZON - profile.time[k]):
            profile.size[LENGTH_FOUND] = _length(job, k, m, length, jobs, rules, racks, profile)
            if profile.size[LENGTH_FOUND] >= 0:
                return int(k)
            k, middle = _shorten(k, middle, m, n, remote, rules.anywhere, profile)
        elif _has_enough(m, n, remote, profile):
            _lengthen(k, middle, m, profile)
            m += 1
        else:
            k, middle, m = m + 1, m + 1, m + 1
        while k < m and not fits(n, remote, rules.anywhere, profile.least_free, profile.least_pool):
            k, middle = _shorten(k, middle, m, n, remote, rules.anywhere, profile)


@inlined
def _next(k: int, n: int, remote: int, length: int, limit: int, profile: ProfileArrays) -> tuple[int, int]:
    """Find the next interval, from instant k on, with enough in all at each of its instants: its first, and that behind it.

    Both are the same if there is none that begins before `limit`.
    """
    count, m = profile.size[INSTANT_COUNT], k
    while m < count and (m == k or profile.time[m] - profile.time[k] < min(length, HORIZON - profile.time[k])):
        if m == k and profile.time[k] >= limit:
            return k, k
        if not _has_enough(m, n, remote, profile):
            k = m + 1
        m += 1
    return k, m


@inlined
def _cover(k: int, m: int, profile: ProfileArrays) -> None:
    """Write the least over an interval from instant k to before m, all of it its later part."""
    for r in range(profile.least_free.size):
        least = profile.free[r, k]
        for j in range(k + 1, m):
            least = min(least, profile.free[r, j])
        profile.least_free[r] = profile.recent_free[r] = least
        least = profile.pool[r, k]
        for j in range(k + 1, m):
            least = min(least, profile.pool[r, j])
        profile.least_pool[r] = profile.recent_pool[r] = least


@inlined
def _has_enough(k: int, n: int, remote: int, profile: ProfileArrays) -> bool:
    """Whether racks have enough for a job in all at instant k; mostly that says that it does not fit."""
    return bool(profile.nodes[k] >= n and profile.memory[k] >= n * remote)


@inlined
def _lengthen(k: int, middle: int, m: int, profile: ProfileArrays) -> None:
    """Let an interval from k on, whose later part is from `middle` to before m, reach instant m."""
    for r in range(profile.recent_free.size):
        free, pool = profile.free[r, m], profile.pool[r, m]
        profile.recent_free[r] = free if m == middle else min(profile.recent_free[r], free)
        profile.recent_pool[r] = pool if m == middle else min(profile.recent_pool[r], pool)
        profile.least_free[r] = min(profile.least_free[r], free)
        profile.least_pool[r] = min(profile.least_pool[r], pool)


@step
def _shorten(k: int, middle: int, m: int, n: int, remote: int, anywhere: bool, profile: ProfileArrays) -> tuple[int, int]:
    """Let an interval from k to before m begin at the next instant; returns it, and where its later part begins.

    Where nothing is left of its earlier part, all of it becomes that: the least from each instant to the last, as far back
    as the job fits there.
    """
    k += 1
    if k >= middle:
        j, middle = m - 1, m
        while j >= k:
            for r in range(profile.recent_free.size):
                free, pool = profile.free[r, j], profile.pool[r, j]
                profile.least_free[r] = free if j == m - 1 else min(profile.least_free[r], free)
                profile.least_pool[r] = pool if j == m - 1 else min(profile.least_pool[r], pool)
                profile.tail_free[j, r], profile.tail_pool[j, r] = profile.least_free[r], profile.least_pool[r]
            if not fits(n, remote, anywhere, profile.least_free, profile.least_pool):
                break
            j -= 1
        k = j + 1
    if k < m:
        _least(k, middle, m, profile)
    return k, middle


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
        while m < profile.size[INSTANT_COUNT] and profile.time[m] - profile.time[k] < length:
            for r in range(racks.free.size):
                profile.least_free[r] = min(profile.least_free[r], profile.free[r, m])
                profile.least_pool[r] = min(profile.least_pool[r], profile.pool[r, m])
            m += 1
        if not place(
            jobs.nodes[job], jobs.remote[job], rules.anywhere, profile.least_free, profile.least_pool, racks.take, racks.borrow
        ):
            return -1
        needed = min(expected(job, jobs, racks.take, racks.borrow, rules.anywhere, rules.believed_spread), most)
        if needed <= length:
            return int(length)
        length = needed
