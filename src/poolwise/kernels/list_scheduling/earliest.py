"""The earliest interval of a profile in which a job fits.

The same as `policies.backfill.conservative.AvailabilityProfile.earliest`.
"""

from __future__ import annotations

from poolwise.kernels.jit import inlined, step
from poolwise.kernels.list_scheduling.racks import expected, fits, place
from poolwise.kernels.list_scheduling.state import JobArrays, ProfileArrays, RackArrays, Rules
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

    The placement is in `racks.take` and `racks.borrow`, the length of the interval in `profile.size[1]`; the least over it in
    `profile.least_free` and `.least_pool`.

    An interval begins at instant k and has grown up to instant m. Where the job does not fit throughout any more, no interval
    that begins at k holds it, and the next one is tried, which has grown as far. The least over what slides along so is kept
    in two parts (see `_shorten`), so that an instant is looked at a few times, however many intervals it is in.
    """
    n, remote, count = jobs.nodes[job], jobs.remote[job], profile.size[0]
    length = shortest(job, jobs, rules)
    k, middle, m = first, first, first
    while True:
        if k == m:
            k, m = _next(k, n, remote, length, limit, rules.anywhere, profile)
            if k == m:
                return -1
            middle = k
            _cover(k, m, profile)
        elif profile.time[k] >= limit:
            return -1
        elif m == count or profile.time[m] - profile.time[k] >= min(length, HORIZON - profile.time[k]):
            profile.size[1] = _length(job, k, m, length, jobs, rules, racks, profile)
            if profile.size[1] >= 0:
                return int(k)
            k, middle = _shorten(k, middle, m, profile)
            _least(k, middle, m, profile)
            continue
        elif not _fits_at(m, n, remote, rules.anywhere, profile):
            k, middle, m = m + 1, m + 1, m + 1
            continue
        else:
            less = _lengthen(k, middle, m, profile)
            m += 1
            if not less:
                continue
        while k < m - 1 and not fits(n, remote, rules.anywhere, profile.least_free, profile.least_pool):
            k, middle = _shorten(k, middle, m, profile)
            _least(k, middle, m, profile)


@inlined
def _next(
    k: int, n: int, remote: int, length: int, limit: int, anywhere: bool, profile: ProfileArrays
) -> tuple[int, int]:
    """Find the next interval, from instant k on, in which a job fits at each instant by itself: its first, and that behind it.

    Both are the same if there is none that begins before `limit`.
    """
    count, m = profile.size[0], k
    while m < count and (m == k or profile.time[m] - profile.time[k] < min(length, HORIZON - profile.time[k])):
        if m == k and profile.time[k] >= limit:
            return k, k
        if not _fits_at(m, n, remote, anywhere, profile):
            k = m + 1
        m += 1
    return k, m


@inlined
def _cover(k: int, m: int, profile: ProfileArrays) -> None:
    """Write the least over an interval from instant k to before m, all of it its later part."""
    row = profile.row[k]
    for r in range(profile.least_free.size):
        profile.least_free[r], profile.least_pool[r] = profile.free[row, r], profile.pool[row, r]
    for j in range(k + 1, m):
        row = profile.row[j]
        for r in range(profile.least_free.size):
            profile.least_free[r] = min(profile.least_free[r], profile.free[row, r])
            profile.least_pool[r] = min(profile.least_pool[r], profile.pool[row, r])
    for r in range(profile.least_free.size):
        profile.recent_free[r], profile.recent_pool[r] = profile.least_free[r], profile.least_pool[r]


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
