"""One pass of list scheduling at intervals: the main scheduler in strict priority order, then a backfill pass if one is due.

Reservations last for a pass. So a backfill pass ends once none of the remaining jobs that it tests could start now; only the
jobs in front of the last job that could start need reservations. A pass continues the plan of the last one if that still holds.
Equals `policies.backfill.slurm`.
"""

from __future__ import annotations

from poolwise.kernels.common.intervals import considered, next_pass, runs_backfill, runs_main
from poolwise.kernels.jit import inlined, step
from poolwise.kernels.list_scheduling.backfill_plan import begin_plan, holds, place_now, reserve, sort_releases, starts_now
from poolwise.kernels.list_scheduling.interval_state import IntervalArrays
from poolwise.kernels.list_scheduling.racks import fits, place_job
from poolwise.kernels.list_scheduling.ranking import rank_first, start_ranked
from poolwise.kernels.list_scheduling.runs import start
from poolwise.kernels.list_scheduling.state import RackNow, RackState


@step
def has_segments(intervals: IntervalArrays, now: RackNow) -> bool:
    """Return whether there is room for all segments of a backfill pass; write the number needed to `now.rows`."""
    now.rows = 2 * min(intervals.rules.depth, now.waiting) + 1
    return bool(now.rows <= intervals.segments.begin.size)


@step
def interval_pass(state: RackState, intervals: IntervalArrays) -> None:
    """Make a pass, given that some waiting job fits."""
    rules, status, now = intervals.rules, intervals.status, state.now
    if runs_main(now.time, rules):
        _start_in_order(considered(now.time, rules), state, intervals)
    if now.waiting > 0:
        if runs_backfill(now.time, rules):
            _backfill(state, intervals)
        if now.waiting > 0:
            status.wake = next_pass(now.time, rules)


@inlined
def _start_in_order(most: int, state: RackState, intervals: IntervalArrays) -> None:
    """Start at most `most` jobs in priority order until one does not fit."""
    left = most
    while left > 0 and rank_first(1, state, intervals) > 0 and place_job(intervals.rank.job[0], state):
        start(intervals.rank.job[0], state)
        start_ranked(0, state, intervals)
        left -= 1


@inlined
def _backfill(state: RackState, intervals: IntervalArrays) -> None:
    """Test the first jobs by priority: each starts if it fits in addition to the reservations of the jobs before it."""
    tested, rank, racks = rank_first(intervals.rules.depth, state, intervals), intervals.rank, state.racks
    last = tested - 1
    while last >= 0 and not fits(
        rank.job[last],
        state.jobs.nodes[rank.job[last]],
        state.jobs.remote[rank.job[last]],
        state.rules.anywhere,
        None,
        racks.free,
        racks.pool,
    ):
        last -= 1
    if last < 0:
        return
    if not holds(state, intervals):
        begin_plan(state, intervals)
    at = intervals.status.planned
    last = _last_candidate(last, at, state, intervals)
    while at <= last:
        job = rank.job[at]
        if at == last or starts_now(job, state, intervals):
            place_now(job, state, intervals)
            start(job, state)
            start_ranked(at, state, intervals)
            sort_releases(state, intervals)
            last -= 1
        else:
            reserve(job, state, intervals)
            at += 1
        last = _last_candidate(last, at, state, intervals)


@step
def _last_candidate(last: int, first: int, state: RackState, intervals: IntervalArrays) -> int:
    """Return the last position in [`first`, `last`] of a job that could start now; `first` - 1 if there is none."""
    while last >= first and not starts_now(intervals.rank.job[last], state, intervals):
        last -= 1
    return last
