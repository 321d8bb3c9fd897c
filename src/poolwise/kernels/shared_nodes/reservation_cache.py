"""Reservations of conservative backfilling, kept from pass to pass as long as nothing ahead of them changes.

A reservation depends on the runs and on the reservations of jobs of higher priority. So a pass notes the nodes on which either
has changed, and the interval in which they may have more free capacity; a start at the reserved time, or an end as expected,
changes nothing. A job keeps its reservation if its nodes can still hold it, and none of the changed nodes can hold a part of it
earlier or is chosen in place of another node. If the order of the jobs changes, those behind the change reserve again.
"""

from __future__ import annotations

from poolwise.kernels.common.state import STATIC
from poolwise.kernels.jit import inlined, step
from poolwise.kernels.shared_nodes.profile import available_from, holds_throughout, write_most
from poolwise.kernels.shared_nodes.state import (
    FIRST_FIT,
    PACKED,
    NodeArrays,
    NodeReservations,
    ProfileSteps,
    SharedState,
)
from poolwise.quantities import HORIZON, NEVER


@step
def begin_reserving(state: SharedState, profile: ProfileSteps) -> None:
    """Begin a pass: note the nodes on which runs have changed since the last one; after an outage, discard all reservations."""
    timeline, now, reservations = state.timeline, state.now, profile.kept
    status = reservations.status
    if status.last < 0 or status.outages != now.changes:
        for job in range(reservations.made_at.size):
            reservations.made_at[job] = -1
        for n in range(reservations.changed_at.size):
            reservations.changed_at[n] = -1
        status.outages, status.reserved = now.changes, 0
    status.last += 1
    status.planned, status.occupied, status.holds = 0, 0, 1
    status.changed, status.at, status.follows, status.candidate = 0, 0, 1, -1
    for n in range(reservations.changed_at.size):
        is_overdue = timeline.size[n] > 0 and timeline.until[n, 0] <= now.time  # expected to end a fixed time from now
        if is_overdue or timeline.shifted[n]:
            _note_freed(n, 0, NEVER, reservations)
        elif timeline.vacant[n] > now.time:
            _note_freed(n, now.time, timeline.vacant[n], reservations)
        timeline.shifted[n], timeline.vacant[n] = is_overdue, 0


@inlined
def _note(n: int, reservations: NodeReservations) -> None:
    """Record that the runs or reservations of a node have changed."""
    if reservations.changed_at[n] != reservations.status.last:
        reservations.changed_at[n] = reservations.status.last
        reservations.changed[reservations.status.changed] = n
        reservations.status.changed += 1
        reservations.freed_from[n], reservations.freed_until[n] = NEVER, 0


@inlined
def _note_freed(n: int, since: int, until: int, reservations: NodeReservations) -> None:
    """Record that a node may have more free capacity in an interval than in the last pass."""
    _note(n, reservations)
    reservations.freed_from[n] = min(reservations.freed_from[n], since)
    reservations.freed_until[n] = max(reservations.freed_until[n], until)
    reservations.is_exact[n] = False


@step
def keeps_reservation(job: int, state: SharedState, profile: ProfileSteps) -> bool:
    """Return whether the reservation of a job is the same as in the pass that made it.

    If not, `status.since` and `status.until` are the first and last time (ns) at which its new reservation may begin. The
    reservation moves forward only if a changed node can hold a part earlier, and back only if one of its nodes no longer can.
    """
    reservations, status, made = profile.kept, profile.kept.status, profile.kept.made_at[job]
    status.since, status.until, status.moves, status.node, status.time = state.now.time, NEVER, 1, -1, NEVER
    if made < 0 or not _is_next(job, state, reservations) or reservations.start[job] < state.now.time:
        return False
    status.since, status.until, status.moves = reservations.start[job], reservations.start[job], 0
    if state.rules.placement != FIRST_FIT:
        for n in range(reservations.changed_at.size):
            if reservations.changed_at[n] > made:
                _compare_any(job, n, state, profile)
        return status.moves == 0
    last = _see_own_nodes(job, made, state, profile)
    if made == status.last - 1:
        for k in range(status.changed):
            n = reservations.changed[k]
            if _may_gain(job, n, state, profile):
                _compare(job, n, last, state, profile)
    else:
        for n in range(reservations.changed_at.size):
            if reservations.changed_at[n] > made:
                _compare(job, n, last, state, profile)
    return status.moves == 0


@inlined
def _is_next(job: int, state: SharedState, reservations: NodeReservations) -> bool:
    """Return whether the jobs with reservations up to this one have the order of the last pass."""
    if state.order.kind == STATIC:
        return True
    status = reservations.status
    while status.follows and status.at < status.reserved and state.queue.where[reservations.sequence[status.at]] < 0:
        status.at += 1
    status.follows = int(status.follows and status.at < status.reserved and reservations.sequence[status.at] == job)
    status.at += 1
    return bool(status.follows)


@inlined
def _see_own_nodes(job: int, made: int, state: SharedState, profile: ProfileSteps) -> int:
    """Note whether a node of a reservation has changed and can no longer hold it; return the last of its nodes."""
    reservations, status, kind, last = profile.kept, profile.kept.status, state.jobs.kind[job], -1
    start, length = reservations.start[job], profile.hold[job]
    for k in range(reservations.offset[job], reservations.offset[job] + state.kinds.parts[kind]):
        n = reservations.node[k]
        last = max(last, n)
        if reservations.changed_at[n] > made and not holds_throughout(n, start, kind, length, state.kinds, profile):
            status.until, status.moves = NEVER, 1
    return last


@inlined
def _may_gain(job: int, n: int, state: SharedState, profile: ProfileSteps) -> bool:
    """Return whether capacity freed on a node since the last pass may let it hold a part of a job by its reservation."""
    reservations, kind = profile.kept, state.jobs.kind[job]
    if reservations.freed_from[n] >= reservations.freed_until[n]:
        return False
    if reservations.freed_from[n] - reservations.start[job] >= profile.hold[job]:
        return False
    if not reservations.is_exact[n]:
        reservations.is_exact[n] = True
        write_most(n, reservations.freed_from[n], reservations.freed_until[n], reservations.most[n], profile)
    for d in range(reservations.most.shape[1]):  # noqa: SIM110  # a loop is what compiles
        if reservations.most[n, d] < state.kinds.request[kind, d]:
            return False
    return True


@step
def _compare(job: int, n: int, last: int, state: SharedState, profile: ProfileSteps) -> None:
    """Note whether and when a changed node can hold a part of a job earlier, or instead of a later one of its nodes."""
    kinds, reservations, status, kind = state.kinds, profile.kept, profile.kept.status, state.jobs.kind[job]
    if not state.nodes.open[kinds.eligible[kind], state.nodes.top.shape[0] // 2 + n]:
        return
    start = reservations.start[job]
    time = available_from(n, kind, profile.hold[job], state.now.time, start, kinds, profile)
    if time > start or (time == start and n >= last):
        return
    if time == start:
        for k in range(reservations.offset[job], reservations.offset[job] + kinds.parts[kind]):
            if reservations.node[k] == n:
                return
    status.since, status.moves = min(status.since, time), 1
    if time < status.time or (time == status.time and n < status.node):
        status.time, status.node = time, n


@step
def _compare_any(job: int, n: int, state: SharedState, profile: ProfileSteps) -> None:
    """Note whether a changed node may change the reservation of a job, under any placement except first fit."""
    kinds, reservations, status, kind = state.kinds, profile.kept, profile.kept.status, state.jobs.kind[job]
    if not state.nodes.open[kinds.eligible[kind], state.nodes.top.shape[0] // 2 + n]:
        return
    start, length, is_chosen = reservations.start[job], profile.hold[job], False
    for k in range(reservations.offset[job], reservations.offset[job] + kinds.parts[kind]):
        is_chosen = is_chosen or reservations.node[k] == n
    time = available_from(n, kind, length, state.now.time, start, kinds, profile)
    status.since = min(status.since, time)
    if is_chosen and time != start and available_from(n, kind, length, start, start, kinds, profile) != start:
        status.until = NEVER
    # the choice depends on the free amounts of all available nodes; from `PACKED` on, the loss of one may change it too
    status.moves = int(status.moves or is_chosen or time <= start or state.rules.placement >= PACKED)


@inlined
def move_part(profile: ProfileSteps, nodes: NodeArrays) -> int:
    """Choose the new node of a job of one part under first fit, if the changed nodes determine it.

    Return when its reservation begins (ns), NEVER if all nodes have to be searched. If a changed node can hold the job earlier,
    or at the same time as a later node, no unchanged node can precede it.
    """
    status = profile.kept.status
    if status.node < 0:
        return NEVER
    nodes.chosen[0] = status.node
    return int(status.time)


@inlined
def latest_start(job: int, state: SharedState, profile: ProfileSteps) -> int:
    """Return a time (ns) at which the nodes that a job has reserved can hold it, NEVER if it has none."""
    reservations, kind, length = profile.kept, state.jobs.kind[job], profile.hold[job]
    if reservations.made_at[job] < 0:
        return NEVER
    first, parts, part, agreeing = reservations.offset[job], state.kinds.parts[kind], 0, 0
    time = max(reservations.start[job], state.now.time)
    while agreeing < parts and time < NEVER:
        after = available_from(reservations.node[first + part], kind, length, time, NEVER, state.kinds, profile)
        agreeing = agreeing + 1 if after == time else 1
        time, part = after, part + 1 if part + 1 < parts else 0
    return int(time)


@step
def note_reservation(job: int, time: int, state: SharedState, profile: ProfileSteps) -> None:
    """Store the reservation of a job at a time (ns) on `nodes.chosen`; note the nodes that it takes or leaves."""
    nodes, reservations, length = state.nodes, profile.kept, profile.hold[job]
    first, parts, start = reservations.offset[job], state.kinds.parts[state.jobs.kind[job]], reservations.start[job]
    had, is_same = reservations.made_at[job] >= 0, reservations.made_at[job] >= 0 and start == time
    for part in range(parts):
        is_same = is_same and reservations.node[first + part] == nodes.chosen[part]
    if is_same:
        return
    for part in range(parts):
        if had:
            _note_freed(reservations.node[first + part], start, start + min(length, HORIZON - start), reservations)
        _note(nodes.chosen[part], reservations)
        reservations.node[first + part] = nodes.chosen[part]
    reservations.start[job] = time


@inlined
def end_reserving(job: int, time: int, reserved: int, state: SharedState, profile: ProfileSteps) -> int:
    """Mark a reservation as made in this pass, or drop it if its job has just started; return the number of reservations."""
    now, reservations = state.now, profile.kept
    if time > now.time:
        reservations.made_at[job] = reservations.status.last
        reservations.following[reserved] = job
        return reserved + 1
    reservations.made_at[job] = -1
    end, timeline = time + min(profile.hold[job], HORIZON - time), state.timeline
    if state.runs.expected[now.started - 1] == end and state.rules.placement == FIRST_FIT:
        # the run takes what it had reserved; other placements prefer other nodes to those with more or less free capacity,
        # also for jobs of higher priority
        for part in range(state.kinds.parts[state.jobs.kind[job]]):
            n = state.nodes.chosen[part]
            timeline.shifted[n] = timeline.until[n, 0] <= now.time
    else:
        reservations.status.holds = 0
    return reserved


@step
def end_pass(reserved: int, reservations: NodeReservations) -> None:
    """End a pass: keep the order of its jobs."""
    reservations.status.reserved = reserved
    for k in range(reserved):
        reservations.sequence[k] = reservations.following[k]
