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
from poolwise.kernels.shared_nodes.backfill_plan import begin_plan, holds, place_now, reserve, sort_releases, starts_now
from poolwise.kernels.shared_nodes.blocking import line_up, start_in_order
from poolwise.kernels.shared_nodes.counters import take
from poolwise.kernels.shared_nodes.interval_state import SharedIntervals
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
    admitted job, which ends the pass.
    """
    line, tested = intervals.line, 0
    waiting = line_up(line.heap, intervals.counters, state)
    while tested < intervals.rules.depth and tested < waiting:
        line.tested[tested] = heap.pop(line.heap, waiting - tested, state.order.key)
        tested += 1
    last = tested - 1
    while last >= 0 and not finds_room(state.jobs.kind[line.tested[last]], state):
        last -= 1
    if last < 0:
        return False
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
            if take(job, state, intervals.counters):
                return True
            tested -= 1
            for k in range(at, tested):
                line.tested[k] = line.tested[k + 1]
            sort_releases(state, intervals)
            last -= 1
        else:
            reserve(job, state, intervals)
            at += 1
        last = _last_candidate(last, at, state, intervals)
    intervals.status.idle_until = intervals.status.holds_until
    return False


@step
def _last_candidate(last: int, first: int, state: SharedState, intervals: SharedIntervals) -> int:
    """Return the position, from `last` back to `first`, of a job that could start now; else `first` - 1."""
    while last >= first and not starts_now(intervals.line.tested[last], state, intervals):
        last -= 1
    return last
