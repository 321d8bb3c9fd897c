"""One pass of list scheduling without backfilling or with EASY, by linear scans of the queue.

A scan finds the head without sorting and caches it until another job can overtake it. Cheap bounds filter the backfill
candidates before exact tests. Source: specs of the memory pools, "Backfilling"; `policies.backfill.easy`.
"""

from __future__ import annotations

from poolwise.kernels.common.order import comes_before, precedes, precedes_until
from poolwise.kernels.common.state import NONE, Order
from poolwise.kernels.jit import inlined, step
from poolwise.kernels.list_scheduling.closed_form import classify, prepare_bounds
from poolwise.kernels.list_scheduling.racks import fits, place_job, total
from poolwise.kernels.list_scheduling.reservation import backfill, may_start, reserve
from poolwise.kernels.list_scheduling.runs import start
from poolwise.kernels.list_scheduling.state import BLOCKED, STARTABLE, RackNow, RackState
from poolwise.kernels.list_scheduling.waiting import leave, oldest
from poolwise.quantities import NEVER


@step
def any_fits(state: RackState) -> bool:
    """Return whether some waiting job fits now; if none does, no order can start anything."""
    racks, waiting = state.racks, state.waiting
    count = prefilter(state)
    for k in range(count):
        at = waiting.chosen[k]
        if fits(
            state.queue.job[at],
            waiting.nodes[at],
            waiting.remote[at],
            state.rules.anywhere,
            state.jobs.mixed,
            racks.free,
            racks.pool,
        ):
            return True
    return False


@step
def prefilter(state: RackState) -> int:
    """Choose the positions of waiting jobs that may fit now, by necessary conditions; return how many.

    This is one branch-free loop, because branches would be mispredicted too often.
    """
    racks, waiting = state.racks, state.waiting
    free, most, memory = total(racks.free), 0, 0  # upper bounds: nodes, MiB of one node, MiB of a job
    for r in range(racks.free.size):
        memory += racks.pool[r]
        if racks.free[r] > 0:
            most = max(most, racks.pool[r])
    if not state.rules.closed:
        most = memory
    count = 0
    for k in range(state.now.waiting):
        n, remote = waiting.nodes[k], waiting.remote[k]
        waiting.chosen[count] = k
        count += int((n <= free) & (remote <= most) & (n * remote <= memory))
    return count


@step
def scan(state: RackState) -> None:
    """Start jobs in order until one does not fit, the head; backfill the others in `backfill_order`."""
    now = state.now
    if now.settled and is_settled(_first(state), state):
        return
    head = -1
    while now.waiting > 0 and (now.first >= 0 or any_fits(state)):
        head = _first(state)
        if not place_job(head, state):
            break
        start(head, state)
        leave(head, state)
        now.head = now.first = head = -1
    if state.rules.backfill != NONE and head >= 0 and now.waiting > 1 and total(state.racks.free) > 0:
        _backfill(head, state)


@inlined
def _first(state: RackState) -> int:
    """Return the first waiting job by priority, and update the time until which it certainly stays first."""
    order, queue, now = state.order, state.queue, state.now
    time = now.time
    if state.rules.capped:
        first = oldest(queue, now)
        if order.submit[first] <= now.front:
            now.first, now.first_until = first, time - 1  # the cap depends on the waiting jobs
            return first
    if now.first < 0 or now.first_until < time:
        now.first, now.first_until = queue.job[0], NEVER
        for k in range(1, now.waiting):
            if comes_before(queue.job[k], now.first, time, order):
                now.first = queue.job[k]
        for k in range(now.waiting):
            challenge(queue.job[k], order, now)
    return int(now.first)


@inlined
def challenge(job: int, order: Order, now: RackNow) -> None:
    """Update the time until which the first job by priority stays before another one."""
    if now.first >= 0 and job != now.first:
        if comes_before(job, now.first, now.time, order):
            now.first = -1
        else:
            now.first_until = min(now.first_until, precedes_until(now.first, job, now.time, order))


@inlined
def _backfill(head: int, state: RackState) -> None:
    """Start jobs that do not delay the head; test each candidate once, in order."""
    now, waiting = state.now, state.waiting
    count = prefilter(state)
    if count > 0:
        reserve(head, state)
    now.settled = int(now.head == head)  # a start resets it
    count, last = _filter_by_extra(count, state), -1
    while count > 0:
        if state.rules.closed:
            prepare_bounds(head, state)
        k = _next(head, last, count, state)
        if k < 0:
            return
        last = state.queue.job[waiting.chosen[k]]
        backfill(last, head, state)
        count -= 1
        waiting.chosen[k] = waiting.chosen[count]
        leave(last, state)  # the job moved into the gap also keeps its old position until the pass ends


@inlined
def _next(head: int, last: int, count: int, state: RackState) -> int:
    """Return the position in `chosen` of the first startable job by priority after `last` (-1: of all); -1 if there is none."""
    order, now, waiting = state.backfill_order, state.now, state.waiting
    best, first, by = -1, -1, now.front
    if state.rules.separate_order:
        by = -NEVER
    for k in range(count):
        at = waiting.chosen[k]
        answer = classify(waiting.nodes[at], waiting.remote[at], waiting.length[at] <= now.window, head, state)
        if answer == BLOCKED:
            continue
        job = state.queue.job[at]
        if (last >= 0 and not precedes(last, job, by, now.time, order)) or (
            best >= 0 and not precedes(job, first, by, now.time, order)
        ):
            continue
        if answer == STARTABLE or may_start(job, head, state):
            best, first = k, job
    return best


@inlined
def is_settled(head: int, state: RackState) -> bool:
    """Return whether nothing can be backfilled because nothing could at the end of the last pass.

    The head is the same, and so is the machine now and at the shadow time. The passing of time alone admits no candidate, since
    less is left until the shadow time. So only jobs that joined the queue at this instant are tested.
    """
    queue, now = state.queue, state.now
    if now.settled == 0 or now.head != head:
        return False
    reserve(head, state)
    if now.head != head:  # a run has become overdue
        return False
    k = now.waiting - 1
    while k >= 0 and queue.since[k] == now.passes - 1:
        job = queue.job[k]
        if job != head and may_start(job, head, state):
            return False
        k -= 1
    return True


@inlined
def _filter_by_extra(count: int, state: RackState) -> int:
    """Keep the positions among the first `count` chosen ones whose jobs may leave the head undelayed; return how many."""
    now, waiting = state.now, state.waiting
    window, nodes, memory, most = now.window, now.extra_nodes, now.extra_memory, now.extra_per_node
    remaining = 0
    for k in range(count):
        at = waiting.chosen[k]
        n, remote = waiting.nodes[at], waiting.remote[at]
        waiting.chosen[remaining] = at
        remaining += int((waiting.length[at] <= window) | ((n <= nodes) & (n * remote <= memory) & (remote <= most)))
    return remaining
