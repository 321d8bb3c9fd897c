"""One pass of conservative backfilling: rebuild reservations in priority order, start the jobs whose reservation begins now.

Source: `policies.backfill.conservative`.
"""

from __future__ import annotations

from poolwise.kernels.common import heap
from poolwise.kernels.common.order import key
from poolwise.kernels.jit import inlined, step
from poolwise.kernels.shared_nodes.choose import choose
from poolwise.kernels.shared_nodes.profile import build_profile, earliest, occupy, write_interval_minimum
from poolwise.kernels.shared_nodes.room import finds_room
from poolwise.kernels.shared_nodes.runs import start
from poolwise.kernels.shared_nodes.state import NodeArrays, ProfileSteps, SharedState
from poolwise.kernels.shared_nodes.waiting import leave


@step
def conservative_pass(state: SharedState, ahead: NodeArrays, profile: ProfileSteps) -> None:
    """Reserve the earliest free interval for each job in priority order; start the jobs whose interval begins now.

    It stops once no remaining job fits the capacity free now: the other reservations would be discarded before the next pass.
    """
    kinds, order, nodes, queue, now = state.kinds, state.order, state.nodes, state.queue, state.now
    build_profile(state, profile)
    waiting = now.waiting
    for k in range(waiting):
        order.key[queue.job[k]] = key(queue.job[k], now.time, order)
        profile.line[k] = queue.job[k]
    heap.arrange(profile.line, waiting, order.key)
    candidates = _count_candidates(waiting, state, profile)
    while candidates > 0:
        job = heap.pop(profile.line, waiting, order.key)
        kind, length = state.jobs.kind[job], profile.hold[job]
        waiting -= 1
        candidates -= int(finds_room(kind, state))
        time = earliest(kind, length, state, profile)
        write_interval_minimum(time, length, nodes, ahead, profile)
        choose(kind, state.rules, kinds, ahead)
        for part in range(kinds.parts[kind]):
            nodes.chosen[part], nodes.borrow[part] = ahead.chosen[part], 0
            occupy(ahead.chosen[part], time, length, kind, kinds, profile)
        if time == now.time:
            start(job, state)
            leave(job, state)
            candidates = _count_candidates(waiting, state, profile)


@inlined
def _count_candidates(waiting: int, state: SharedState, profile: ProfileSteps) -> int:
    """Count the jobs among the first `waiting` ones in line that fit the capacity free now."""
    count = 0
    for k in range(waiting):
        count += int(finds_room(state.jobs.kind[profile.line[k]], state))
    return count


@inlined
def has_steps(state: SharedState, profile: ProfileSteps) -> bool:
    """Return whether the profile can hold all ends and reservations; write the number of steps needed to `now.rows`."""
    nodes, now = state.nodes, state.now
    now.rows = nodes.rack.size + 2 * now.waiting * state.rules.parts
    for n in range(nodes.rack.size):
        now.rows += state.timeline.size[n]
    return bool(now.rows <= profile.time.size)
