"""Reservations cached from pass to pass, and which of them are certainly unchanged.

A job's reservation is the earliest interval that the reservations of the jobs in front leave free. It stays valid unless those
jobs have released capacity in an interval that overlaps it or an earlier candidate interval, or have taken capacity on its own
racks in its own interval. So the cache stores for each job the intervals in which more (gain) and less (loss) may be free than
when its reservation was found. Gains come from runs that ended early and from jobs in front that moved behind the job or got
another reservation. Losses come from jobs that moved in front of it. Intervals are merged into their hull: a reservation may be
recomputed needlessly, but never too seldom.

A job in scope "rack" has an interval of fixed length. In an interval without changes, or with changes only on racks that it
does not use, its placement is the same: a chosen rack is still chosen if other racks have less. On mixed nodes neither holds,
and each pass recomputes all reservations.
"""

from __future__ import annotations

from poolwise.kernels.common import heap
from poolwise.kernels.common.state import Order, QueueArrays
from poolwise.kernels.jit import inlined, step
from poolwise.kernels.list_scheduling.profile import change
from poolwise.kernels.list_scheduling.racks import copy
from poolwise.kernels.list_scheduling.runs import release
from poolwise.kernels.list_scheduling.state import (
    JobArrays,
    ProfileArrays,
    RackArrays,
    RackNow,
    RackState,
    ReservationCacheArrays,
)
from poolwise.kernels.list_scheduling.waiting import key_in_front
from poolwise.quantities import NEVER

MAX_MOVES = 16
"""Average number of positions that jobs move up beyond which the queue is sorted from scratch."""


@step
def rank(order: Order, queue: QueueArrays, cache: ReservationCacheArrays, now: RackNow) -> None:
    """Update the ranking of the waiting jobs, and record gains and losses of the jobs whose order changed."""
    _gather(queue, cache, now)
    moves, most = 0, MAX_MOVES * (now.waiting + MAX_MOVES)
    for k in range(now.waiting):
        job = cache.ranked[k]
        cache.key[job] = key_in_front(job, order, now)
    for k in range(1, now.waiting):
        job, at = cache.ranked[k], k
        while at > 0 and heap.before(job, cache.ranked[at - 1], cache.key):
            other = cache.ranked[at - 1]
            cache.ranked[at], cache.place[other] = other, at
            at -= 1
            if cache.start[job] >= 0 and cache.start[other] >= 0:
                note_gain(job, cache.start[other], cache.end[other], cache)
                note_loss(other, cache.start[job], cache.end[job], racks_used(job, cache), cache)
        cache.ranked[at], cache.place[job] = job, at
        moves += k - at
        if moves > most:
            _rank_from_scratch(cache, now)
            return


@inlined
def _gather(queue: QueueArrays, cache: ReservationCacheArrays, now: RackNow) -> None:
    """Make the ranking hold exactly the waiting jobs; jobs new since the last pass come last."""
    count = 0
    for k in range(now.ranked):
        job = cache.ranked[k]
        if queue.where[job] >= 0:
            cache.ranked[count], cache.place[job] = job, count
            count += 1
    held = count
    if held < now.waiting:
        for k in range(now.waiting):
            job = queue.job[k]
            at = cache.place[job]
            if at >= held or cache.ranked[at] != job:
                cache.ranked[count], cache.place[job] = job, count
                count += 1
                drop(job, cache)
    now.ranked = count


@step
def _rank_from_scratch(cache: ReservationCacheArrays, now: RackNow) -> None:
    """Sort all waiting jobs by their keys, and assume that each one may have moved relative to any other."""
    begin, end = NEVER, 0
    for k in range(now.waiting):
        job = cache.ranked[k]
        if cache.start[job] >= 0:
            begin, end = min(begin, cache.start[job]), max(end, cache.end[job])
    for k in range(now.waiting):
        note_gain(cache.ranked[k], begin, end, cache)
        note_loss(cache.ranked[k], begin, end, -1, cache)
    heap.sort(cache.ranked, now.waiting, cache.key)
    for k in range(now.waiting):
        cache.place[cache.ranked[k]] = k


@inlined
def drop(job: int, cache: ReservationCacheArrays) -> None:
    """Discard a job's reservation."""
    cache.start[job], cache.counted[job] = -1, False
    mark_current(job, cache)


@inlined
def mark_current(job: int, cache: ReservationCacheArrays) -> None:
    """Mark a job's reservation as current: clear its gain and loss intervals."""
    cache.gain_from[job], cache.gain_until[job] = NEVER, 0
    cache.loss_from[job], cache.loss_until[job], cache.loss_on[job] = NEVER, 0, 0


@inlined
def note_gain(job: int, begin: int, end: int, cache: ReservationCacheArrays) -> None:
    """Record that more may be free for a job in an interval."""
    cache.gain_from[job] = min(cache.gain_from[job], begin)
    cache.gain_until[job] = max(cache.gain_until[job], end)


@inlined
def note_loss(job: int, begin: int, end: int, on: int, cache: ReservationCacheArrays) -> None:
    """Record that less may be free for a job in an interval, on some racks (bits)."""
    cache.loss_from[job] = min(cache.loss_from[job], begin)
    cache.loss_until[job] = max(cache.loss_until[job], end)
    cache.loss_on[job] |= on


@inlined
def racks_used(job: int, cache: ReservationCacheArrays) -> int:
    """Return the racks of a job's reservation as bits; with more than 60 racks, some share a bit."""
    on = 0
    for r in range(cache.take.shape[1]):
        if cache.take[job, r] > 0:
            on |= 1 << (r % 60)
    return on


@inlined
def may_begin_earlier(job: int, now: RackNow, cache: ReservationCacheArrays) -> bool:
    """Return whether more may be free in a job's interval, or in an earlier interval of the same length."""
    return bool(cache.gain_until[job] > now.time and cache.gain_from[job] < cache.end[job])


@inlined
def may_be_affected(job: int, cache: ReservationCacheArrays) -> bool:
    """Return whether free capacity may have changed in a job's interval in a way that affects its placement."""
    begin, end = cache.start[job], cache.end[job]
    if cache.gain_until[job] > begin and cache.gain_from[job] < end:
        return True
    met = cache.loss_until[job] > begin and cache.loss_from[job] < end
    return bool(met and cache.loss_on[job] & racks_used(job, cache) != 0)


@inlined
def is_unchanged(job: int, now: RackNow, cache: ReservationCacheArrays) -> bool:
    """Return whether a reservation is certainly unchanged."""
    if cache.start[job] < now.time or may_begin_earlier(job, now, cache):
        return False
    return not may_be_affected(job, cache)


@inlined
def adjust_profile(job: int, sign: int, now: RackNow, profile: ProfileArrays) -> None:
    """Subtract a job's reservation from the profile (sign -1), or add it back (sign 1)."""
    cache = profile.cache
    cache.counted[job] = sign < 0
    begin = max(cache.start[job], now.time)
    change(begin, max(cache.end[job], begin), cache.take[job], cache.borrow[job], sign, profile)


@step
def release_early(state: RackState, profile: ProfileArrays) -> None:
    """Release in the profile the capacity of runs that ended early, from now until their expected end."""
    racks, runs, now = state.racks, state.runs, state.now
    until = 0
    for k in range(now.early):
        run = state.due.early[k]
        if runs.expected[run] > now.time:
            until = max(until, runs.expected[run])
            for r in range(racks.take.size):
                racks.take[r], racks.borrow[r] = 0, 0
            release(run, 1, racks.take, racks.borrow, state)
            change(now.time, runs.expected[run], racks.take, racks.borrow, 1, profile)
    now.early = 0
    if until > 0:
        for k in range(now.waiting):
            note_gain(profile.cache.ranked[k], now.time, until, profile.cache)


@step
def note_start_behind(job: int, before: int, now: RackNow, cache: ReservationCacheArrays) -> None:
    """Record, for the jobs ahead of a position, that a job whose reservation begins now has become a run.

    The job fitted together with their reservations. A job on the same rack is placed elsewhere only if that rack loses its lead
    over the other racks.
    """
    for k in range(before):
        other = cache.ranked[k]
        if cache.start[other] < 0 or cache.start[other] >= cache.end[job]:
            continue
        for r in range(cache.take.shape[1]):
            if cache.take[job, r] > 0 and cache.take[other, r] > 0:
                cache.margin[other] -= cache.take[job, r]
                if cache.margin[other] < 0:
                    note_loss(other, now.time, cache.end[job], racks_used(job, cache), cache)
                    break


@inlined
def store(job: int, k: int, jobs: JobArrays, racks: RackArrays, profile: ProfileArrays) -> None:
    """Store the reservation that `earliest` found, -1 for none."""
    cache = profile.cache
    if k < 0:
        cache.start[job] = -1
        return
    cache.start[job], cache.end[job] = profile.time[k], profile.time[k] + profile.status.length_found
    copy(racks.take, cache.take[job])
    copy(racks.borrow, cache.borrow[job])
    cache.margin[job] = _rack_margin(job, jobs, profile)


@inlined
def _rack_margin(job: int, jobs: JobArrays, profile: ProfileArrays) -> int:
    """Return the lead in nodes of the rack that holds the entire placement over the next best rack, in its interval."""
    n, whole, cache = jobs.nodes[job], -1, profile.cache
    for r in range(cache.take.shape[1]):
        if cache.take[job, r] == n:
            whole = r
    if whole < 0:
        return -1
    ahead = profile.least_free[whole]  # the lead if no other rack could hold it
    for r in range(cache.take.shape[1]):
        if r != whole and profile.least_free[r] >= n and profile.least_pool[r] >= n * jobs.remote[job]:
            ahead = min(ahead, profile.least_free[whole] - profile.least_free[r] - int(r < whole))
    return int(ahead)
