"""Why tasks waited for processing units."""

from __future__ import annotations

import numpy as np

from poolwise.errors import PolicyError
from poolwise.explain.seen import Pass, started
from poolwise.model import Refusal
from poolwise.model.reason import Reason, Rule
from poolwise.policies.placement.units.policy import TieredPolicy, UnitPolicy
from poolwise.policies.placement.units.view import Units
from poolwise.schedulers.dispatch import Dispatch


def dispatched(scheduler: Dispatch, job: int, seen: Pass) -> Reason:
    """Count the idle units that the tasks of a job might have had.

    Raises PolicyError if one is idle and the policy is one that takes what is idle.
    """
    state, policy = started(seen.snapshot, seen.starts), scheduler.placement
    assert isinstance(policy, UnitPolicy)  # `Dispatch.open` takes no other
    begun = {task for start in seen.starts if start.job == job for task in start.tasks}
    waiting = len(set(seen.queue.tasks(job)) - begun)
    units = Units(state)
    idle = sum(units.idle.count(low, high) for low, high in policy.allowed(job, units))
    ahead = _ahead(scheduler, job, seen)
    if not idle:
        short = Refusal("no unit that may run its tasks is idle", "slots", waiting, 0)
        return Reason.of(Rule.SHORT, short.reason, short, ahead=ahead)
    if isinstance(policy, TieredPolicy):
        name = int(state.table.id[job])
        raise PolicyError(f"tasks of job {name} were left waiting at {state.now} ns, although a unit is idle that may run them")
    return Reason(Rule.POSTPONED, "units that could run its tasks are idle, but they wait for better ones", ahead=ahead)


def _ahead(scheduler: Dispatch, job: int, seen: Pass) -> int:
    """How many rows that are served before a job have tasks left that wait for units."""
    jobs, priority = seen.queue.jobs, scheduler.order.priority(seen.queue, seen.snapshot)
    rank = {row: k for k, row in enumerate(jobs[np.argsort(-priority, kind="stable")].tolist())}
    begun: dict[int, int] = {}
    for start in seen.starts:
        begun[start.job] = begun.get(start.job, 0) + len(start.tasks)
    return sum(begun.get(row, 0) < len(seen.queue.tasks(row)) for row in rank if rank[row] < rank[job])
