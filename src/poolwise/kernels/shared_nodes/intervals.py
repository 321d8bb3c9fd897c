"""One pass of list scheduling at intervals: the main scheduler in priority order, then a backfill pass if one is due.

Reservations last for a pass. So a backfill pass ends once none of the remaining jobs that it tests could start now. A pass
continues the plan of the last one if that still holds. It is skipped if it would repeat a pass that started nothing. Equals
`policies.backfill.slurm`. Both schedulers consider the admitted jobs only; see `counters`.
"""

from __future__ import annotations

from poolwise.kernels.common import heap
from poolwise.kernels.common.intervals import considered, next_pass, runs_backfill, runs_main
from poolwise.kernels.common.state import STATIC
from poolwise.kernels.jit import inlined, step
from poolwise.kernels.shared_nodes.backfill_plan import begin_plan, holds, next_tested, place_now, reserve, starts_now
from poolwise.kernels.shared_nodes.blocking import line_up, line_up_open, start_in_order, unblock
from poolwise.kernels.shared_nodes.counters import has_counters, take
from poolwise.kernels.shared_nodes.interval_state import GroupArrays, SharedIntervals
from poolwise.kernels.shared_nodes.releases import sort_releases
from poolwise.kernels.shared_nodes.room import finds_room
from poolwise.kernels.shared_nodes.runs import start
from poolwise.kernels.shared_nodes.state import SharedNow, SharedState, WindowArrays
from poolwise.kernels.shared_nodes.waiting import leave
from poolwise.kernels.shared_nodes.windows import next_closings
from poolwise.quantities import NEVER


@inlined
def has_segments(intervals: SharedIntervals, now: SharedNow) -> bool:
    """Return whether there is room for all segments of a backfill pass; write the number needed to `now.rows`."""
    now.rows = 3 * min(intervals.rules.depth, now.waiting) + 1
    return bool(now.rows <= intervals.segments.begin.size)


@step
def interval_pass(state: SharedState, windows: WindowArrays, intervals: SharedIntervals) -> None:
    """Make a pass, given that some waiting job fits."""
    rules, status, now, begins_again = intervals.rules, intervals.status, state.now, True
    while begins_again and now.waiting > 0:
        _see_changes(state, windows, intervals)
        begins_again = False
        if runs_main(now.time, rules) and considered(now.time, rules) > status.considered:
            status.considered = considered(now.time, rules)
            begins_again = _starts_bar_others(state, windows, intervals)
        if not begins_again and now.waiting > 0 and runs_backfill(now.time, rules) and now.time >= status.idle_until:
            status.idle_until = NEVER
            begins_again = _backfill(state, windows, intervals)
    if now.waiting > 0:
        status.wake = next_pass(now.time, rules)


@inlined
def _starts_bar_others(state: SharedState, windows: WindowArrays, intervals: SharedIntervals) -> bool:
    """Run the main scheduler; return whether a start bars an admitted job, which ends the pass."""
    most, line, counters = intervals.status.considered, intervals.line.heap, intervals.counters
    blocks, ahead, last_key = intervals.blocks, intervals.trial.ahead, intervals.rules.last_key
    unblock(blocks)
    if not _keeps_best(state, intervals) or intervals.rules.depth < most < NEVER:
        waiting = line_up(line, counters, state)
        return bool(start_in_order(most, waiting, line, counters, blocks, ahead, windows, last_key, state) < 0)
    start_in_order(most, _line_up_best(state, intervals), line, counters, blocks, ahead, windows, last_key, state)
    if most == NEVER:  # the others can only start in partitions that none of the first jobs blocks
        start_in_order(most, _line_up_others(state, intervals), line, counters, blocks, ahead, windows, last_key, state)
    return False


@inlined
def _line_up_others(state: SharedState, intervals: SharedIntervals) -> int:
    """Write the jobs after the first ones of `_line_up_best` that have unblocked nodes to `line.heap`; return their number."""
    line, status = intervals.line, intervals.status
    for k in range(status.best):
        line.is_best[line.best[k]] = True
    count = line_up_open(line.heap, line.is_best, intervals.blocks, state)
    for k in range(status.best):
        line.is_best[line.best[k]] = False
    return int(count)


@inlined
def _line_up_best(state: SharedState, intervals: SharedIntervals) -> int:
    """Write the first jobs by priority to `line.heap`, at least as many as a backfill pass tests; return how many there are."""
    line, status = intervals.line, intervals.status
    if not _update_best(state, intervals):
        _find_best(state, intervals)
    for k in range(status.best):
        line.heap[k] = line.best[k]
    return int(status.best)


@inlined
def _see_changes(state: SharedState, windows: WindowArrays, intervals: SharedIntervals) -> None:
    """Note whether jobs, free capacity, priorities or closed nodes have changed since the passes noted in `status`.

    If not, jobs that did not start in order still do not start, nor do jobs behind the reservations of a plan that still holds,
    because the passing of time only makes a job end later. A job for which a window closes nodes may no longer block others.
    """
    status, now = intervals.status, state.now
    if (
        status.seen_version != now.version
        or status.seen_next != now.next
        or status.seen_renewal != now.renewal
        or now.time >= status.closing
        or state.order.kind != STATIC
    ):
        status.seen_version, status.seen_next, status.seen_renewal = now.version, now.next, now.renewal
        status.considered, status.idle_until = 0, 0
        status.closing = next_closings(state, windows)


@inlined
def _backfill(state: SharedState, windows: WindowArrays, intervals: SharedIntervals) -> bool:
    """Test the first jobs by priority: each starts if it fits in addition to the reservations of the jobs before it.

    If none has started, write the time until which none can start to `status.idle_until`. Return whether a start bars an
    admitted job, which ends the pass. A job that cannot start now cannot start later in the pass, since room only shrinks. So
    jobs of a component in which no job can start now need no reservations: they affect no other component.
    """
    line, status, able = intervals.line, intervals.status, intervals.components.able
    count = _choose_candidates(state, intervals)
    if not _any_candidate_fits(count, state, intervals):
        return False
    if not holds(state, intervals):
        begin_plan(state, intervals)
    left = 0  # components in which a job could start now
    for component in range(able.size):
        _reserve_planned(component, count, state, windows, intervals)
        left += int(able[component] < count)
    while left > 0:
        job = next_tested(status.planned, state, intervals)
        component = _component(job, state, intervals)
        is_open = able[component] < count
        if is_open and (job == line.candidate[able[component]] or starts_now(job, state, windows, intervals)):
            place_now(job, state, windows, intervals)
            start(job, state)
            leave(job, state)
            if take(job, state, intervals.counters):
                return True
            status.tested -= 1
            for k in range(status.planned, status.tested):
                line.tested[k] = line.tested[k + 1]
            sort_releases(state, intervals)
        else:
            if is_open:
                reserve(job, state, windows, intervals)
            line.planned[status.planned] = job
            status.planned += 1
        if is_open:
            able[component] = _next_able(component, able[component], count, state, windows, intervals)
            if able[component] == count:
                intervals.components.reserved[component] = status.planned
                left -= 1
    status.idle_until = status.holds_until
    return False


@step
def _any_candidate_fits(count: int, state: SharedState, intervals: SharedIntervals) -> bool:
    """Write each component's first candidate that fits without reservations to `components.able`; return whether any does."""
    able, fitting = intervals.components.able, 0
    for component in range(able.size):
        able[component] = count
    for k in range(count):
        job = intervals.line.candidate[k]
        component = _component(job, state, intervals)
        if able[component] == count and finds_room(state.jobs.kind[job], state):
            able[component] = k
            fitting += 1
            if fitting == able.size:
                break
    return fitting > 0


@step
def _reserve_planned(component: int, count: int, state: SharedState, windows: WindowArrays, intervals: SharedIntervals) -> None:
    """Make the reservations that the plan lacks for a component, if one of its candidates could start now without them."""
    able, reserved, line = intervals.components.able, intervals.components.reserved, intervals.line
    able[component] = _next_able(component, able[component], count, state, windows, intervals)
    if able[component] < count:
        for k in range(reserved[component], intervals.status.planned):
            if _component(line.planned[k], state, intervals) == component:
                reserve(line.planned[k], state, windows, intervals)
        reserved[component] = intervals.status.planned
        able[component] = _next_able(component, able[component], count, state, windows, intervals)


@inlined
def _component(job: int, state: SharedState, intervals: SharedIntervals) -> int:
    """Return the component of a job."""
    return int(intervals.components.of_set[state.kinds.eligible[state.jobs.kind[job]]])


@inlined
def _choose_candidates(state: SharedState, intervals: SharedIntervals) -> int:
    """Write the first jobs by priority to `line.candidate`, and as a heap to `line.heap`; return how many there are."""
    if intervals.groups.most.size > 0:
        return _choose_within_limits(state, intervals)
    line, status = intervals.line, intervals.status
    best = _line_up_best(state, intervals)
    status.left, status.tested = min(best, intervals.rules.depth), 0
    if status.left < best:
        heap.select(line.heap, best, status.left, state.order.key)
    for k in range(status.left):
        line.candidate[k] = line.heap[k]
    heap.arrange(line.heap, status.left, state.order.key)
    return int(status.left)


@step
def _choose_within_limits(state: SharedState, intervals: SharedIntervals) -> int:
    """Choose candidates as `_choose_candidates` does, but skip jobs beyond the limits of their groups."""
    line, status, groups, key = intervals.line, intervals.status, intervals.groups, state.order.key
    for k in range(groups.most.size):
        for group in range(groups.tested.shape[1]):
            groups.tested[k, group] = 0
    waiting = line_up(line.heap, intervals.counters, state)
    heap.arrange(line.heap, waiting, key)
    status.left, status.tested = 0, 0
    while waiting > 0 and status.left < intervals.rules.depth:
        job = heap.pop(line.heap, waiting, key)
        waiting -= 1
        if _is_within_limits(job, groups):
            line.candidate[status.left] = job
            status.left += 1
    for k in range(status.left):  # in order, and therefore a heap
        line.heap[k] = line.candidate[k]
    return int(status.left)


@inlined
def _is_within_limits(job: int, groups: GroupArrays) -> bool:
    """Count a job in its groups; at the first group with enough jobs, stop counting and return False."""
    for k in range(groups.most.size):
        of = groups.of[k, job]
        if groups.tested[k, of] >= groups.most[k]:
            return False
        groups.tested[k, of] += 1
    return True


@step
def _find_best(state: SharedState, intervals: SharedIntervals) -> None:
    """Write the first jobs by priority to `line.best`: enough for this pass, or more if later passes can use them."""
    line, status, most, worst = intervals.line, intervals.status, intervals.rules.depth, -1
    if _keeps_best(state, intervals):
        if _stay_best(state, intervals):
            return
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


@step
def _stay_best(state: SharedState, intervals: SharedIntervals) -> bool:
    """Keep the jobs in `line.best` that come before all others by the new keys; return whether they suffice for a pass."""
    line, status, queue, now, best, worst = intervals.line, intervals.status, state.queue, state.now, 0, -1
    for k in range(status.best):
        line.is_best[line.best[k]] = True
    for k in range(now.waiting):
        job = queue.job[k]
        if not line.is_best[job] and (worst < 0 or heap.before(job, worst, state.order.key)):
            worst = job
    for k in range(status.best):
        job = line.best[k]
        line.is_best[job] = False
        if queue.where[job] >= 0 and (worst < 0 or heap.before(job, worst, state.order.key)):
            line.best[best] = job
            best += 1
    status.best, status.worst, status.best_next, status.best_renewal = best, worst, now.next, now.renewal
    return bool(worst < 0 or best >= intervals.rules.depth)


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
def _next_able(
    component: int, first: int, count: int, state: SharedState, windows: WindowArrays, intervals: SharedIntervals
) -> int:
    """Return the position in `line.candidate`, from `first` on, of a waiting job of a component that could start now.

    Return `count` if there is none.
    """
    while first < count:
        job = intervals.line.candidate[first]
        waits = state.queue.where[job] >= 0 and _component(job, state, intervals) == component
        if waits and starts_now(job, state, windows, intervals):
            break
        first += 1
    return first
