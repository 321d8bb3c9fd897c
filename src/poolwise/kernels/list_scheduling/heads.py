"""One pass of list scheduling with a head for each of several partitions, without backfilling or with EASY.

Equals `policies.backfill.none` and `policies.backfill.easy`, which state the rules.
"""

from __future__ import annotations

from poolwise.kernels.common import heap
from poolwise.kernels.common.events import window
from poolwise.kernels.common.order import key
from poolwise.kernels.common.state import EASY, NONE
from poolwise.kernels.jit import inlined, step
from poolwise.kernels.list_scheduling.easy import prefilter
from poolwise.kernels.list_scheduling.head_state import RackHeadArrays
from poolwise.kernels.list_scheduling.racks import copy, expected, fits, place, place_job
from poolwise.kernels.list_scheduling.reservation import find_shadow_time
from poolwise.kernels.list_scheduling.runs import start
from poolwise.kernels.list_scheduling.state import RackState
from poolwise.kernels.list_scheduling.waiting import key_in_front, leave


@step
def heads_pass(state: RackState, heads: RackHeadArrays) -> None:
    """Start jobs in priority order, then backfill behind the heads."""
    blocking = _start_in_order(state, heads)
    if state.rules.backfill == NONE or blocking == 0:
        return
    size = _line_up_candidates(state, heads)
    if size == 0:
        return
    count = 0
    for k in range(blocking):
        if not place_job(heads.head[k], state):
            heads.head[count] = heads.head[k]
            _reserve(count, state, heads)
            count += 1
    while size > 0:
        job = heap.pop(heads.line, size, heads.key)
        size -= 1
        if place_job(job, state) and _delays_none(job, count, state, heads):
            start(job, state)
            leave(job, state)


@inlined
def _start_in_order(state: RackState, heads: RackHeadArrays) -> int:
    """Start jobs in priority order; write those that block others to `heads.head` and return how many there are."""
    now, racks, line = state.now, state.racks, heads.line
    waiting, is_open, count = now.waiting, True, 0
    for k in range(waiting):
        job = state.queue.job[k]
        line[k], heads.key[job] = job, key_in_front(job, state.order, now)
    heap.arrange(line, waiting, heads.key)
    for g in range(heads.blocked.size):
        heads.blocked[g] = False
    while waiting > 0 and is_open:
        job = heap.pop(line, waiting, heads.key)
        waiting -= 1
        if not _has_open_nodes(heads.of[job], heads):
            continue
        groups = racks.free.size
        for g in range(groups):
            heads.free[g] = 0 if heads.blocked[g] else racks.free[g]
            heads.pool[g] = 0 if heads.blocked[groups + g] else racks.pool[g]
        if place(job, state.jobs, state.rules.anywhere, heads.free, heads.pool, racks.take, racks.borrow):
            start(job, state)
            leave(job, state)
            continue
        heads.head[count] = job
        count += 1
        for g in range(heads.blocked.size):
            heads.blocked[g] = heads.blocked[g] or heads.blocks[heads.of[job], g]
        is_open = False
        for of in range(heads.usable.shape[0]):
            is_open = is_open or _has_open_nodes(of, heads)
    return count


@step
def _has_open_nodes(of: int, heads: RackHeadArrays) -> bool:
    """Return whether jobs of a set may use nodes that are not blocked."""
    for g in range(heads.free.size):  # noqa: SIM110  # a loop is what compiles
        if heads.usable[of, g] and not heads.blocked[g]:
            return True
    return False


@inlined
def _line_up_candidates(state: RackState, heads: RackHeadArrays) -> int:
    """Arrange the waiting jobs that may fit now in a heap by the order of backfilling; return how many there are."""
    size = prefilter(state)
    for k in range(size):
        job = state.queue.job[state.waiting.chosen[k]]
        heads.line[k] = job
        if state.rules.separate_order:
            heads.key[job] = key(job, state.now.time, state.backfill_order)
    heap.arrange(heads.line, size, heads.key)
    return size


@inlined
def _reserve(k: int, state: RackState, heads: RackHeadArrays) -> None:
    """Find the shadow time of a head, and the capacity that is free then."""
    racks, now, free, pool = state.racks, state.now, heads.shadow_free[k], heads.shadow_pool[k]
    copy(racks.free, free)
    copy(racks.unlimited_pool if state.rules.nodes_only else racks.pool, pool)
    find_shadow_time(heads.head[k], now.running - 1, free, pool, state)
    heads.window[k] = window(now)


@step
def _delays_none(job: int, count: int, state: RackState, heads: RackHeadArrays) -> bool:
    """Return whether a job at the placement found last delays none of the heads with which it competes.

    If so, subtract it from the capacity that is free at each shadow time beyond which it runs.
    """
    jobs, racks, rules = state.jobs, state.racks, state.rules
    length = expected(job, jobs, racks.take, racks.borrow, rules)
    for k in range(count):
        head = heads.head[k]
        if length <= heads.window[k] or not heads.competes[heads.of[job], heads.of[head]]:
            continue
        if rules.backfill != EASY:
            return False
        for g in range(racks.free.size):
            heads.free[g] = heads.shadow_free[k, g] - racks.take[g]
            heads.pool[g] = heads.shadow_pool[k, g] - racks.borrow[g]
        if not fits(head, jobs.nodes[head], jobs.remote[head], rules.anywhere, jobs.mixed, heads.free, heads.pool):
            return False
    for k in range(count):
        if length > heads.window[k] and heads.competes[heads.of[job], heads.of[heads.head[k]]]:
            for g in range(racks.free.size):
                heads.shadow_free[k, g] -= racks.take[g]
                heads.shadow_pool[k, g] -= racks.borrow[g]
    return True
