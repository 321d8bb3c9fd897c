"""One pass of conservative backfilling: reservations rebuilt in priority order, those that begin now start.

Source: specs of the memory pools, "Backfilling"; `policies.backfill.conservative`.
"""

from __future__ import annotations

from poolwise.arrays import IntArray
from poolwise.kernels.jit import step
from poolwise.kernels.list_scheduling import heap
from poolwise.kernels.list_scheduling.order import key
from poolwise.kernels.list_scheduling.racks import copy, expected, fits, place
from poolwise.kernels.list_scheduling.runs import release, start
from poolwise.kernels.list_scheduling.state import (
    ROWS,
    RUNNING,
    TIME,
    WAITING,
    JobArrays,
    Order,
    ProfileArrays,
    QueueArrays,
    RackArrays,
    Rules,
    RunArrays,
)
from poolwise.kernels.list_scheduling.waiting import leave
from poolwise.units import HORIZON, OVERDUE


@step
def conserve(
    jobs: JobArrays,
    order: Order,
    rules: Rules,
    racks: RackArrays,
    queue: QueueArrays,
    profile: ProfileArrays,
    runs: RunArrays,
    now: IntArray,
) -> None:
    """Reserve in priority order, each job the earliest interval that is free; start those whose interval begins now.

    It stops when no job that is left fits what is free now: the others' reservations would be dropped at the next pass.
    """
    _foresee(racks, profile, runs, now)
    waiting = now[WAITING]
    for k in range(waiting):
        order.key[queue.job[k]] = key(queue.job[k], now[TIME], order)
        queue.chosen[k] = queue.job[k]
    heap.arrange(queue.chosen, waiting, order.key)
    hopeful = _hopeful(waiting, jobs, rules, queue, profile)
    while hopeful > 0:
        job = heap.pop(queue.chosen, waiting, order.key)
        waiting -= 1
        if fits(jobs.nodes[job], jobs.remote[job], rules.anywhere, profile.free[0], profile.pool[0]):
            hopeful -= 1
        if _reserve(job, jobs, rules, racks, profile):
            start(job, jobs, rules, racks, runs, now)
            leave(job, queue, now)
            hopeful = _hopeful(waiting, jobs, rules, queue, profile)


@step
def has_instants(profile: ProfileArrays, now: IntArray) -> bool:
    """Whether the profile has room for all ends and reservations; else `now[ROWS]` says how many instants it needs."""
    now[ROWS] = now[RUNNING] + now[WAITING] + 2
    return bool(now[ROWS] <= profile.time.size)


@step
def _foresee(racks: RackArrays, profile: ProfileArrays, runs: RunArrays, now: IntArray) -> None:
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
def _hopeful(waiting: int, jobs: JobArrays, rules: Rules, queue: QueueArrays, profile: ProfileArrays) -> int:
    """How many of the first `waiting` chosen jobs fit what is free now."""
    count = 0
    for k in range(waiting):
        job = queue.chosen[k]
        if fits(jobs.nodes[job], jobs.remote[job], rules.anywhere, profile.free[0], profile.pool[0]):
            count += 1
    return count


@step
def _reserve(job: int, jobs: JobArrays, rules: Rules, racks: RackArrays, profile: ProfileArrays) -> bool:
    """Take the earliest interval in which a job fits throughout; whether it begins now."""
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
            length = _length(job, k, jobs, rules, racks, profile)
            if length >= 0:
                _occupy(k, profile.time[k] + length, racks, profile)
                return k == 0
            k += 1
            continue
        k = m + 1
    return False


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
def _occupy(k: int, end: int, racks: RackArrays, profile: ProfileArrays) -> None:
    """Take the placement in `racks` off the instants from k until the end, which becomes an instant."""
    count = profile.size[0]
    if end == profile.time[k]:
        return  # at the horizon
    at = k + 1
    while at < count and profile.time[at] < end:
        at += 1
    if at == count or profile.time[at] != end:
        for m in range(count, at - 1, -1):
            profile.time[m] = profile.time[m - 1]
            copy(profile.free[m - 1], profile.free[m])
            copy(profile.pool[m - 1], profile.pool[m])
        profile.time[at] = end
        profile.size[0] = count + 1
    for m in range(k, at):
        for r in range(racks.free.size):
            profile.free[m, r] -= racks.take[r]
            profile.pool[m, r] -= racks.borrow[r]
