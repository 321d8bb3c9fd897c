"""One pass of conservative backfilling: reservations rebuilt in priority order, those that begin now start.

Source: `policies.backfill.conservative`.
"""

from __future__ import annotations

from poolwise.arrays import IntArray
from poolwise.kernels.jit import inlined, step
from poolwise.kernels.list_scheduling import heap
from poolwise.kernels.list_scheduling.order import key
from poolwise.kernels.list_scheduling.state import Order
from poolwise.kernels.shared_nodes.choose import choose
from poolwise.kernels.shared_nodes.profile import earliest, foresee_all, look_ahead, occupy
from poolwise.kernels.shared_nodes.room import finds_room
from poolwise.kernels.shared_nodes.runs import start
from poolwise.kernels.shared_nodes.state import (
    ROWS,
    TIME,
    WAITING,
    KindArrays,
    NodeArrays,
    ProfileSteps,
    SharedJobs,
    SharedQueue,
    SharedRules,
    SharedRuns,
    TimelineArrays,
)
from poolwise.kernels.shared_nodes.waiting import leave


@step
def conserve_shared(
    jobs: SharedJobs,
    kinds: KindArrays,
    order: Order,
    rules: SharedRules,
    nodes: NodeArrays,
    ahead: NodeArrays,
    timeline: TimelineArrays,
    profile: ProfileSteps,
    queue: SharedQueue,
    runs: SharedRuns,
    now: IntArray,
) -> None:
    """Reserve in priority order, each job the earliest interval that is free; start those whose interval begins now.

    It stops when no job that is left fits what is free now: the others' reservations would be dropped at the next pass.
    """
    foresee_all(kinds, nodes, timeline, profile, now)
    waiting = now[WAITING]
    for k in range(waiting):
        order.key[queue.job[k]] = key(queue.job[k], now[TIME], order)
        profile.line[k] = queue.job[k]
    heap.arrange(profile.line, waiting, order.key)
    hopeful = _hopeful(waiting, jobs, kinds, nodes, profile, now)
    while hopeful > 0:
        job = heap.pop(profile.line, waiting, order.key)
        kind, length = jobs.nodes[job], profile.hold[job]
        waiting -= 1
        hopeful -= int(finds_room(kind, kinds, nodes, now))
        time = earliest(kind, length, kinds, nodes, profile, now)
        look_ahead(time, length, nodes, ahead, profile)
        choose(kind, rules, kinds, ahead)
        for part in range(kinds.parts[kind]):
            nodes.chosen[part], nodes.lack[part] = ahead.chosen[part], 0
            occupy(ahead.chosen[part], time, length, kind, kinds, profile)
        if time == now[TIME]:
            start(job, rules, jobs, kinds, nodes, timeline, runs, now)
            leave(job, queue, now)
            hopeful = _hopeful(waiting, jobs, kinds, nodes, profile, now)


@inlined
def _hopeful(waiting: int, jobs: SharedJobs, kinds: KindArrays, nodes: NodeArrays, profile: ProfileSteps, now: IntArray) -> int:
    """How many of the first `waiting` jobs in line fit what is free now."""
    count = 0
    for k in range(waiting):
        count += int(finds_room(jobs.nodes[profile.line[k]], kinds, nodes, now))
    return count


@inlined
def has_steps(parts: int, nodes: NodeArrays, timeline: TimelineArrays, profile: ProfileSteps, now: IntArray) -> bool:
    """Whether the profile has room for all ends and reservations; else `now[ROWS]` says how many steps it needs."""
    now[ROWS] = nodes.rack.size + 2 * now[WAITING] * parts
    for n in range(nodes.rack.size):
        now[ROWS] += timeline.size[n]
    return bool(now[ROWS] <= profile.time.size)
