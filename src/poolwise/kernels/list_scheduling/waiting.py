"""Queue of waiting jobs, an unordered list: a job leaves by a swap with the last one."""

from __future__ import annotations

import math

from poolwise.kernels.common.events import dequeue, enqueue
from poolwise.kernels.common.order import key
from poolwise.kernels.common.state import Order, QueueArrays
from poolwise.kernels.jit import inlined, step
from poolwise.kernels.list_scheduling.state import RackNow, RackState, Rules
from poolwise.quantities import HORIZON


@inlined
def join(job: int, state: RackState) -> None:
    """Add a job to the queue."""
    write_demands(enqueue(job, state.queue, state.now), state)
    _add_to_backlog(job, 1, state)


@inlined
def write_demands(at: int, state: RackState) -> None:
    """Write the demands of the job at a position of the queue."""
    jobs, waiting, job = state.jobs, state.waiting, state.queue.job[at]
    waiting.nodes[at], waiting.remote[at], waiting.length[at] = jobs.nodes[job], jobs.remote[job], jobs.length[job]


@inlined
def leave(job: int, state: RackState) -> None:
    """Remove a job from the queue."""
    now = state.now
    waiting, at = state.waiting, dequeue(job, state.queue, now)
    last = now.waiting
    waiting.nodes[at], waiting.remote[at], waiting.length[at] = waiting.nodes[last], waiting.remote[last], waiting.length[last]
    _add_to_backlog(job, -1, state)


@inlined
def _add_to_backlog(job: int, times: int, state: RackState) -> None:
    """Add a job to the backlog (times 1), or remove it (times -1)."""
    waiting = state.waiting
    if waiting.area.size > 0:
        state.now.backlog += times * waiting.area[job]


@step
def restart_queue(state: RackState) -> None:
    """Write the demands and the backlog of all waiting jobs, after others have been removed."""
    now = state.now
    now.backlog = 0
    for at in range(now.waiting):
        write_demands(at, state)
        _add_to_backlog(state.queue.job[at], 1, state)


@inlined
def oldest(queue: QueueArrays, now: RackNow) -> int:
    """Return the waiting job that was submitted first; requires that one waits and that no started job is requeued."""
    while queue.where[now.oldest] < 0:
        now.oldest += 1
    return int(now.oldest)


@step
def front(rules: Rules, now: RackNow) -> int:
    """Return the submit time (ns) up to which jobs have waited for longer than the cap; see `interfaces.capped.cap`."""
    age = int(min(rules.backlogs * (now.backlog / rules.nodes) * 1_000_000_000, float(HORIZON)))
    return int(now.time - min(rules.patience + age, HORIZON))


@inlined
def key_in_front(job: int, order: Order, now: RackNow) -> float:
    """Return the key of a waiting job now; minus infinity if it has waited for longer than the cap."""
    return -math.inf if order.submit[job] <= now.front else key(job, now.time, order)
