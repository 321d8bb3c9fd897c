"""One pass of list scheduling at intervals: the main scheduler in priority order, then a backfill pass if one is due.

Reservations last for a pass. So a backfill pass ends once none of the remaining jobs that it tests could start now. A pass
continues the plan of the last one where that still holds. It is skipped where it would repeat one that started nothing. Equals
`policies.backfill.slurm`. Both schedulers consider the admitted jobs only; see `counters`.
"""

from __future__ import annotations

from poolwise.kernels.common import heap
from poolwise.kernels.common.intervals import considered, next_pass, runs_backfill, runs_main
from poolwise.kernels.common.state import STATIC
from poolwise.kernels.jit import inlined, step
from poolwise.kernels.shared_nodes.backfill_plan import begin_plan, holds, next_tested, place_now, reserve, starts_now
from poolwise.kernels.shared_nodes.blocking import line_up, start_in_order
from poolwise.kernels.shared_nodes.counters import has_counters, take
from poolwise.kernels.shared_nodes.interval_state import SharedIntervals
from poolwise.kernels.shared_nodes.releases import sort_releases
from poolwise.kernels.shared_nodes.room import finds_room
from poolwise.kernels.shared_nodes.runs import start
from poolwise.kernels.shared_nodes.state import SharedNow, SharedState
from poolwise.kernels.shared_nodes.waiting import leave
from poolwise.quantities import NEVER


@inlined
def has_segments(intervals: SharedIntervals, now: SharedNow) -> bool:
    """Return whether there is room for all segments of a backfill pass; write the number needed to `now.rows`."""
    now.rows = 3 * min(intervals.rules.depth, now.waiting) + 1
    return bool(now.rows <= intervals.segments.begin.size)


@step
def interval_pass(state: SharedState, intervals: SharedIntervals) -> None:
    """Make a pass, given that some waiting job fits."""
    rules, status, now, begins_again = intervals.rules, intervals.status, state.now, True
    while begins_again and now.waiting > 0:
        _see_changes(state, intervals)
        begins_again = False
        if runs_main(now.time, rules) and considered(now.time, rules) > status.considered:
            status.considered = considered(now.time, rules)
            begins_again = _starts_bar_others(state, intervals)
        if not begins_again and now.waiting > 0 and runs_backfill(now.time, rules) and now.time >= status.idle_until:
            status.idle_until = NEVER
            begins_again = _backfill(state, intervals)
    if now.waiting > 0:
        status.wake = next_pass(now.time, rules)


@inlined
def _starts_bar_others(state: SharedState, intervals: SharedIntervals) -> bool:
    """Run the main scheduler; return whether a start bars an admitted job, which ends the pass."""
    most, counters = intervals.status.considered, intervals.counters
    return bool(start_in_order(most, intervals.line.heap, counters, intervals.blocks, intervals.trial.ahead, state) < 0)


@inlined
def _see_changes(state: SharedState, intervals: SharedIntervals) -> None:
    """Note whether jobs, free capacity or priorities have changed since the passes noted in `status`.

    If not, jobs that did not start in order do not start, and none behind the reservations of a plan that still holds: as time
    passes, a job only ends later.
    """
    status, now = intervals.status, state.now
    if (
        status.seen_version != now.version
        or status.seen_next != now.next
        or status.seen_renewal != now.renewal
        or state.order.kind != STATIC
    ):
        status.seen_version, status.seen_next, status.seen_renewal = now.version, now.next, now.renewal
        status.considered, status.idle_until = 0, 0


@inlined
def _backfill(state: SharedState, intervals: SharedIntervals) -> bool:
    """Test the first jobs by priority: each starts if it fits along with the reservations of those before it.

    Write to `status.idle_until` until when no further one can start, if none has started. Return whether a start bars an
    admitted job, which ends the pass. A job that cannot start now cannot later in the pass: room only shrinks.
    """
    line, status, next_able = intervals.line, intervals.status, 0
    count = _choose_candidates(state, intervals)
    while next_able < count and not finds_room(state.jobs.kind[line.candidate[next_able]], state):
        next_able += 1
    if next_able == count:
        return False
    if not holds(state, intervals):
        begin_plan(state, intervals)
    at = status.planned
    next_able = _next_able(next_able, count, state, intervals)
    while next_able < count:
        job = next_tested(at, state, intervals)
        if job == line.candidate[next_able] or starts_now(job, state, intervals):
            place_now(job, state, intervals)
            start(job, state)
            leave(job, state)
            if take(job, state, intervals.counters):
                return True
            status.tested -= 1
            for k in range(at, status.tested):
                line.tested[k] = line.tested[k + 1]
            sort_releases(state, intervals)
        else:
            reserve(job, state, intervals)
            at += 1
        next_able = _next_able(next_able, count, state, intervals)
    status.idle_until = status.holds_until
    return False


@inlined
def _choose_candidates(state: SharedState, intervals: SharedIntervals) -> int:
    """Write the first jobs by priority to `line.candidate`, and as a heap to `line.heap`; return how many there are."""
    line, status = intervals.line, intervals.status
    if not _update_best(state, intervals):
        _find_best(state, intervals)
    for k in range(status.best):
        line.heap[k] = line.best[k]
    status.left, status.tested = min(status.best, intervals.rules.depth), 0
    if status.left < status.best:
        heap.select(line.heap, status.best, status.left, state.order.key)
    for k in range(status.left):
        line.candidate[k] = line.heap[k]
    heap.arrange(line.heap, status.left, state.order.key)
    return int(status.left)


@step
def _find_best(state: SharedState, intervals: SharedIntervals) -> None:
    """Write the first jobs by priority to `line.best`: those of this pass, or more if they can serve later ones."""
    line, status, most, worst = intervals.line, intervals.status, intervals.rules.depth, -1
    if _keeps_best(state, intervals):
        most = line.best.size
    waiting = line_up(line.heap, intervals.counters, state)
    status.best = min(waiting, most)
    if status.best < waiting:
        heap.select(line.heap, waiting, status.best, state.order.key)
        worst = line.heap[0]
    for k in range(status.best):
        line.best[k] = line.heap[k]
        if worst >= 0 and heap.before(worst, line.best[k], state.order.key):
            worst = line.best[k]
    status.worst, status.best_next, status.best_renewal = worst, state.now.next, state.now.renewal


@inlined
def _keeps_best(state: SharedState, intervals: SharedIntervals) -> bool:
    """Return whether `line.best` serves later passes: priorities last until a recalculation, and all jobs are admitted."""
    return bool(state.order.kind == STATIC and not has_counters(intervals.counters))


@step
def _update_best(state: SharedState, intervals: SharedIntervals) -> bool:
    """Remove jobs that have started from `line.best`, and add those that have arrived; return whether it serves a pass."""
    line, status, now, best = intervals.line, intervals.status, state.now, 0
    if not _keeps_best(state, intervals) or status.best_renewal != now.renewal:
        return False
    for k in range(status.best):
        if state.queue.where[line.best[k]] >= 0:
            line.best[best] = line.best[k]
            best += 1
    for job in range(status.best_next, now.next):
        if state.queue.where[job] >= 0 and (status.worst < 0 or heap.before(job, status.worst, state.order.key)):
            if best == line.best.size:
                return False
            line.best[best] = job
            best += 1
    status.best, status.best_next = best, now.next
    return bool(status.worst < 0 or best >= intervals.rules.depth)


@step
def _next_able(first: int, count: int, state: SharedState, intervals: SharedIntervals) -> int:
    """Return the position in `line.candidate`, from `first` on, of a waiting job that could start now; `count` if none can."""
    while first < count:
        job = intervals.line.candidate[first]
        if state.queue.where[job] >= 0 and starts_now(job, state, intervals):
            break
        first += 1
    return first
