"""The first waiting jobs by priority, kept from pass to pass, and the demands of all waiting jobs."""

from __future__ import annotations

from poolwise.kernels.common.state import STATIC, Order
from poolwise.kernels.jit import inlined, step
from poolwise.kernels.list_scheduling.interval_state import IntervalArrays, RankArrays
from poolwise.kernels.list_scheduling.racks import fits
from poolwise.kernels.list_scheduling.state import RackNow, RackState
from poolwise.kernels.list_scheduling.waiting import key_in_front, leave


@step
def count_demands(state: RackState, intervals: IntervalArrays) -> None:
    """Count the waiting jobs by demand, unless the counts are up to date."""
    rank, status = intervals.rank, intervals.status
    if status.counted:
        return
    for d in range(rank.waiting.size):
        rank.waiting[d] = 0
    for k in range(state.now.waiting):
        rank.waiting[rank.demand[state.queue.job[k]]] += 1
    status.counted, status.current = 1, 0


@step
def any_demand_fits(state: RackState, intervals: IntervalArrays) -> bool:
    """Return whether some waiting job fits now; if none does, no order can start anything."""
    rank, racks = intervals.rank, state.racks
    for d in range(rank.waiting.size):
        if rank.waiting[d] > 0 and fits(-1, rank.nodes[d], rank.remote[d], state.rules.anywhere, None, racks.free, racks.pool):
            return True
    return False


@inlined
def note_arrival(job: int, state: RackState, intervals: IntervalArrays) -> None:
    """Update the counts and the ranking for a job that has joined the queue."""
    rank, status = intervals.rank, intervals.status
    if status.counted:
        rank.waiting[rank.demand[job]] += 1
        if status.current:
            _insert(job, state.order, state.now, intervals)


@step
def _insert(job: int, order: Order, now: RackNow, intervals: IntervalArrays) -> None:
    """Insert a job into the ranking if it is among the first, or if the ranking holds all waiting jobs and has room."""
    rank, status = intervals.rank, intervals.status
    rank.key[job] = key_in_front(job, order, now)
    count = status.ranked
    holds_all = count == now.waiting - 1 and count < rank.job.size
    if not holds_all and (count == 0 or not _before(job, rank.job[count - 1], rank)):
        return
    at = count
    while at > 0 and _before(job, rank.job[at - 1], rank):
        if at < rank.job.size:
            rank.job[at] = rank.job[at - 1]
        at -= 1
    rank.job[at] = job
    status.ranked = min(count + 1, rank.job.size)


@step
def start_ranked(at: int, state: RackState, intervals: IntervalArrays) -> None:
    """Remove a started job, given by its position in the ranking, from the ranking and the queue."""
    rank, status = intervals.rank, intervals.status
    job = rank.job[at]
    for k in range(at + 1, status.ranked):
        rank.job[k - 1] = rank.job[k]
    status.ranked -= 1
    status.holds_until = 0
    rank.waiting[rank.demand[job]] -= 1
    leave(job, state)


@step
def rank_first(wanted: int, state: RackState, intervals: IntervalArrays) -> int:
    """Make the ranking hold the first `wanted` waiting jobs, or all; return how many of them there are."""
    rank, status, now = intervals.rank, intervals.status, state.now
    wanted = min(wanted, now.waiting)
    if status.current == 0 or status.ranked < wanted:
        for k in range(now.waiting):
            job = state.queue.job[k]
            rank.key[job] = key_in_front(job, state.order, now)
        _select(state, intervals)
        status.current = int(state.order.kind == STATIC and not state.rules.capped)
    return wanted


@step
def _select(state: RackState, intervals: IntervalArrays) -> None:
    """Rank the first waiting jobs, using a heap of the best jobs so far with the last of them on top.

    Stop at the capacity of the ranking, or at the last job of the earlier ranking if that has enough jobs.
    """
    rank, status, now = intervals.rank, intervals.status, state.now
    last, size, k = _last_known(intervals.rules.depth, now.waiting, intervals), 0, 0
    while k < now.waiting and size < rank.job.size:
        job = state.queue.job[k]
        if last < 0 or not _before(last, job, rank):
            rank.job[size] = job
            size += 1
        k += 1
    for at in range(size // 2 - 1, -1, -1):
        _sink(at, size, rank)
    while k < now.waiting:
        job = state.queue.job[k]
        if _before(job, rank.job[0], rank):
            rank.job[0] = job
            _sink(0, size, rank)
        k += 1
    for at in range(size - 1, 0, -1):
        rank.job[0], rank.job[at] = rank.job[at], rank.job[0]
        _sink(0, at, rank)
    status.ranked = size


@inlined
def _last_known(depth: int, waiting: int, intervals: IntervalArrays) -> int:
    """Return the last, by the present keys, of slightly more than `depth` jobs in the ranking; -1 if it holds too few."""
    rank, count = intervals.rank, min(intervals.status.ranked, depth + depth // 8)
    if count < min(depth, waiting) or count == 0:
        return -1
    last = rank.job[0]
    for k in range(1, count):
        if _before(last, rank.job[k], rank):
            last = rank.job[k]
    return int(last)


@inlined
def _before(a: int, b: int, rank: RankArrays) -> bool:
    """Return whether job a comes before job b."""
    return bool(rank.key[a] < rank.key[b] or (rank.key[a] == rank.key[b] and a < b))


@step
def _sink(k: int, size: int, rank: RankArrays) -> None:
    """Sift the job at position k of a heap down; the last job by priority is on top."""
    job, child = rank.job[k], 2 * k + 1
    while child < size:
        if child + 1 < size and _before(rank.job[child], rank.job[child + 1], rank):
            child += 1
        if not _before(job, rank.job[child], rank):
            break
        rank.job[k] = rank.job[child]
        k = child
        child = 2 * k + 1
    rank.job[k] = job
