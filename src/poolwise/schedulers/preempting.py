"""Choice of the runs that a list scheduler stops for a waiting job, among those that a preemption policy allows.

Source: Slurm's `_run_now` in src/plugins/select/cons_tres/job_test.c. Slurm stops every chosen run that shares a node with the
placement of the job. Poolwise stops only the runs whose resources the placement needs, which differs if nodes are shared.
"""

from __future__ import annotations

import numpy as np

from poolwise.errors import PolicyError
from poolwise.interfaces import PreemptionPolicy, SchedulingPass
from poolwise.model import Placement, Refusal, Snapshot, Stop
from poolwise.model.capacity_check import why_no_room
from poolwise.model.node_count import used_nodes


def place_by_stopping(
    policy: PreemptionPolicy, cycle: SchedulingPass, job: int, snapshot: Snapshot
) -> tuple[Placement, tuple[Stop, ...]] | None:
    """Place a job that does not fit, assuming that some runs are stopped; return its placement and the stops that it needs.

    Candidates stop in the order of the policy until the job fits. The last of them moves to the front, followed by those on
    the most nodes of the placement, and the search repeats, so that small gaps do not cost many runs.

    Returns None if the job does not fit even with all candidates stopped; raises PolicyError for runs that are not running.
    """
    order = _candidates(policy, cycle, job)
    if not order or isinstance(_place(cycle, job, snapshot.without(stop.run for stop in order)), Refusal):
        return None
    ranks, chosen, rounds = {stop.run: rank for rank, stop in enumerate(order)}, None, 0
    while True:
        stopped, state = list[Stop](), snapshot
        for stop in order:
            stopped.append(stop)
            state = state.without((stop.run,))
            placed = _place(cycle, job, state)
            if not isinstance(placed, Refusal):
                chosen = placed
                break
        rounds += 1
        if chosen is None or rounds > policy.reorder_count + 1 or len(order) <= rounds:
            break
        order = _reordered(order, stopped, chosen, snapshot, policy.strict_order)
    if chosen is None:
        return None
    needed = {stop.run: stop for stop in sorted(stopped, key=lambda stop: ranks[stop.run])}
    for number in reversed(list(needed)):
        others = snapshot.without(run for run in needed if run != number)
        if not why_no_room(chosen, others.free):
            del needed[number]
    return chosen, tuple(needed.values())


def _candidates(policy: PreemptionPolicy, cycle: SchedulingPass, job: int) -> list[Stop]:
    """Return the stops that the policy allows, except of runs that have just started; raise PolicyError for invalid stops."""
    started = {run.id: run.start for run in cycle.snapshot.runs() if run.id >= 0}
    allowed = {stop.run: stop for stop in policy.stops(job, cycle) if stop.run >= 0}
    for number in allowed:
        if number not in started:
            raise PolicyError(f"{type(policy).__name__} stops run {number}, which is not running")
    return [stop for stop in allowed.values() if started[stop.run] < cycle.snapshot.now]


def _place(cycle: SchedulingPass, job: int, state: Snapshot) -> Placement | Refusal:
    return cycle.placement.place(cycle.queue.job(job), state)


def _reordered(order: list[Stop], stopped: list[Stop], placement: Placement, snapshot: Snapshot, strict: bool) -> list[Stop]:
    """Return the candidates, first the one stopped last, then those on the most nodes of the placement."""
    *earlier, last = stopped
    if not strict:
        machine, nodes = snapshot.machine, used_nodes(placement, snapshot.machine)
        others = {stop.run: used_nodes(snapshot.run(stop.run).placement, machine) for stop in earlier}
        earlier.sort(key=lambda stop: -int(np.minimum(nodes, others[stop.run]).sum()))
    return [last, *earlier, *order[len(stopped) :]]
