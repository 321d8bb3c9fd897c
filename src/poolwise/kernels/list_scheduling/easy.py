"""One pass of list scheduling without backfilling or with EASY, by linear scans of the queue.

The head is found by a scan instead of a sort and remembered as long as no other job can have overtaken it; the jobs that
might be backfilled are filtered by bounds before they are asked one by one. Source: specs of the memory pools, "Backfilling";
`policies.backfill.easy`.
"""

from __future__ import annotations

from poolwise.arrays import IntArray
from poolwise.kernels.jit import inlined, step
from poolwise.kernels.list_scheduling.closed_form import verdict, weigh
from poolwise.kernels.list_scheduling.order import comes_before, lasts, precedes
from poolwise.kernels.list_scheduling.racks import fits, place, total
from poolwise.kernels.list_scheduling.reservation import may_start, reserve, try_start
from poolwise.kernels.list_scheduling.runs import start
from poolwise.kernels.list_scheduling.state import (
    FIRST,
    FIRST_UNTIL,
    FRONT,
    HEAD,
    NONE,
    PASSES,
    PERHAPS,
    REFUSED,
    SETTLED,
    SPARE_MEMORY,
    SPARE_MOST,
    SPARE_NODES,
    TIME,
    WAITING,
    WELCOME,
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
    """Whether some waiting job finds room now; if none does, no order can start anything."""
    likely = _likely(rules, racks, queue, now)
    for k in range(likely):
        at = queue.chosen[k]
        if fits(queue.nodes[at], queue.remote[at], rules.anywhere, racks.free, racks.pool):
            return True
    return False


@step
def _likely(rules: Rules, racks: RackArrays, queue: QueueArrays, now: IntArray) -> int:
    """Choose the positions of the waiting jobs that may find room now, by bounds; returns how many.

    One loop without branches: a processor would guess wrong too often.
    """
    free, most, memory = total(racks.free), 0, 0  # nodes, MiB for one node, MiB for a job: no more is to be had
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
    beside: Order,
    rules: Rules,
    racks: RackArrays,
    queue: QueueArrays,
    runs: RunArrays,
    now: IntArray,
) -> None:
    """Start jobs in order until one does not fit, the head; backfill behind it, in the order `beside`."""
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
        _backfill(head, jobs, beside, rules, racks, queue, runs, now)


@inlined
def _first(order: Order, rules: Rules, queue: QueueArrays, now: IntArray) -> int:
    """First waiting job by priority, and until when it surely stays the first."""
    time = now[TIME]
    if rules.capped:
        first = oldest(queue, now)
        if order.submit[first] <= now[FRONT]:
            now[FIRST], now[FIRST_UNTIL] = first, time - 1  # with other jobs the cap may be another
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
    """Note until when the first job by priority stays before another."""
    if now[FIRST] >= 0 and job != now[FIRST]:
        if comes_before(job, now[FIRST], now[TIME], order):
            now[FIRST] = -1
        else:
            now[FIRST_UNTIL] = min(now[FIRST_UNTIL], lasts(now[FIRST], job, now[TIME], order))


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
    """Start what does not delay the head, each job asked once, at its turn."""
    count = _likely(rules, racks, queue, now)
    if count > 0:
        reserve(head, jobs, rules, racks, runs, now)
    now[SETTLED] = int(now[HEAD] == head)  # a start unsettles it
    count, last = _harmless(count, queue, now), -1
    while count > 0:
        if not rules.anywhere:
            weigh(head, jobs, rules, racks, now)
        k = _next(head, last, count, jobs, order, rules, racks, queue, now)
        if k < 0:
            return
        last = queue.job[queue.chosen[k]]
        try_start(last, head, jobs, rules, racks, runs, now)
        count -= 1
        queue.chosen[k] = queue.chosen[count]
        leave(last, queue, now)  # the job moved to its position also stays at its old one until the pass ends


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
    """The chosen position that holds the first by priority of the jobs after `last` (-1: of all) that may start; or -1."""
    best, first, by = -1, -1, now[FRONT]
    if rules.apart:
        by = -NEVER
    for k in range(count):
        at = queue.chosen[k]
        says = PERHAPS
        if not rules.anywhere:
            says = verdict(queue.nodes[at], queue.remote[at], queue.length[at] <= now[WINDOW], head, jobs, racks, now)
        if says == REFUSED:
            continue
        job = queue.job[at]
        if (last >= 0 and not precedes(last, job, by, now[TIME], order)) or (
            best >= 0 and not precedes(job, first, by, now[TIME], order)
        ):
            continue
        if says == WELCOME or may_start(job, head, jobs, rules, racks, now):
            best, first = k, job
    return best


@inlined
def is_settled(
    head: int, jobs: JobArrays, rules: Rules, racks: RackArrays, queue: QueueArrays, runs: RunArrays, now: IntArray
) -> bool:
    """Whether nothing can be backfilled since nothing could at the end of the last pass.

    The same head waits, the machine is the same now and at the shadow time, and time alone lets nobody in: less is left
    until the shadow time. So only jobs that joined the queue at this instant have to be asked.
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
def _harmless(count: int, queue: QueueArrays, now: IntArray) -> int:
    """Keep of the first `count` chosen positions those whose jobs might not delay the head; returns how many."""
    window, nodes, memory, most = now[WINDOW], now[SPARE_NODES], now[SPARE_MEMORY], now[SPARE_MOST]
    kept = 0
    for k in range(count):
        at = queue.chosen[k]
        n, remote = queue.nodes[at], queue.remote[at]
        queue.chosen[kept] = at
        kept += int((queue.length[at] <= window) | ((n <= nodes) & (n * remote <= memory) & (remote <= most)))
    return kept
