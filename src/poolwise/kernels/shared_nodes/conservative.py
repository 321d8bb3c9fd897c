"""One pass of conservative backfilling: rebuild reservations in priority order, start the jobs whose reservation begins now.

Source: `policies.backfill.conservative`.
"""

from __future__ import annotations

from poolwise.arrays import IntArray
from poolwise.kernels.jit import inlined, step
from poolwise.kernels.list_scheduling import heap
from poolwise.kernels.list_scheduling.order import key
from poolwise.kernels.list_scheduling.state import Order
from poolwise.kernels.shared_nodes.choose import choose
from poolwise.kernels.shared_nodes.profile import build_profile, earliest, occupy, write_interval_minimum
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
def conservative_pass(
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
    """Reserve the earliest free interval for each job in priority order; start the jobs whose interval begins now.

    It stops once no remaining job fits the capacity free now: the other reservations would be discarded before the next pass.
    """
    build_profile(kinds, nodes, timeline, profile, now)
    waiting = now[WAITING]
    for k in range(waiting):
        order.key[queue.job[k]] = key(queue.job[k], now[TIME], order)
        profile.line[k] = queue.job[k]
    heap.arrange(profile.line, waiting, order.key)
    candidates = _count_candidates(waiting, jobs, kinds, nodes, profile, now)
    while candidates > 0:
        job = heap.pop(profile.line, waiting, order.key)
        kind, length = jobs.nodes[job], profile.hold[job]
        waiting -= 1
        candidates -= int(finds_room(kind, kinds, nodes, now))
        time = earliest(kind, length, kinds, nodes, profile, now)
        write_interval_minimum(time, length, nodes, ahead, profile)
        choose(kind, rules, kinds, ahead)
        for part in range(kinds.parts[kind]):
            nodes.chosen[part], nodes.borrow[part] = ahead.chosen[part], 0
            occupy(ahead.chosen[part], time, length, kind, kinds, profile)
        if time == now[TIME]:
            start(job, rules, jobs, kinds, nodes, timeline, runs, now)
            leave(job, queue, now)
            candidates = _count_candidates(waiting, jobs, kinds, nodes, profile, now)


@inlined
def _count_candidates(
    waiting: int, jobs: SharedJobs, kinds: KindArrays, nodes: NodeArrays, profile: ProfileSteps, now: IntArray
) -> int:
    """Count the jobs among the first `waiting` ones in line that fit the capacity free now."""
    count = 0
    for k in range(waiting):
        count += int(finds_room(jobs.nodes[profile.line[k]], kinds, nodes, now))
    return count


@inlined
def has_steps(parts: int, nodes: NodeArrays, timeline: TimelineArrays, profile: ProfileSteps, now: IntArray) -> bool:
    """Return whether the profile can hold all ends and reservations; write the number of steps needed to `now[ROWS]`."""
    now[ROWS] = nodes.rack.size + 2 * now[WAITING] * parts
    for n in range(nodes.rack.size):
        now[ROWS] += timeline.size[n]
    return bool(now[ROWS] <= profile.time.size)
