"""Earliest interval of an availability profile in which a job fits.

Equals `policies.backfill.conservative.AvailabilityProfile.earliest`.
"""

from __future__ import annotations

from poolwise.kernels.jit import inlined, step
from poolwise.kernels.list_scheduling.racks import expected, fits, place, varies
from poolwise.kernels.list_scheduling.state import JobArrays, MixedArrays, ProfileArrays, RackArrays, Rules
from poolwise.quantities import HORIZON


@inlined
def shortest(job: int, jobs: JobArrays, rules: Rules) -> int:
    """Return the length (ns) of a job's interval, or a lower bound if it depends on the placement."""
    if varies(job, jobs, rules):
        return int(jobs.expected_work[job])
    return int(max(jobs.expected_work[job], jobs.length[job]))


@step
def earliest(job: int, first: int, limit: int, jobs: JobArrays, rules: Rules, racks: RackArrays, profile: ProfileArrays) -> int:
    """Find the earliest instant, from position `first` on and before time `limit` (ns), at which a job fits; -1 if none.

    The placement is written to `racks.take` and `racks.borrow`, the length of the interval to `profile.status`, and the minimum
    over it to `profile.least_free` and `.least_pool`.

    Free capacity decreases only where reservations begin. So the minimum over an interval is the minimum over its first instant
    and the instants in it at which reservations begin, its lows. The interval begins at instant k, instants before m have been
    read, and positions a to b - 1 of `profile.low` hold its lows. The minimum over this sliding window is kept in two parts
    (see `_drop`), so that each low is read a few times, however many intervals contain it.
    """
    n, remote, count, low = jobs.nodes[job], jobs.remote[job], profile.status.instants, profile.low
    length = shortest(job, jobs, rules)
    k, m, a, middle, b = first, first, 0, 0, 0
    while True:
        while k < count and not _has_enough(k, n, remote, profile):
            k += 1
        if k == count or profile.time[k] >= limit:
            return -1
        while a < b and low[a] <= k:
            a += 1
        if a > middle:  # the later part contains lows that have left the window
            a, middle = _drop(a, middle, b, job, n, remote, rules.anywhere, jobs.mixed, profile)
        m, covered, until = max(m, k + 1), b, profile.time[k] + min(length, HORIZON - profile.time[k])
        while m < count and profile.time[m] < until and (profile.begins[m] <= 0 or _has_enough(m, n, remote, profile)):
            low[b] = m
            b += int(profile.begins[m] > 0)
            m += 1
        if m < count and profile.time[m] < until:
            k, a, middle, b = m + 1, 0, 0, 0
            continue
        _lengthen(covered, middle, b, profile)
        _least(k, a, middle, b, profile)
        if fits(job, n, remote, rules.anywhere, jobs.mixed, profile.least_free, profile.least_pool):
            profile.status.length_found = _length(job, k, m, length, jobs, rules, racks, profile)
            if profile.status.length_found >= 0:
                return int(k)
        elif a < b:
            _least(low[a], a, middle, b, profile)
            if not fits(job, n, remote, rules.anywhere, jobs.mixed, profile.least_free, profile.least_pool):
                a, middle = _drop(a + 1, middle, b, job, n, remote, rules.anywhere, jobs.mixed, profile)
                k = low[a - 1]
        k += 1


@inlined
def _has_enough(k: int, n: int, remote: int, profile: ProfileArrays) -> bool:
    """Return whether all racks together have enough for a job at instant k, a necessary condition that usually decides."""
    return bool(profile.nodes[k] >= n and profile.memory[k] >= n * remote)


@inlined
def _lengthen(covered: int, middle: int, b: int, profile: ProfileArrays) -> None:
    """Add the lows at positions `covered` to b - 1 to the later part of the window, which begins at position `middle`."""
    for j in range(covered, b):
        m = profile.low[j]
        for r in range(profile.recent_free.size):
            free, pool = profile.free[r, m], profile.pool[r, m]
            profile.recent_free[r] = free if j == middle else min(profile.recent_free[r], free)
            profile.recent_pool[r] = pool if j == middle else min(profile.recent_pool[r], pool)


@step
def _drop(
    a: int,
    middle: int,
    b: int,
    job: int,
    n: int,
    remote: int,
    anywhere: bool,
    mixed: MixedArrays | None,
    profile: ProfileArrays,
) -> tuple[int, int]:
    """Move the first low to position a or later; return the position from which the job fits at all lows, and the middle.

    If the earlier part becomes empty, all lows move to it, with the minimum from each low to the last, as far back as the job
    fits. No interval that contains the low before that position can hold the job.
    """
    while a < middle:
        _least(profile.low[a], a, middle, b, profile)
        if fits(job, n, remote, anywhere, mixed, profile.least_free, profile.least_pool):
            return a, middle
        a += 1
    j = b - 1
    while j >= a:
        m = profile.low[j]
        for r in range(profile.recent_free.size):
            free, pool = profile.free[r, m], profile.pool[r, m]
            profile.least_free[r] = free if j == b - 1 else min(profile.least_free[r], free)
            profile.least_pool[r] = pool if j == b - 1 else min(profile.least_pool[r], pool)
            profile.tail_free[j, r], profile.tail_pool[j, r] = profile.least_free[r], profile.least_pool[r]
        if not fits(job, n, remote, anywhere, mixed, profile.least_free, profile.least_pool):
            break
        j -= 1
    return j + 1, b


@inlined
def _least(k: int, a: int, middle: int, b: int, profile: ProfileArrays) -> None:
    """Write the minimum over instant k and the lows at positions a to b - 1."""
    for r in range(profile.recent_free.size):
        free, pool = profile.free[r, k], profile.pool[r, k]
        if a < middle:
            free, pool = min(free, profile.tail_free[a, r]), min(pool, profile.tail_pool[a, r])
        if middle < b:
            free, pool = min(free, profile.recent_free[r]), min(pool, profile.recent_pool[r])
        profile.least_free[r], profile.least_pool[r] = free, pool


@step
def _length(
    job: int, k: int, m: int, length: int, jobs: JobArrays, rules: Rules, racks: RackArrays, profile: ProfileArrays
) -> int:
    """Return the length (ns) of the interval that a job needs from instant k, at most to the horizon; -1 if it does not fit.

    The runtime depends on the placement, which depends on the capacity that is free throughout the interval. The minimum over
    the first `length` ns, the instants before m, is known.
    """
    most = HORIZON - profile.time[k]
    length = min(length, most)
    while True:
        while m < profile.status.instants and profile.time[m] - profile.time[k] < length:
            for r in range(racks.free.size):
                profile.least_free[r] = min(profile.least_free[r], profile.free[r, m])
                profile.least_pool[r] = min(profile.least_pool[r], profile.pool[r, m])
            m += 1
        if not place(job, jobs, rules.anywhere, profile.least_free, profile.least_pool, racks.take, racks.borrow):
            return -1
        needed = min(expected(job, jobs, racks.take, racks.borrow, rules), most)
        if needed <= length:
            return int(length)
        length = needed
