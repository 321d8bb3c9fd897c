"""One pass of conservative backfilling: reservations rebuilt in priority order, those that begin now start.

Source: specs of the memory pools, "Backfilling"; `policies.backfill.conservative`.
"""

from __future__ import annotations

from poolwise.arrays import IntArray
from poolwise.kernels.jit import inlined, step
from poolwise.kernels.list_scheduling import heap
from poolwise.kernels.list_scheduling.order import key_in_front
from poolwise.kernels.list_scheduling.profile import change, earliest, foresee, minima, until
from poolwise.kernels.list_scheduling.racks import fits
from poolwise.kernels.list_scheduling.runs import start
from poolwise.kernels.list_scheduling.state import (
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

    Reservations only take away. So it stops when no job that is left fits from now on for as long as it asks for, beside the
    reservations made so far: those of the others would be dropped at the next pass.
    """
    foresee(racks, profile, runs, now)
    waiting = now[WAITING]
    for k in range(waiting):
        order.key[queue.job[k]] = key_in_front(queue.job[k], order, now)
        queue.chosen[k] = profile.hopeful[k] = queue.job[k]
    heap.arrange(queue.chosen, waiting, order.key)
    hopeful = _hopeful(waiting, 0, profile.size[0], -1, jobs, rules, profile)
    while hopeful > 0:
        job = heap.pop(queue.chosen, waiting, order.key)
        waiting -= 1
        k, last = earliest(job, jobs, rules, racks, profile), 0
        if k >= 0:
            begin = profile.time[k]
            last = change(begin, begin + profile.size[1], racks.take, racks.borrow, -1, profile)
        if k == 0:
            start(job, jobs, rules, racks, runs, now)
            leave(job, queue, now)
        hopeful = _hopeful(hopeful, k, last, job, jobs, rules, profile)


@step
def _hopeful(count: int, first: int, last: int, done: int, jobs: JobArrays, rules: Rules, profile: ProfileArrays) -> int:
    """Keep of the first `count` hopeful jobs those that fit from now on for as long as they ask for; returns how many.

    What is free has changed at instants from `first` to before `last`, or nowhere (`last` 0). `done` is the job that had its
    turn.
    """
    longest = 0
    for k in range(count):
        longest = max(longest, jobs.asked[profile.hopeful[k]])
    less = first < last and minima(first, last, until(longest, profile), profile)
    kept = 0
    for k in range(count):
        job = profile.hopeful[k]
        profile.hopeful[kept] = job
        kept += int(job != done and (not less or _fits_throughout(job, jobs, rules, profile)))
    return kept


@inlined
def _fits_throughout(job: int, jobs: JobArrays, rules: Rules, profile: ProfileArrays) -> bool:
    """Whether a job fits from now on for as long as it asks for."""
    row = profile.row[until(jobs.asked[job], profile) - 1]
    return bool(fits(jobs.nodes[job], jobs.remote[job], rules.anywhere, profile.low_free[row], profile.low_pool[row]))
