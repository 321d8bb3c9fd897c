"""Event loop: apply the events of an instant, then make one pass.

`replay` returns whenever its caller has to act (compute priorities, enlarge an array) and resumes at the same place in the next
call: all its state is in the arrays.
"""

from __future__ import annotations

from poolwise.kernels.common.events import advance_clock, defer, end_warm_up, job_arrives, joins_queue, run_ends, time_at
from poolwise.kernels.common.intervals import next_pass
from poolwise.kernels.common.state import (
    APPLY_EVENTS,
    CALLBACK,
    COMPUTE_KEYS,
    DEEP,
    DONE,
    INSTANTS,
    KEYED_PASS,
    LATE,
    MAKE_PASS,
    PAUSED,
    RENEW_KEYS,
    ROOM,
    SHALLOW,
    STATIC,
    Tree,
)
from poolwise.kernels.common.tournament import clear
from poolwise.kernels.jit import inlined, long_entry, step
from poolwise.kernels.list_scheduling.capacity_changes import apply_changes, defer_infeasible, readmit
from poolwise.kernels.list_scheduling.conservative import conservative_pass
from poolwise.kernels.list_scheduling.easy import any_fits, challenge, scan
from poolwise.kernels.list_scheduling.head_state import RackHeadArrays
from poolwise.kernels.list_scheduling.heads import heads_pass
from poolwise.kernels.list_scheduling.incremental_conservative import incremental_pass
from poolwise.kernels.list_scheduling.indexed import index, search
from poolwise.kernels.list_scheduling.interval_state import IntervalArrays
from poolwise.kernels.list_scheduling.intervals import has_segments, interval_pass
from poolwise.kernels.list_scheduling.profile import has_instants
from poolwise.kernels.list_scheduling.racks import place_job
from poolwise.kernels.list_scheduling.ranking import any_demand_fits, count_demands, note_arrival
from poolwise.kernels.list_scheduling.runs import end_first, has_rows, start
from poolwise.kernels.list_scheduling.state import ChangeArrays, ProfileArrays, RackState, ReservationArrays
from poolwise.kernels.list_scheduling.waiting import front, join, restart_queue
from poolwise.quantities import HORIZON, NEVER


@long_entry
def replay(
    state: RackState,
    tree: Tree | None,
    heads: Tree | None,
    profile: ProfileArrays | None,
    held: ReservationArrays | None,
    changes: ChangeArrays | None,
    intervals: IntervalArrays | None,
    partitions: RackHeadArrays | None,
) -> int:
    """Run until the events end (DONE) or the caller has to act.

    COMPUTE_KEYS: write the keys of the waiting jobs. ROOM: give `runs.owner`, `.resource` and `.amount` at least `now.rows`
    rows and, if runs may be lost, all other columns of runs enough rows for the waiting jobs.
    INSTANTS: give the profile at least `now.rows` instants, or `intervals.segments` as many segments.
    DEEP: the queue is long enough for a tree; create one (`index.lay_out`) and continue with it. SHALLOW: continue without it.
    RENEW_KEYS: write the keys of the waiting jobs and of those that arrive before the next recalculation, and its time.
    LATE: the clock is beyond `HORIZON`. PAUSED: `now.pause` passes are complete.

    Features whose argument is None are compiled out. There is one kernel for queues that are scanned, one for queues in a
    tree, one for conservative reservations (`profile`), one for those that are held, one for backfilling at `intervals`, and
    one for queues with a head for each of several `partitions`. Queues in a tree and conservative reservations have `changes`
    of the racks' capacity, which may be empty. If backfilling has its own order, `tree` has that order and `heads` the order of
    the queue; otherwise both are the same tree.
    """
    now = state.now
    while True:
        if now.phase == APPLY_EVENTS:
            if now.passes >= now.pause:
                return PAUSED
            if not _apply_events(state, tree, heads, changes, intervals):
                return DONE
            if now.time > HORIZON:
                return LATE
            now.phase = MAKE_PASS
        if now.phase == MAKE_PASS:
            if intervals is None and now.time >= now.renewal:
                return RENEW_KEYS
            if not has_rows(now.waiting + now.warm_last - now.warm_first, state):
                return ROOM
            if changes is not None and changes.time.size > 0 and now.started + now.waiting > changes.lost.size:
                return ROOM
            if now.warm:
                _warm_up(state)
        if not (now.warm or now.quiet) and now.waiting > 0:
            request = _pass(state, tree, heads, profile, held, intervals, partitions)
            if request != DONE:
                return request
        elif intervals is not None and now.waiting > 0 and not now.warm:
            intervals.status.wake = next_pass(now.time, intervals.rules)
        now.phase = APPLY_EVENTS


@inlined
def _pass(
    state: RackState,
    tree: Tree | None,
    heads: Tree | None,
    profile: ProfileArrays | None,
    held: ReservationArrays | None,
    intervals: IntervalArrays | None,
    partitions: RackHeadArrays | None,
) -> int:
    """Make a pass as the rules and the queue require; return the request to the caller, or DONE."""
    order, rules, now = state.order, state.rules, state.now
    if rules.capped:
        now.front = front(rules, now)
    if profile is not None:
        return _reservation_pass(state, profile, held)
    if intervals is not None:
        return _interval_pass(state, intervals)
    if partitions is not None:
        return _heads_pass(state, partitions)
    if tree is not None and heads is not None:
        return _search(state, tree, heads)
    if now.waiting > now.depth and order.kind != CALLBACK:
        return DEEP
    if order.kind == CALLBACK and now.phase == MAKE_PASS:
        if not any_fits(state):
            return DONE
        now.phase, now.first = KEYED_PASS, -1
        return COMPUTE_KEYS
    scan(state)
    return DONE


@inlined
def _heads_pass(state: RackState, partitions: RackHeadArrays) -> int:
    """Make a pass with a head for each of several partitions, unless no waiting job fits."""
    now = state.now
    if now.phase == MAKE_PASS:
        if not any_fits(state):
            return DONE
        if state.order.kind == CALLBACK:
            now.phase = KEYED_PASS
            return COMPUTE_KEYS
    heads_pass(state, partitions)
    return DONE


@inlined
def _search(state: RackState, tree: Tree, heads: Tree) -> int:
    """Make a pass over a queue in a tree; return SHALLOW if it has become too short for one."""
    now = state.now
    if not now.indexed:
        for k in range(now.waiting):
            index(state.queue.job[k], state, tree, heads)
        now.indexed = 1
    elif now.waiting < now.depth // 4:
        clear(tree)
        clear(heads)
        now.indexed, now.first = 0, -1
        return SHALLOW
    search(state, tree, heads)
    return DONE


@inlined
def _reservation_pass(state: RackState, profile: ProfileArrays, held: ReservationArrays | None) -> int:
    """Make a pass that reserves capacity for every job."""
    now = state.now
    if now.phase == MAKE_PASS:
        if held is None and not any_fits(state):
            return DONE
        if not has_instants(profile, now):
            return INSTANTS
        if state.order.kind == CALLBACK:
            now.phase = KEYED_PASS
            return COMPUTE_KEYS
    if held is None:
        conservative_pass(state, profile)
    else:
        incremental_pass(state, profile, held)
    return DONE


@inlined
def _interval_pass(state: RackState, intervals: IntervalArrays) -> int:
    """Make a pass of the main scheduler, the backfill or both, unless no waiting job fits."""
    now = state.now
    if now.phase == MAKE_PASS:
        count_demands(state, intervals)
        if not any_demand_fits(state, intervals):
            return DONE
        if not has_segments(intervals, now):
            return INSTANTS
        if now.time >= now.renewal:
            return RENEW_KEYS
        if state.order.kind == CALLBACK:
            now.phase = KEYED_PASS
            return COMPUTE_KEYS
    if state.order.kind != STATIC or state.rules.capped:
        intervals.status.current = 0
    interval_pass(state, intervals)
    return DONE


@inlined
def _apply_events(
    state: RackState, tree: Tree | None, heads: Tree | None, changes: ChangeArrays | None, intervals: IntervalArrays | None
) -> bool:
    """Process all events of the next instant (or one of them); return False at the end of the replay."""
    rules, now = state.rules, state.now
    change = NEVER
    if changes is not None:
        change = time_at(changes.time, now.changes)
    if intervals is not None:
        change = intervals.status.wake
    if not advance_clock(change, state):
        return False
    if intervals is not None:
        intervals.status.wake = NEVER
        if rules.per_event and job_arrives(state) and not run_ends(state):
            now.quiet = 1  # the pass after the arrival replaces the pass at this instant
    while run_ends(state):
        end_first(state)
        if intervals is not None:
            intervals.status.holds_until = 0
        if rules.per_event:
            return True
    while job_arrives(state):
        if changes is not None and changes.time.size > 0:
            defer(now.next, changes.deferred, now)
        else:
            _arrive(now.next, state, tree, heads, intervals)
        now.next += 1
        if rules.per_event:
            return True
    if changes is not None and changes.time.size > 0:
        _update_deferred(state, tree, changes)
    return True


@inlined
def _update_deferred(state: RackState, tree: Tree | None, changes: ChangeArrays) -> None:
    """Apply the changes of this instant, then recheck deferred jobs: all of them after a change, else the new arrivals."""
    now = state.now
    first = now.rechecked
    if time_at(changes.time, now.changes) == now.time:
        apply_changes(state, changes)
        defer_infeasible(state, changes, tree)
        first = now.quiet = 0
    readmit(first, state, changes, tree)
    now.rechecked = now.deferred


@inlined
def _arrive(job: int, state: RackState, tree: Tree | None, heads: Tree | None, intervals: IntervalArrays | None) -> None:
    """Add a job to the queue, unless it is rejected or warms up."""
    now = state.now
    if joins_queue(job, state):
        join(job, state)
        if now.warm:
            return
        if intervals is not None:
            note_arrival(job, state, intervals)
        elif tree is None or heads is None:
            challenge(job, state.order, now)
        elif now.indexed:
            index(job, state, tree, heads)


@step
def _warm_up(state: RackState) -> None:
    """Start warm-up jobs first come, first served; end the warm-up once the last was submitted and none waits."""
    now = state.now
    while now.warm_first < now.warm_last:
        job = state.queue.warm[now.warm_first]
        if not place_job(job, state):
            return
        start(job, state)
        now.warm_first += 1
    if end_warm_up(state):
        now.head = -1
        restart_queue(state)
