"""Event loop: apply the events of an instant, then make one pass.

`replay` returns whenever its caller has to act (compute priorities, enlarge an array) and resumes at the same place in the next
call: all its state is in the arrays.
"""

from __future__ import annotations

from poolwise.arrays import BoolArray
from poolwise.kernels.common.events import advance_clock, end_warm_up, job_arrives, joins_queue, run_ends, time_at
from poolwise.kernels.common.intervals import next_pass
from poolwise.kernels.common.recalculation import recalculate
from poolwise.kernels.common.state import (
    APPLY_EVENTS,
    CALLBACK,
    COMPUTE_KEYS,
    DONE,
    INSTANTS,
    KEYED_PASS,
    LATE,
    MAKE_PASS,
    PAUSED,
    RANK,
    RENEW_KEYS,
    ROOM,
)
from poolwise.kernels.jit import entry, inlined, long_entry, step
from poolwise.kernels.shared_nodes.choose import choose, missing_nodes
from poolwise.kernels.shared_nodes.conservative import conservative_pass, has_steps
from poolwise.kernels.shared_nodes.counters import admits, give_back, use
from poolwise.kernels.shared_nodes.head_state import HeadArrays
from poolwise.kernels.shared_nodes.heads import heads_pass
from poolwise.kernels.shared_nodes.interval_state import SharedIntervals
from poolwise.kernels.shared_nodes.intervals import has_segments, interval_pass
from poolwise.kernels.shared_nodes.outages import apply_changes, defer_if_unfit, has_run_rows
from poolwise.kernels.shared_nodes.room import finds_room
from poolwise.kernels.shared_nodes.runs import end_first, has_rows, start
from poolwise.kernels.shared_nodes.search import search
from poolwise.kernels.shared_nodes.state import (
    CounterArrays,
    KindArrays,
    NodeArrays,
    OutageArrays,
    ProfileSteps,
    SharedState,
    WindowArrays,
)
from poolwise.kernels.shared_nodes.waiting import join, keeps_tree, rebuild_tree
from poolwise.kernels.shared_nodes.windows import kind_now, pass_windows
from poolwise.quantities import HORIZON, NEVER


@long_entry
def replay(
    state: SharedState,
    ahead: NodeArrays | None,
    empty: NodeArrays | None,
    profile: ProfileSteps | None,
    outages: OutageArrays | None,
    windows: WindowArrays | None,
    intervals: SharedIntervals | None,
    heads: HeadArrays | None,
) -> int:
    """Run until the events end (DONE) or the caller has to act; `common.state` defines the return values.

    COMPUTE_KEYS: write the keys of the waiting jobs. ROOM: give `runs.owner`, `.resource` and `.amount` at least `now.rows`
    rows and, if runs may be lost, all other columns of runs enough rows for the waiting jobs.
    INSTANTS: give the profile at least `now.rows` steps, or `intervals.segments` as many segments.
    RENEW_KEYS: write the keys of the waiting jobs and of those that arrive before the next recalculation, and its time.
    RANK: rank the level fair shares of `intervals.formula`.
    LATE: the clock is beyond `HORIZON`. PAUSED: `now.pause` passes are complete.

    Features whose argument is None are compiled out. There is one kernel for queues, one for conservative reservations
    (`ahead`, `profile`), one for queues with windows, one for backfilling at `intervals`, and one for queues with `heads` of
    several partitions. The first two have `outages`, which may be empty, and the nodes as if nothing ran (`empty`). The last
    two have `windows`, which may be empty.
    """
    now = state.now
    while True:
        if now.phase == APPLY_EVENTS:
            if now.passes >= now.pause:
                return PAUSED
            if not _apply_events(state, empty, outages, windows, intervals, heads):
                return DONE
            if now.time > HORIZON:
                return LATE
            now.phase = MAKE_PASS
        if now.warm and now.phase == MAKE_PASS:
            if not has_rows(state):
                return ROOM
            if intervals is not None:
                _warm_up(state, intervals.counters, windows)
            elif heads is not None:
                _warm_up(state, heads.counters, windows)
            else:
                _warm_up(state, None, windows)
        if not (now.warm or now.quiet) and now.waiting > 0:
            if outages is not None and outages.time.size > 0 and not has_run_rows(state, outages):
                has_rows(state)  # writes the number of rows needed
                return ROOM
            request = _pass(state, ahead, profile, windows, intervals, heads)
            if request != DONE:
                return request
        elif intervals is not None and now.waiting > 0 and not now.warm:
            intervals.status.wake = next_pass(now.time, intervals.rules)
        now.phase = APPLY_EVENTS


@inlined
def _pass(
    state: SharedState,
    ahead: NodeArrays | None,
    profile: ProfileSteps | None,
    windows: WindowArrays | None,
    intervals: SharedIntervals | None,
    heads: HeadArrays | None,
) -> int:
    """Make a pass as the rules require; return the request to the caller, or DONE."""
    order, now = state.order, state.now
    if not has_rows(state):
        return ROOM
    if now.phase == MAKE_PASS and (profile is not None or intervals is not None or heads is not None or order.kind == CALLBACK):
        if not _any_fits(state):
            return DONE
        if profile is not None and not has_steps(state, profile):
            return INSTANTS
        if intervals is not None:
            if not has_segments(intervals, now):
                return INSTANTS
            if now.time >= now.renewal:
                if not intervals.formula.rules.exists:
                    return RENEW_KEYS
                if not recalculate(state.jobs.submit, order, state.queue, state.runs, now, intervals.formula):
                    return RANK
        if order.kind == CALLBACK:
            now.phase = KEYED_PASS
            return COMPUTE_KEYS
    if profile is not None and ahead is not None:
        conservative_pass(state, ahead, profile)
        return DONE
    if intervals is not None and windows is not None:
        interval_pass(state, windows, intervals)
        return DONE
    if heads is not None and windows is not None:
        heads_pass(state, windows, heads)
        return DONE
    if order.kind == CALLBACK:
        rebuild_tree(state)
    search(state, windows)
    return DONE


@entry
def screen(kinds: KindArrays, nodes: NodeArrays, able: BoolArray) -> None:
    """Write for each kind, (n_kind,), whether a job of it fits."""
    for kind in range(able.size):
        able[kind] = missing_nodes(kind, kinds, nodes) == 0


@inlined
def _any_fits(state: SharedState) -> bool:
    """Return whether any waiting job fits now; if none does, nothing starts under any order."""
    for k in range(state.now.waiting):  # noqa: SIM110  # a loop is what compiles
        if finds_room(state.jobs.kind[state.queue.job[k]], state):
            return True
    return False


@inlined
def _apply_events(
    state: SharedState,
    empty: NodeArrays | None,
    outages: OutageArrays | None,
    windows: WindowArrays | None,
    intervals: SharedIntervals | None,
    heads: HeadArrays | None,
) -> bool:
    """Process all events of the next instant (or one of them); return False at the end of the replay."""
    rules, now = state.rules, state.now
    change = NEVER
    if outages is not None and outages.time.size > 0:
        change = time_at(outages.time, now.changes)
    if windows is not None and (now.waiting > 0 or now.warm_first < now.warm_last):
        change = time_at(windows.ends, now.ended)
    if intervals is not None:
        change = min(change, intervals.status.wake)
    if not advance_clock(change, state):
        return False
    if intervals is not None:
        intervals.status.wake = NEVER
        if rules.per_event and job_arrives(state) and not run_ends(state):
            now.quiet = 1  # the pass after the arrival replaces the pass at this instant
    if windows is not None:
        pass_windows(windows, now)
    while run_ends(state):
        if intervals is not None:
            give_back(state.runs.job[state.runs.ending[0]], intervals.counters)
        if heads is not None:
            give_back(state.runs.job[state.runs.ending[0]], heads.counters)
        end_first(state)
        if rules.per_event:
            return True
    while job_arrives(state):
        is_deferred = False
        if outages is not None and outages.time.size > 0 and empty is not None:
            is_deferred = defer_if_unfit(now.next, state, empty, outages)
        if not is_deferred and joins_queue(now.next, state):
            join(now.next, state)
        now.next += 1
        if rules.per_event:
            return True
    if outages is not None and outages.time.size > 0 and empty is not None and change == now.time:
        apply_changes(state, empty, outages)
    return True


@step
def _warm_up(state: SharedState, counters: CounterArrays | None, windows: WindowArrays | None) -> None:
    """Start the admitted warm-up jobs first come, first served, until one does not fit.

    End the warm-up once the last of its jobs was submitted and none waits.
    """
    now, warm = state.now, state.queue.warm
    if state.jobs.warm_rank.size > 0:
        _line_up(state)
    k = now.warm_first
    while k < now.warm_last:
        job = warm[k]
        if counters is None or admits(job, counters):
            if not choose(kind_now(job, state, windows), state.rules, state.kinds, state.nodes):
                return
            start(job, state)
            if counters is not None:
                use(job, counters)
            for barred in range(k, now.warm_first, -1):
                warm[barred] = warm[barred - 1]
            now.warm_first += 1
        k += 1
    if now.warm_first == now.warm_last and end_warm_up(state) and keeps_tree(state):
        rebuild_tree(state)


@inlined
def _line_up(state: SharedState) -> None:
    """Sort the waiting warm-up jobs by rank: those that arrived last are at the end."""
    now, warm, rank = state.now, state.queue.warm, state.jobs.warm_rank
    for k in range(now.warm_first + 1, now.warm_last):
        job, at = warm[k], k
        while at > now.warm_first and rank[warm[at - 1]] > rank[job]:
            warm[at] = warm[at - 1]
            at -= 1
        warm[at] = job
