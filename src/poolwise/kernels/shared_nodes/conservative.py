"""One pass of conservative backfilling: reserve in priority order, start the jobs whose reservation begins now.

Source: `policies.backfill.conservative`.
"""

from __future__ import annotations

from poolwise.kernels.common import heap
from poolwise.kernels.common.order import key
from poolwise.kernels.jit import inlined, step
from poolwise.kernels.shared_nodes.choose import choose
from poolwise.kernels.shared_nodes.nodes import next_fit
from poolwise.kernels.shared_nodes.profile import SPARE, build_profile, earliest, holds_now, occupy, write_interval_minimum
from poolwise.kernels.shared_nodes.reservation_cache import (
    begin_reserving,
    end_pass,
    end_reserving,
    keeps_reservation,
    note_reservation,
)
from poolwise.kernels.shared_nodes.room import finds_room
from poolwise.kernels.shared_nodes.runs import start
from poolwise.kernels.shared_nodes.state import FIRST_FIT, NodeArrays, ProfileSteps, SharedState
from poolwise.kernels.shared_nodes.waiting import leave


@step
def conservative_pass(state: SharedState, ahead: NodeArrays, profile: ProfileSteps) -> None:
    """Reserve the earliest free interval for each job in priority order; start the jobs whose interval begins now.

    It stops once no remaining job can start now along with the reservations: those behind would be discarded before the next
    pass.
    """
    kinds, order, nodes, queue, now = state.kinds, state.order, state.nodes, state.queue, state.now
    build_profile(state, profile)
    begin_reserving(state, profile)
    waiting, candidates, reserved = now.waiting, 0, 0
    for k in range(waiting):
        job = queue.job[k]
        order.key[job] = key(job, now.time, order)
        profile.line[k] = job
        if finds_room(state.jobs.kind[job], state):
            profile.able[candidates] = job
            candidates += 1
    heap.arrange(profile.line, waiting, order.key)
    heap.sort(profile.able, candidates, order.key)
    while candidates > 0:
        job = heap.pop(profile.line, waiting, order.key)
        kind, length = state.jobs.kind[job], profile.hold[job]
        waiting -= 1
        if keeps_reservation(job, state, profile):
            time = profile.kept.start[job]
            for part in range(kinds.parts[kind]):
                nodes.chosen[part] = profile.kept.node[profile.kept.offset[job] + part]
        else:
            time = earliest(kind, length, profile.kept.status.since, profile.kept.status.until, state, profile)
            if state.rules.placement == FIRST_FIT:
                _choose_first(time, kinds.parts[kind], nodes, profile)
            else:
                write_interval_minimum(time, length, nodes, ahead, profile)
                choose(kind, state.rules, kinds, ahead)
                for part in range(kinds.parts[kind]):
                    nodes.chosen[part] = ahead.chosen[part]
            note_reservation(job, time, state, profile)
        for part in range(kinds.parts[kind]):
            nodes.borrow[part] = 0
            occupy(nodes.chosen[part], time, length, kind, kinds, profile)
        if time == now.time:
            start(job, state)
            leave(job, state)
        reserved = end_reserving(job, time, reserved, state, profile)
        while candidates > 0 and not _may_start(profile.able[candidates - 1], job, state, profile):
            candidates -= 1
    end_pass(reserved, profile.kept)


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
def _may_start(job: int, last: int, state: SharedState, profile: ProfileSteps) -> bool:
    """Return whether a job is behind the one that was reserved last, and can start now along with the reservations."""
    kind, kinds, nodes, witness = state.jobs.kind[job], state.kinds, state.nodes, profile.kept.witness
    if not heap.before(last, job, state.order.key):
        return False
    if profile.kept.status.candidate == job and not _takes_witness(last, state, profile):
        return True
    if not finds_room(kind, state):
        return False
    profile.kept.status.candidate = job
    for n in range(witness.size):
        witness[n] = False
    fitting, n = 0, next_fit(0, kind, -1, kinds, nodes)
    while n >= 0:
        if holds_now(n, kind, profile.hold[job], kinds, profile):
            witness[n] = True
            fitting += 1
        if fitting == kinds.parts[kind]:
            return True
        n = next_fit(n + 1, kind, -1, kinds, nodes)
    return False


@inlined
def _takes_witness(last: int, state: SharedState, profile: ProfileSteps) -> bool:
    """Return whether the job that was reserved last takes a node on which the candidate can start now."""
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
    now.rows = nodes.rack.size
    for n in range(nodes.rack.size):
        now.rows += state.timeline.size[n]
    for k in range(now.waiting):
        now.rows += 2 * state.kinds.parts[state.jobs.kind[state.queue.job[k]]]
    now.rows = 4 * now.rows + 2 * SPARE * nodes.rack.size
    return bool(now.rows <= profile.time.size)
