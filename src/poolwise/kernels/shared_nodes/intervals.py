"""One pass of list scheduling at intervals: the main scheduler in priority order, then a backfill pass if one is due.

Reservations last for a pass. So a backfill pass ends once none of the remaining jobs that it tests could start now. A pass
continues the plan of the last one where that still holds. Equals `policies.backfill.slurm`.
"""

from __future__ import annotations

from poolwise.arrays import BoolArray
from poolwise.kernels.common import heap
from poolwise.kernels.common.intervals import next_pass, runs_backfill, runs_main
from poolwise.kernels.common.order import key
from poolwise.kernels.jit import inlined, step
from poolwise.kernels.shared_nodes.backfill_plan import begin_plan, holds, place_now, reserve, sort_releases, starts_now
from poolwise.kernels.shared_nodes.choose import choose
from poolwise.kernels.shared_nodes.interval_state import CLOSED, OPEN, PARTLY, BlockArrays, SharedIntervals
from poolwise.kernels.shared_nodes.nodes import rebuild
from poolwise.kernels.shared_nodes.room import finds_room
from poolwise.kernels.shared_nodes.runs import start
from poolwise.kernels.shared_nodes.state import SharedNow, SharedState
from poolwise.kernels.shared_nodes.waiting import leave


@inlined
def has_segments(intervals: SharedIntervals, now: SharedNow) -> bool:
    """Return whether there is room for all segments of a backfill pass; write the number needed to `now.rows`."""
    now.rows = 3 * min(intervals.rules.depth, now.waiting) + 1
    return bool(now.rows <= intervals.segments.begin.size)


@step
def interval_pass(state: SharedState, intervals: SharedIntervals) -> None:
    """Make a pass, given that some waiting job fits."""
    rules, now = intervals.rules, state.now
    if runs_main(now.time, rules):
        _start_in_order(state, intervals)
    if now.waiting > 0:
        if runs_backfill(now.time, rules):
            _backfill(state, intervals)
        if now.waiting > 0:
            intervals.status.wake = next_pass(now.time, rules)


@step
def _line_up(state: SharedState, intervals: SharedIntervals) -> int:
    """Arrange the waiting jobs in a heap by priority; return how many there are."""
    order, queue, now, line = state.order, state.queue, state.now, intervals.line.heap
    for k in range(now.waiting):
        job = queue.job[k]
        order.key[job] = key(job, now.time, order)
        line[k] = job
    heap.arrange(line, now.waiting, order.key)
    return int(now.waiting)


@inlined
def _start_in_order(state: SharedState, intervals: SharedIntervals) -> None:
    """Start jobs in priority order; a job that does not fit blocks the nodes of its partitions for those behind it."""
    blocks, line, jobs, kinds = intervals.blocks, intervals.line.heap, state.jobs, state.kinds
    waiting, is_open = _line_up(state, intervals), True
    _unblock(blocks)
    while waiting > 0 and is_open:
        job = heap.pop(line, waiting, state.order.key)
        waiting -= 1
        kind = jobs.kind[job]
        status = blocks.status[kinds.eligible[kind]]
        if status == CLOSED:
            continue
        fits = finds_room(kind, state)
        if fits:
            fits = _place_beside(kind, state, intervals) if status == PARTLY else choose(kind, state.rules, kinds, state.nodes)
        if fits:
            start(job, state)
            leave(job, state)
        else:
            is_open = _block(kinds.eligible[kind], state.nodes.top.shape[0] // 2, state.nodes.open, blocks)


@inlined
def _unblock(blocks: BlockArrays) -> None:
    """Begin a pass of the main scheduler."""
    for n in range(blocks.blocked.size):
        blocks.blocked[n] = False
    for k in range(blocks.status.size):
        blocks.status[k] = OPEN


@step
def _block(of: int, leaves: int, opened: BoolArray, blocks: BlockArrays) -> bool:
    """Block the nodes of a job's partitions; return whether some set of nodes, (n_set, 2 * n_leaf), has open ones."""
    is_open = False
    for n in range(blocks.blocked.size):
        blocks.blocked[n] = blocks.blocked[n] or blocks.of_set[of, n]
    for k in range(blocks.status.size):
        met, left = False, False
        for n in range(blocks.blocked.size):
            if opened[k, leaves + n]:
                met, left = met or blocks.blocked[n], left or not blocks.blocked[n]
        blocks.status[k] = CLOSED if not left else PARTLY if met else OPEN
        is_open = is_open or left
    return is_open


@step
def _place_beside(kind: int, state: SharedState, intervals: SharedIntervals) -> bool:
    """Find nodes for all parts of a job among those that are not blocked; return False if it does not fit."""
    nodes, ahead, blocked = state.nodes, intervals.trial.ahead, intervals.blocks.blocked
    leaves = nodes.top.shape[0] // 2
    for n in range(blocked.size):
        for d in range(nodes.top.shape[1]):
            ahead.top[leaves + n, d] = -1 if blocked[n] else nodes.top[leaves + n, d]
    rebuild(blocked.size, ahead)
    if not choose(kind, state.rules, state.kinds, ahead):
        return False
    for part in range(state.kinds.parts[kind]):
        nodes.chosen[part], nodes.borrow[part] = ahead.chosen[part], 0
    return True


@inlined
def _backfill(state: SharedState, intervals: SharedIntervals) -> None:
    """Test the first jobs by priority: each starts if it fits along with the reservations of those before it."""
    waiting, line, tested = _line_up(state, intervals), intervals.line, 0
    while tested < intervals.rules.depth and tested < state.now.waiting:
        line.tested[tested] = heap.pop(line.heap, waiting - tested, state.order.key)
        tested += 1
    last = tested - 1
    while last >= 0 and not finds_room(state.jobs.kind[line.tested[last]], state):
        last -= 1
    if last < 0:
        return
    if not holds(state, intervals):
        begin_plan(state, intervals)
    at = intervals.status.planned
    last = _last_candidate(last, at, state, intervals)
    while at <= last:
        job = line.tested[at]
        if at == last or starts_now(job, state, intervals):
            place_now(job, state, intervals)
            start(job, state)
            leave(job, state)
            tested -= 1
            for k in range(at, tested):
                line.tested[k] = line.tested[k + 1]
            sort_releases(state, intervals)
            last -= 1
        else:
            reserve(job, state, intervals)
            at += 1
        last = _last_candidate(last, at, state, intervals)


@step
def _last_candidate(last: int, first: int, state: SharedState, intervals: SharedIntervals) -> int:
    """Return the position, from `last` back to `first`, of a job that could start now; else `first` - 1."""
    while last >= first and not starts_now(intervals.line.tested[last], state, intervals):
        last -= 1
    return last
