"""One pass of conservative backfilling: reserve in priority order, start the jobs whose reservation begins now.

A pass stops once no remaining job can start now in addition to the reservations: the reservations of the jobs behind would be
discarded before the next pass. If nothing happens until the next pass except arrivals of jobs behind the reservations, it
continues where the last one stopped. Source: `policies.backfill.conservative`.
"""

from __future__ import annotations

from poolwise.arrays import FloatArray, IntArray
from poolwise.kernels.common import heap
from poolwise.kernels.common.order import key
from poolwise.kernels.common.state import STATIC
from poolwise.kernels.jit import inlined, step
from poolwise.kernels.shared_nodes.choose import choose
from poolwise.kernels.shared_nodes.nodes import next_fit
from poolwise.kernels.shared_nodes.profile import (
    SPARE,
    build_profile,
    earliest,
    holds_throughout,
    occupy,
    write_interval_minimum,
)
from poolwise.kernels.shared_nodes.reservation_cache import (
    begin_reserving,
    end_pass,
    end_reserving,
    keeps_reservation,
    latest_start,
    move_part,
    note_reservation,
)
from poolwise.kernels.shared_nodes.room import finds_room
from poolwise.kernels.shared_nodes.runs import start
from poolwise.kernels.shared_nodes.state import FIRST_FIT, NodeArrays, ProfileSteps, SharedState
from poolwise.kernels.shared_nodes.timeline import is_overdue
from poolwise.kernels.shared_nodes.waiting import leave
from poolwise.quantities import NEVER

_OUTSIDE = -2
"""Value of `NodeReservations.tested` for jobs that are not in the line of waiting jobs."""
_FEW = 8
"""Maximum number of new jobs to insert one by one into the sorted line of waiting jobs; with more jobs, it is sorted again."""


@step
def conservative_pass(state: SharedState, ahead: NodeArrays, profile: ProfileSteps) -> None:
    """Reserve the earliest free interval for each job in priority order; start the jobs whose interval begins now."""
    kinds, nodes, now, status = state.kinds, state.nodes, state.now, profile.kept.status
    first, reserved = _line_up(state, profile), 0
    if not _continues(first, state, profile):
        build_profile(state, profile)
        begin_reserving(state, profile)
    last = _last_able(status.lined - 1, -1, state, profile)
    while status.planned <= last:
        job = profile.line[status.planned]
        kind, length = state.jobs.kind[job], profile.hold[job]
        if keeps_reservation(job, state, profile):
            time = profile.kept.start[job]
            for part in range(kinds.parts[kind]):
                nodes.chosen[part] = profile.kept.node[profile.kept.offset[job] + part]
        else:
            time = _find(job, kind, length, state, ahead, profile)
            note_reservation(job, time, state, profile)
        for part in range(kinds.parts[kind]):
            nodes.borrow[part] = 0
            occupy(nodes.chosen[part], time, length, kind, kinds, profile)
        status.occupied += kinds.parts[kind]
        status.planned += 1
        if time == now.time:
            start(job, state)
            leave(job, state)
        reserved = end_reserving(job, time, reserved, state, profile)
        last = _last_able(last, job, state, profile)
    if state.order.kind != STATIC:
        end_pass(reserved, profile.kept)
    status.version = now.version


@inlined
def _line_up(state: SharedState, profile: ProfileSteps) -> int:
    """Write the waiting jobs to `profile.line` in order; return the position of the first new one."""
    order, queue, now, line, status = state.order, state.queue, state.now, profile.line, profile.kept.status
    tested, lined, planned, first = profile.kept.tested, 0, 0, 0
    if status.last < 0:
        for job in range(tested.size):
            tested[job] = _OUTSIDE
        status.lined = 0
    if order.kind == STATIC:
        for k in range(status.lined):
            if queue.where[line[k]] < 0:
                tested[line[k]] = _OUTSIDE
                continue
            line[lined] = line[k]
            lined += 1
            planned += int(k < status.planned)
        first = lined
    status.planned = planned
    before = lined
    for k in range(now.waiting):
        job = queue.job[k]
        if order.kind != STATIC or tested[job] == _OUTSIDE:
            order.key[job] = key(job, now.time, order)
            tested[job] = -1
            line[lined] = job
            lined += 1
    status.lined = lined
    if lined - before <= _FEW:
        for k in range(before, lined):
            first = min(first, _insert(k, line, order.key))
        return first
    heap.sort(line[before:], lined - before, order.key)
    if before == 0 or heap.before(line[before - 1], line[before], order.key):
        return before
    heap.sort(line, lined, order.key)
    return 0


@inlined
def _insert(k: int, line: IntArray, order_key: FloatArray) -> int:
    """Insert the job at a position into the sorted jobs before it; return its new position."""
    job = line[k]
    while k > 0 and heap.before(job, line[k - 1], order_key):
        line[k] = line[k - 1]
        k -= 1
    line[k] = job
    return k


@inlined
def _continues(first: int, state: SharedState, profile: ProfileSteps) -> bool:
    """Return whether the profile still holds: nothing has changed except that jobs have joined at position `first` or later.

    As time passes without an end of a run, reservations stay where they are.
    """
    status = profile.kept.status
    if state.order.kind != STATIC or not status.holds or status.version != state.now.version or first < status.planned:
        return False
    status.candidate = -1
    return not is_overdue(state)


@inlined
def _find(job: int, kind: int, length: int, state: SharedState, ahead: NodeArrays, profile: ProfileSteps) -> int:
    """Find the earliest interval for a job that does not keep its reservation; choose its nodes and return its start (ns)."""
    nodes, status, parts = state.nodes, profile.kept.status, state.kinds.parts[kind]
    if state.rules.placement == FIRST_FIT and parts == 1:
        time = move_part(profile, nodes)
        if time < NEVER:
            return int(time)
    until = status.until if status.until < NEVER else latest_start(job, state, profile)
    time = earliest(kind, length, status.since, until, state, profile)
    if state.rules.placement == FIRST_FIT:
        _choose_first(time, parts, nodes, profile)
    else:
        write_interval_minimum(time, length, nodes, ahead, profile)
        choose(kind, state.rules, state.kinds, ahead)
        for part in range(parts):
            nodes.chosen[part] = ahead.chosen[part]
    return int(time)


@inlined
def _choose_first(time: int, parts: int, nodes: NodeArrays, profile: ProfileSteps) -> None:
    """Choose the first nodes that `earliest` found available at a time (ns)."""
    n, part = 0, 0
    while part < parts:
        if profile.available[n] == time:
            nodes.chosen[part] = n
            part += 1
        n += 1


@inlined
def _last_able(k: int, reserved: int, state: SharedState, profile: ProfileSteps) -> int:
    """Return the last position up to `k` of a job without a reservation that can start now; job `reserved` got the last one."""
    while k >= profile.kept.status.planned and not _may_start(profile.line[k], reserved, state, profile):
        k -= 1
    return k


@step
def _may_start(job: int, last: int, state: SharedState, profile: ProfileSteps) -> bool:
    """Return whether a job can start now in addition to the reservations; if not, it cannot until the profile changes."""
    kind, kinds, nodes, kept = state.jobs.kind[job], state.kinds, state.nodes, profile.kept
    if kept.tested[job] == kept.status.last:
        return False
    if kept.status.candidate == job and not _takes_witness(last, state, profile):
        return True
    kept.tested[job] = kept.status.last
    if not finds_room(kind, state):
        return False
    kept.status.candidate = job
    for n in range(kept.witness.size):
        kept.witness[n] = False
    fitting, n = 0, next_fit(0, kind, -1, kinds, nodes)
    while n >= 0:
        if holds_throughout(n, state.now.time, kind, profile.hold[job], kinds, profile):
            kept.witness[n] = True
            fitting += 1
        if fitting == kinds.parts[kind]:
            kept.tested[job] = -1
            return True
        n = next_fit(n + 1, kind, -1, kinds, nodes)
    return False


@inlined
def _takes_witness(last: int, state: SharedState, profile: ProfileSteps) -> bool:
    """Return whether the job that reserved last takes a node on which the candidate can start now."""
    for part in range(state.kinds.parts[state.jobs.kind[last]]):  # noqa: SIM110  # a loop is what compiles
        if profile.kept.witness[state.nodes.chosen[part]]:
            return True
    return False


@inlined
def has_steps(state: SharedState, profile: ProfileSteps) -> bool:
    """Return whether the profile can hold all ends and reservations; write the number of rows needed to `now.rows`.

    A node moves to twice as many rows when its own are full, so all its rows are at most four times its steps.
    """
    nodes, now = state.nodes, state.now
    now.rows = nodes.rack.size + 2 * profile.kept.status.occupied  # which may have been subtracted for runs as well
    for n in range(nodes.rack.size):
        now.rows += state.timeline.size[n]
    for k in range(now.waiting):
        now.rows += 2 * state.kinds.parts[state.jobs.kind[state.queue.job[k]]]
    now.rows = 4 * now.rows + 2 * SPARE * nodes.rack.size
    return bool(now.rows <= profile.time.size)
