"""One pass of list scheduling without backfilling or with EASY, by linear scans of the queue.

A scan finds the head without sorting and caches it until another job can overtake it. Cheap bounds filter the backfill
candidates before exact tests. Source: specs of the memory pools, "Backfilling"; `policies.backfill.easy`.
"""

from __future__ import annotations

from poolwise.arrays import IntArray
from poolwise.kernels.jit import inlined, step
from poolwise.kernels.list_scheduling.closed_form import classify, prepare_bounds
from poolwise.kernels.list_scheduling.order import comes_before, precedes, precedes_until
from poolwise.kernels.list_scheduling.racks import fits, place, total
from poolwise.kernels.list_scheduling.reservation import may_start, reserve, try_start
from poolwise.kernels.list_scheduling.runs import start
from poolwise.kernels.list_scheduling.state import (
    BLOCKED,
    EXTRA_MEMORY,
    EXTRA_NODES,
    EXTRA_PER_NODE,
    FIRST,
    FIRST_UNTIL,
    FRONT,
    HEAD,
    NONE,
    PASSES,
    SETTLED,
    STARTABLE,
    TIME,
    UNDECIDED,
    WAITING,
    WINDOW,
    JobArrays,
    Order,
    QueueArrays,
    RackArrays,
    Rules,
    RunArrays,
)
from poolwise.kernels.list_scheduling.waiting import leave, oldest
from poolwise.units import NEVER


@step
def any_fits(rules: Rules, racks: RackArrays, queue: QueueArrays, now: IntArray) -> bool:
    """Return whether some waiting job fits now; if none does, no order can start anything."""
    count = _prefilter(rules, racks, queue, now)
    for k in range(count):
        at = queue.chosen[k]
        if fits(queue.nodes[at], queue.remote[at], rules.anywhere, racks.free, racks.pool):
            return True
    return False


@step
def _prefilter(rules: Rules, racks: RackArrays, queue: QueueArrays, now: IntArray) -> int:
    """Choose the positions of waiting jobs that may fit now, by necessary conditions; return how many.

    One branch-free loop, because the branches would be mispredicted too often.
    """
    free, most, memory = total(racks.free), 0, 0  # upper bounds: nodes, MiB of one node, MiB of a job
    for r in range(racks.free.size):
        memory += racks.pool[r]
        if racks.free[r] > 0:
            most = max(most, racks.pool[r])
    if rules.anywhere:
        most = memory
    count = 0
    for k in range(now[WAITING]):
        n, remote = queue.nodes[k], queue.remote[k]
        queue.chosen[count] = k
        count += int((n <= free) & (remote <= most) & (n * remote <= memory))
    return count


@step
def scan(
    jobs: JobArrays,
    order: Order,
    backfill_order: Order,
    rules: Rules,
    racks: RackArrays,
    queue: QueueArrays,
    runs: RunArrays,
    now: IntArray,
) -> None:
    """Start jobs in order until one does not fit, the head; backfill the others in `backfill_order`."""
    if now[SETTLED] and is_settled(_first(order, rules, queue, now), jobs, rules, racks, queue, runs, now):
        return
    head = -1
    while now[WAITING] > 0 and (now[FIRST] >= 0 or any_fits(rules, racks, queue, now)):
        head = _first(order, rules, queue, now)
        if not place(jobs.nodes[head], jobs.remote[head], rules.anywhere, racks.free, racks.pool, racks.take, racks.borrow):
            break
        start(head, jobs, rules, racks, runs, now)
        leave(head, queue, now)
        now[HEAD] = now[FIRST] = head = -1
    if rules.backfill != NONE and head >= 0 and now[WAITING] > 1 and total(racks.free) > 0:
        _backfill(head, jobs, backfill_order, rules, racks, queue, runs, now)


@inlined
def _first(order: Order, rules: Rules, queue: QueueArrays, now: IntArray) -> int:
    """Return the first waiting job by priority, and update the time until which it certainly stays first."""
    time = now[TIME]
    if rules.capped:
        first = oldest(queue, now)
        if order.submit[first] <= now[FRONT]:
            now[FIRST], now[FIRST_UNTIL] = first, time - 1  # the cap depends on the waiting jobs
            return first
    if now[FIRST] < 0 or now[FIRST_UNTIL] < time:
        now[FIRST], now[FIRST_UNTIL] = queue.job[0], NEVER
        for k in range(1, now[WAITING]):
            if comes_before(queue.job[k], now[FIRST], time, order):
                now[FIRST] = queue.job[k]
        for k in range(now[WAITING]):
            challenge(queue.job[k], order, now)
    return int(now[FIRST])


@inlined
def challenge(job: int, order: Order, now: IntArray) -> None:
    """Update the time until which the first job by priority stays before another one."""
    if now[FIRST] >= 0 and job != now[FIRST]:
        if comes_before(job, now[FIRST], now[TIME], order):
            now[FIRST] = -1
        else:
            now[FIRST_UNTIL] = min(now[FIRST_UNTIL], precedes_until(now[FIRST], job, now[TIME], order))


@inlined
def _backfill(
    head: int,
    jobs: JobArrays,
    order: Order,
    rules: Rules,
    racks: RackArrays,
    queue: QueueArrays,
    runs: RunArrays,
    now: IntArray,
) -> None:
    """Start jobs that do not delay the head; test each candidate once, in order."""
    count = _prefilter(rules, racks, queue, now)
    if count > 0:
        reserve(head, jobs, rules, racks, runs, now)
    now[SETTLED] = int(now[HEAD] == head)  # a start resets it
    count, last = _filter_by_extra(count, queue, now), -1
    while count > 0:
        if not rules.anywhere:
            prepare_bounds(head, jobs, rules, racks, now)
        k = _next(head, last, count, jobs, order, rules, racks, queue, now)
        if k < 0:
            return
        last = queue.job[queue.chosen[k]]
        try_start(last, head, jobs, rules, racks, runs, now)
        count -= 1
        queue.chosen[k] = queue.chosen[count]
        leave(last, queue, now)  # the job moved into the gap also keeps its old position until the pass ends


@inlined
def _next(
    head: int,
    last: int,
    count: int,
    jobs: JobArrays,
    order: Order,
    rules: Rules,
    racks: RackArrays,
    queue: QueueArrays,
    now: IntArray,
) -> int:
    """Return the position in `chosen` of the first startable job by priority after `last` (-1: of all); -1 if there is none."""
    best, first, by = -1, -1, now[FRONT]
    if rules.separate_order:
        by = -NEVER
    for k in range(count):
        at = queue.chosen[k]
        answer = UNDECIDED
        if not rules.anywhere:
            answer = classify(queue.nodes[at], queue.remote[at], queue.length[at] <= now[WINDOW], head, jobs, racks, now)
        if answer == BLOCKED:
            continue
        job = queue.job[at]
        if (last >= 0 and not precedes(last, job, by, now[TIME], order)) or (
            best >= 0 and not precedes(job, first, by, now[TIME], order)
        ):
            continue
        if answer == STARTABLE or may_start(job, head, jobs, rules, racks, now):
            best, first = k, job
    return best


@inlined
def is_settled(
    head: int, jobs: JobArrays, rules: Rules, racks: RackArrays, queue: QueueArrays, runs: RunArrays, now: IntArray
) -> bool:
    """Return whether nothing can be backfilled because nothing could at the end of the last pass.

    The head is the same, and so is the machine now and at the shadow time. The passing of time alone admits no candidate, since
    less is left until the shadow time. So only jobs that joined the queue at this instant are tested.
    """
    if now[SETTLED] == 0 or now[HEAD] != head:
        return False
    reserve(head, jobs, rules, racks, runs, now)
    if now[HEAD] != head:  # a run has become overdue
        return False
    k = now[WAITING] - 1
    while k >= 0 and queue.since[k] == now[PASSES] - 1:
        job = queue.job[k]
        if job != head and may_start(job, head, jobs, rules, racks, now):
            return False
        k -= 1
    return True


@inlined
def _filter_by_extra(count: int, queue: QueueArrays, now: IntArray) -> int:
    """Keep those of the first `count` chosen positions whose jobs might not delay the head; return how many."""
    window, nodes, memory, most = now[WINDOW], now[EXTRA_NODES], now[EXTRA_MEMORY], now[EXTRA_PER_NODE]
    kept = 0
    for k in range(count):
        at = queue.chosen[k]
        n, remote = queue.nodes[at], queue.remote[at]
        queue.chosen[kept] = at
        kept += int((queue.length[at] <= window) | ((n <= nodes) & (n * remote <= memory) & (remote <= most)))
    return kept
