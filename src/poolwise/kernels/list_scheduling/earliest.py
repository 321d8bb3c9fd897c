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

    What is free falls only where reservations begin, so that the least over an interval is that at its first instant and at
    those, its lows. An interval begins at instant k, instants up to before m are known, and `profile.low` holds its lows at
    positions from a to before b. The least over lows that slide along so is kept in two parts (see `_drop`), so that a low
    is looked at a few times, however many intervals it is in.
    """
    n, remote, count, low = jobs.nodes[job], jobs.remote[job], profile.size[INSTANT_COUNT], profile.low
    length = shortest(job, jobs, rules)
    k, m, a, middle, b = first, first, 0, 0, 0
    while True:
        while k < count and not _has_enough(k, n, remote, profile):
            k += 1
        if k == count or profile.time[k] >= limit:
            return -1
        while a < b and low[a] <= k:
            a += 1
        if a > middle:  # the later part has lows that are over
            a, middle = _drop(a, middle, b, n, remote, rules.anywhere, profile)
        m, known, until = max(m, k + 1), b, profile.time[k] + min(length, HORIZON - profile.time[k])
        while m < count and profile.time[m] < until and (profile.begins[m] <= 0 or _has_enough(m, n, remote, profile)):
            low[b] = m
            b += int(profile.begins[m] > 0)
            m += 1
        if m < count and profile.time[m] < until:
            k, a, middle, b = m + 1, 0, 0, 0
            continue
        _lengthen(known, middle, b, profile)
        _least(k, a, middle, b, profile)
        if fits(n, remote, rules.anywhere, profile.least_free, profile.least_pool):
            profile.size[LENGTH_FOUND] = _length(job, k, m, length, jobs, rules, racks, profile)
            if profile.size[LENGTH_FOUND] >= 0:
                return int(k)
        elif a < b:
            _least(low[a], a, middle, b, profile)
            if not fits(n, remote, rules.anywhere, profile.least_free, profile.least_pool):
                a, middle = _drop(a + 1, middle, b, n, remote, rules.anywhere, profile)
                k = low[a - 1]
        k += 1


@inlined
def _has_enough(k: int, n: int, remote: int, profile: ProfileArrays) -> bool:
    """Whether racks have enough for a job in all at instant k; mostly that says that it does not fit."""
    return bool(profile.nodes[k] >= n and profile.memory[k] >= n * remote)


@inlined
def _lengthen(known: int, middle: int, b: int, profile: ProfileArrays) -> None:
    """Let the later part of an interval's lows, from position `middle` on, have those from `known` to before b as well."""
    for j in range(known, b):
        m = profile.low[j]
        for r in range(profile.recent_free.size):
            free, pool = profile.free[r, m], profile.pool[r, m]
            profile.recent_free[r] = free if j == middle else min(profile.recent_free[r], free)
            profile.recent_pool[r] = pool if j == middle else min(profile.recent_pool[r], pool)


@step
def _drop(a: int, middle: int, b: int, n: int, remote: int, anywhere: bool, profile: ProfileArrays) -> tuple[int, int]:
    """Let an interval's lows begin at position a, or behind; returns where the job fits at once at them all, and the middle.

    Where nothing is left of the earlier part, all of them become that: the least from each low to the last, as far back as
    the job fits there. No interval with the low before holds the job then.
    """
    while a < middle:
        _least(profile.low[a], a, middle, b, profile)
        if fits(n, remote, anywhere, profile.least_free, profile.least_pool):
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
        if not fits(n, remote, anywhere, profile.least_free, profile.least_pool):
            break
        j -= 1
    return j + 1, b


@inlined
def _least(k: int, a: int, middle: int, b: int, profile: ProfileArrays) -> None:
    """Write the least at instant k and at the lows at positions from a to before b."""
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
