"""Reservations of conservative backfilling, kept from pass to pass as long as nothing changes in front of them.

A reservation depends on the runs and on the reservations of jobs of higher priority. So a pass notes the nodes on which either
has changed; a start at the reserved time, or an end as expected, changes nothing. A job keeps its reservation if none of these
nodes can hold a part of it earlier, or is chosen in place of another node. If the order of the jobs changes, those behind
the change reserve again.
"""

from __future__ import annotations

from poolwise.kernels.common.state import STATIC
from poolwise.kernels.jit import inlined, step
from poolwise.kernels.shared_nodes.profile import available_from
from poolwise.kernels.shared_nodes.state import FIRST_FIT, PACKED, NodeReservations, ProfileSteps, SharedState
from poolwise.quantities import HORIZON, NEVER


@step
def begin_reserving(state: SharedState, profile: ProfileSteps) -> None:
    """Begin a pass: note the nodes on which runs have changed since the last one; after an outage, discard all reservations."""
    timeline, now, reservations = state.timeline, state.now, profile.kept
    status = reservations.status
    if status.last < 0 or status.outages != now.changes:
        for job in range(reservations.made_at.size):
            reservations.made_at[job] = -1
        status.outages, status.reserved = now.changes, 0
    status.last += 1
    status.changed, status.at, status.follows, status.candidate = 0, 0, 1, -1
    for n in range(reservations.changed_at.size):
        is_overdue = timeline.size[n] > 0 and timeline.until[n, 0] <= now.time  # expected to end a fixed time from now
        if is_overdue or timeline.shifted[n]:
            _note(n, reservations)
        timeline.shifted[n] = is_overdue


@inlined
def _note(n: int, reservations: NodeReservations) -> None:
    """Note that the runs or reservations of a node have changed."""
    if reservations.changed_at[n] != reservations.status.last:
        reservations.changed_at[n] = reservations.status.last
        reservations.changed[reservations.status.changed] = n
        reservations.status.changed += 1


@step
def keeps_reservation(job: int, state: SharedState, profile: ProfileSteps) -> bool:
    """Return whether the reservation of a job is the same as in the pass that made it.

    If not, `status.since` and `status.until` are the first and last time (ns) at which its new reservation may begin. It
    cannot begin before the old one unless a changed node can hold a part then, nor after it if all its nodes still can.
    """
    reservations, status, made = profile.kept, profile.kept.status, profile.kept.made_at[job]
    status.since, status.until, status.moves = state.now.time, NEVER, 1
    if made < 0 or not _is_next(job, state, reservations) or reservations.start[job] < state.now.time:
        return False
    status.since, status.until, status.moves = reservations.start[job], reservations.start[job], 0
    if made == status.last - 1:
        for k in range(status.changed):
            _compare(job, reservations.changed[k], state, profile)
    else:
        for n in range(reservations.changed_at.size):
            if reservations.changed_at[n] > made:
                _compare(job, n, state, profile)
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
def _compare(job: int, n: int, state: SharedState, profile: ProfileSteps) -> None:
    """Note whether a job may reserve otherwise because of a node that has changed, and when."""
    kinds, reservations, status, kind = state.kinds, profile.kept, profile.kept.status, state.jobs.kind[job]
    if not state.nodes.open[kinds.eligible[kind], state.nodes.top.shape[0] // 2 + n]:
        return
    start, length, last, is_chosen = reservations.start[job], profile.hold[job], -1, False
    for k in range(reservations.offset[job], reservations.offset[job] + kinds.parts[kind]):
        last = max(last, reservations.node[k])
        is_chosen = is_chosen or reservations.node[k] == n
    time = available_from(n, kind, length, state.now.time, start, kinds, profile)
    status.since = min(status.since, time)
    if is_chosen and time != start and available_from(n, kind, length, start, start, kinds, profile) != start:
        status.until = NEVER
    if state.rules.placement >= PACKED:
        moves = True  # the choice depends on which nodes are available, also on one that no longer is
    elif state.rules.placement != FIRST_FIT:
        moves = is_chosen or time <= start  # the choice depends on what the nodes have free
    else:
        moves = time != start if is_chosen else time < start or (time == start and n < last)
    status.moves = int(status.moves or moves)


@step
def note_reservation(job: int, time: int, state: SharedState, profile: ProfileSteps) -> None:
    """Store the reservation of a job at a time (ns) on `nodes.chosen`; note the nodes that it takes or leaves."""
    nodes, reservations = state.nodes, profile.kept
    first, parts = reservations.offset[job], state.kinds.parts[state.jobs.kind[job]]
    had, is_same = reservations.made_at[job] >= 0, reservations.made_at[job] >= 0 and reservations.start[job] == time
    for part in range(parts):
        is_same = is_same and reservations.node[first + part] == nodes.chosen[part]
    if is_same:
        return
    for part in range(parts):
        if had:
            _note(reservations.node[first + part], reservations)
        _note(nodes.chosen[part], reservations)
        reservations.node[first + part] = nodes.chosen[part]
    reservations.start[job] = time


@inlined
def end_reserving(job: int, time: int, reserved: int, state: SharedState, profile: ProfileSteps) -> int:
    """Mark a reservation as made in this pass, or forget that of a job that has just started; return how many there are."""
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
    return reserved


@step
def end_pass(reserved: int, reservations: NodeReservations) -> None:
    """End a pass: keep the order of its jobs."""
    reservations.status.reserved = reserved
    for k in range(reserved):
        reservations.sequence[k] = reservations.following[k]
