"""What remains of the reservations of the last pass: which of them are surely those of this pass too.

A reservation is that of the earliest interval that is free beside those of the jobs in front. It stays what it is unless, for
these jobs, more has become free in an interval that one beginning earlier, or itself, would meet, or less on its own racks in
its own interval. So with each job stand the intervals in which more, and less, may be free than when its reservation was
found: what runs gave back that ended early, what jobs of before took that are behind it now, or have another reservation, and
what jobs took that were behind it. Intervals are joined to one that holds them, so that a reservation is looked for once too
often rather than once too seldom.

A job in scope rack has an interval of one length. In an interval of which nothing has changed, or only on racks that it takes
nothing of, it is placed as before: a rack that is chosen stays chosen where others get less.
"""

from __future__ import annotations

from poolwise.arrays import IntArray
from poolwise.kernels.jit import inlined, step
from poolwise.kernels.list_scheduling import heap
from poolwise.kernels.list_scheduling.order import key_in_front
from poolwise.kernels.list_scheduling.profile import change
from poolwise.kernels.list_scheduling.racks import copy
from poolwise.kernels.list_scheduling.runs import release
from poolwise.kernels.list_scheduling.state import (
    EARLY,
    LENGTH_FOUND,
    RANKED,
    TIME,
    WAITING,
    JobArrays,
    Order,
    ProfileArrays,
    QueueArrays,
    RackArrays,
    ReservationCacheArrays,
    RunArrays,
)
from poolwise.units import NEVER

MOVES = 16
"""Places by which a job of the queue moves up on average, beyond which the queue is ranked anew."""


@step
def rank(order: Order, queue: QueueArrays, standing: ReservationCacheArrays, now: IntArray) -> None:
    """Bring the ranking of the waiting jobs up to date, and note what more and less is free for those whose order changed."""
    _gather(queue, standing, now)
    moves, most = 0, MOVES * (now[WAITING] + MOVES)
    for k in range(now[WAITING]):
        job = standing.ranked[k]
        standing.key[job] = key_in_front(job, order, now)
    for k in range(1, now[WAITING]):
        job, at = standing.ranked[k], k
        while at > 0 and heap.before(job, standing.ranked[at - 1], standing.key):
            other = standing.ranked[at - 1]
            standing.ranked[at], standing.place[other] = other, at
            at -= 1
            if standing.start[job] >= 0 and standing.start[other] >= 0:
                more(job, standing.start[other], standing.end[other], standing)
                less(other, standing.start[job], standing.end[job], uses(job, standing), standing)
        standing.ranked[at], standing.place[job] = job, at
        moves += k - at
        if moves > most:
            _rank_anew(standing, now)
            return


@inlined
def _gather(queue: QueueArrays, standing: ReservationCacheArrays, now: IntArray) -> None:
    """Let the ranking hold all waiting jobs and no other, those that came since the last pass behind the others."""
    count = 0
    for k in range(now[RANKED]):
        job = standing.ranked[k]
        if queue.where[job] >= 0:
            standing.ranked[count], standing.place[job] = job, count
            count += 1
    held = count
    if held < now[WAITING]:
        for k in range(now[WAITING]):
            job = queue.job[k]
            at = standing.place[job]
            if at >= held or standing.ranked[at] != job:
                standing.ranked[count], standing.place[job] = job, count
                count += 1
                drop(job, standing)
    now[RANKED] = count


@step
def _rank_anew(standing: ReservationCacheArrays, now: IntArray) -> None:
    """Rank all waiting jobs by their keys, whatever their order is, and take each one to have been behind any other."""
    begin, end = NEVER, 0
    for k in range(now[WAITING]):
        job = standing.ranked[k]
        if standing.start[job] >= 0:
            begin, end = min(begin, standing.start[job]), max(end, standing.end[job])
    for k in range(now[WAITING]):
        more(standing.ranked[k], begin, end, standing)
        less(standing.ranked[k], begin, end, -1, standing)
    heap.arrange(standing.ranked, now[WAITING], standing.key)
    for k in range(now[WAITING] - 1, 0, -1):
        standing.ranked[k] = heap.pop(standing.ranked, k + 1, standing.key)
    for k in range(now[WAITING] // 2):  # a heap sort leaves the first last
        other = now[WAITING] - 1 - k
        standing.ranked[k], standing.ranked[other] = standing.ranked[other], standing.ranked[k]
    for k in range(now[WAITING]):
        standing.place[standing.ranked[k]] = k


@inlined
def drop(job: int, standing: ReservationCacheArrays) -> None:
    """Know nothing of a job's reservation."""
    standing.start[job], standing.counted[job] = -1, False
    settle(job, standing)


@inlined
def settle(job: int, standing: ReservationCacheArrays) -> None:
    """Take a job's reservation for what it is now."""
    standing.more_from[job], standing.more_until[job] = NEVER, 0
    standing.less_from[job], standing.less_until[job], standing.less_on[job] = NEVER, 0, 0


@inlined
def more(job: int, begin: int, end: int, standing: ReservationCacheArrays) -> None:
    """Note that more may be free for a job in an interval."""
    standing.more_from[job] = min(standing.more_from[job], begin)
    standing.more_until[job] = max(standing.more_until[job], end)


@inlined
def less(job: int, begin: int, end: int, on: int, standing: ReservationCacheArrays) -> None:
    """Note that less may be free for a job in an interval, on some racks (bits)."""
    standing.less_from[job] = min(standing.less_from[job], begin)
    standing.less_until[job] = max(standing.less_until[job], end)
    standing.less_on[job] |= on


@inlined
def uses(job: int, standing: ReservationCacheArrays) -> int:
    """Racks (bits) of a job's reservation; where there are more than 60 some share a bit."""
    on = 0
    for r in range(standing.take.shape[1]):
        if standing.take[job, r] > 0:
            on |= 1 << (r % 60)
    return on


@inlined
def may_begin_earlier(job: int, now: IntArray, standing: ReservationCacheArrays) -> bool:
    """Whether more may be free in an interval that meets a job's reservation, or one of its length that begins before it."""
    return bool(standing.more_until[job] > now[TIME] and standing.more_from[job] < standing.end[job])


@inlined
def may_have_gone(job: int, standing: ReservationCacheArrays) -> bool:
    """Whether more or less may be free in the interval of a job's reservation where it matters for its placement."""
    begin, end = standing.start[job], standing.end[job]
    if standing.more_until[job] > begin and standing.more_from[job] < end:
        return True
    met = standing.less_until[job] > begin and standing.less_from[job] < end
    return bool(met and standing.less_on[job] & uses(job, standing) != 0)


@inlined
def stands(job: int, now: IntArray, standing: ReservationCacheArrays) -> bool:
    """Whether a reservation surely is what it was."""
    if standing.start[job] < now[TIME] or may_begin_earlier(job, now, standing):
        return False
    return not may_have_gone(job, standing)


@inlined
def count(job: int, sign: int, now: IntArray, profile: ProfileArrays) -> None:
    """Take a job's reservation off the profile (sign -1), or give it back (sign 1)."""
    standing = profile.standing
    standing.counted[job] = sign < 0
    begin = max(standing.start[job], now[TIME])
    change(begin, max(standing.end[job], begin), standing.take[job], standing.borrow[job], sign, profile)


@step
def end_early(racks: RackArrays, profile: ProfileArrays, runs: RunArrays, now: IntArray) -> None:
    """Give back to the profile what runs held that ended early, from now until they were expected to end."""
    until = 0
    for k in range(now[EARLY]):
        run = runs.early[k]
        if runs.expected[run] > now[TIME]:
            until = max(until, runs.expected[run])
            for r in range(racks.take.size):
                racks.take[r], racks.borrow[r] = 0, 0
            release(run, racks, runs, racks.take, racks.borrow)
            change(now[TIME], runs.expected[run], racks.take, racks.borrow, 1, profile)
    now[EARLY] = 0
    if until > 0:
        for k in range(now[WAITING]):
            more(profile.standing.ranked[k], now[TIME], until, profile.standing)


@step
def run_behind(job: int, before: int, now: IntArray, standing: ReservationCacheArrays) -> None:
    """Note that the jobs in front of a position see a job's reservation, which begins now, as a run.

    There was room for it beside theirs. A job that is placed on the racks of it is placed elsewhere only if its own rack no
    longer is ahead of the others.
    """
    for k in range(before):
        other = standing.ranked[k]
        if standing.start[other] < 0 or standing.start[other] >= standing.end[job]:
            continue
        for r in range(standing.take.shape[1]):
            if standing.take[job, r] > 0 and standing.take[other, r] > 0:
                standing.spare[other] -= standing.take[job, r]
                if standing.spare[other] < 0:
                    less(other, now[TIME], standing.end[job], uses(job, standing), standing)
                    break


@inlined
def write(job: int, k: int, jobs: JobArrays, racks: RackArrays, profile: ProfileArrays) -> None:
    """Write the reservation that `earliest` found, -1 for none."""
    standing = profile.standing
    if k < 0:
        standing.start[job] = -1
        return
    standing.start[job], standing.end[job] = profile.time[k], profile.time[k] + profile.size[LENGTH_FOUND]
    copy(racks.take, standing.take[job])
    copy(racks.borrow, standing.borrow[job])
    standing.spare[job] = _spare(job, jobs, profile)


@inlined
def _spare(job: int, jobs: JobArrays, profile: ProfileArrays) -> int:
    """Nodes by which the rack that holds all of a placement is ahead of the next one, by the least in its interval."""
    n, whole, standing = jobs.nodes[job], -1, profile.standing
    for r in range(standing.take.shape[1]):
        if standing.take[job, r] == n:
            whole = r
    if whole < 0:
        return -1
    ahead = profile.least_free[whole]  # beside no other
    for r in range(standing.take.shape[1]):
        if r != whole and profile.least_free[r] >= n and profile.least_pool[r] >= n * jobs.remote[job]:
            ahead = min(ahead, profile.least_free[whole] - profile.least_free[r] - int(r < whole))
    return int(ahead)
