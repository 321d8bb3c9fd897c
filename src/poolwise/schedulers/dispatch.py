"""Task dispatch: each waiting task goes to a processing unit as soon as its policy finds one, whatever waits before it.

Source: VineSim, sections 4.5 and 5.1; specs of the accelerators, "Policies".
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

import numpy as np

from poolwise.errors import InputError, PolicyError
from poolwise.interfaces import Dispatcher, PlacementPolicy, QueuePolicy, Scheduler
from poolwise.model import Changes, JobTable, Machine, Plan, Queue, Reason, Refusal, Reject, Rule, Run, Snapshot, Start, Wait
from poolwise.policies.order.priorities import FCFS
from poolwise.policies.placement.units.choices import Choices
from poolwise.policies.placement.units.high import High
from poolwise.policies.placement.units.layout import UnitLayout
from poolwise.policies.placement.units.policy import WAIT, UnitPolicy
from poolwise.policies.placement.units.view import Task, Units
from poolwise.registry import register
from poolwise.schedulers.fitting import NEVER_FITS
from poolwise.schedulers.task_queues import TaskQueues, TaskQueueTurn, lanes_of
from poolwise.units import NEVER

LANE = ("task_type", "preferred_type")
"""Tasks wait behind those that are alike in these columns."""


@register("schedulers", "dispatch")
@dataclass(frozen=True)
class Dispatch(Scheduler):
    """One FIFO for each task type and preferred type; heads are served by age, each task a start of its own.

    A task that finds no allowed idle unit blocks only those behind it in its FIFO, which could take none either. Tasks that
    no unit may ever run are rejected.

    Parameters
    ----------
    placement
        A policy for units: flat, high, pref, closer_to_data, earliest_finish, delay.
    order
        Any static queue order, such as `edf`: tasks wait and are served in it instead of by age.
    """

    placement: PlacementPolicy = field(default_factory=High)
    order: QueuePolicy = field(default_factory=FCFS)

    def open(self, machine: Machine, seed: int) -> Dispatcher:
        """Begin a run; raises InputError for another kind of placement or order, and for a machine without units."""
        UnitLayout.of(machine)
        return DispatchDispatcher(self._policy(), self.order, seed)

    def check(self, machine: Machine, jobs: JobTable) -> None:
        """Raise InputError as `open` does, and for tasks that no unit may ever run."""
        policy, choices = self._policy(), Choices(UnitLayout.of(machine), jobs)
        for job in np.unique(lanes_of(jobs, LANE), return_index=True)[1].tolist():
            if not policy.allowed(job, choices):
                raise InputError(
                    _nobody(job, policy, choices),
                    field="task_type",
                    remedy="deploy a unit of that type, give one an affinity, or choose another placement",
                )

    def _policy(self) -> UnitPolicy:
        """The placement, whose settings are checked; raises InputError where it or the order is of another kind."""
        if not isinstance(self.placement, UnitPolicy):
            raise InputError(
                f"{type(self.placement).__name__} does not place single tasks on units",
                field="placement",
                remedy="choose flat, high, pref, closer_to_data, earliest_finish or delay",
            )
        if self.order.kind != "static":
            raise InputError(
                f"{type(self.order).__name__} changes with time", field="order", remedy="choose a static order, such as edf"
            )
        self.placement.check_settings()
        return self.placement


@dataclass
class DispatchDispatcher(Dispatcher):
    """A run. Everything besides the settings is a cache that is rebuilt from the queue and the snapshot when in doubt."""

    policy: UnitPolicy
    order: QueuePolicy
    seed: int
    _cache: _Cache | None = None

    def schedule(self, queue: Queue, snapshot: Snapshot, changes: Changes) -> Plan:
        """Start what was in line at units that are free now, then serve the lanes."""
        starts = None if self._cache is None else self._cache.follow(queue, snapshot, changes)
        if starts is None or self._cache is None:
            self._cache, starts = _Cache(self.policy, self.order, self.seed, queue, snapshot), []
        hopeless = self._cache.lanes.hopeless
        turned = [(job, hopeless[job]) for job in queue.jobs.tolist() if job in hopeless] if hopeless else []
        if turned and not snapshot.may_grow:
            self._cache = None  # the loop asks again, and tells once more what this pass was told
            return Plan(tuple(Reject(job, f"{NEVER_FITS}: {refusal.reason}") for job, refusal in turned))
        units = self._cache.units
        units.ask_at = NEVER
        plan = self._cache.plan(starts + self._cache.serve())
        waits = tuple(Wait(job, refusal) for job, refusal in turned)
        return Plan((*waits, *plan), units.ask_at if units.ask_at < NEVER else None)

    def why(self, job: int, queue: Queue, snapshot: Snapshot, plan: Plan) -> Reason:
        """Count the idle units that the tasks of a job might have had.

        Raises PolicyError if one is idle and the policy is one that takes what is idle.
        """
        state, starts = snapshot.with_starts(plan.starts), Counter[int]()
        for start in plan.starts:
            starts[start.job] += len(start.tasks)
        units = Units(state)
        idle = sum(units.idle.count(low, high) for low, high in self.policy.allowed(job, units))
        order = queue.jobs[np.argsort(-self.order.priority(queue, snapshot), kind="stable")].tolist()
        ahead = sum(starts[row] < len(queue.tasks(row)) for row in order[: order.index(job)])
        if not idle:
            short = Refusal("no unit that may run its tasks is idle", "slots", len(queue.tasks(job)) - starts[job], 0)
            return Reason.of(Rule.SHORT, short.reason, short, ahead=ahead)
        if not self.policy.may_wait:
            name = int(state.table.id[job])
            raise PolicyError(
                f"tasks of job {name} were left waiting at {state.now} ns, although a unit is idle that may run them"
            )
        return Reason(Rule.POSTPONED, "units that could run its tasks are idle, but they wait for better ones", ahead=ahead)


class _Cache:
    """What is derived from a queue and a snapshot: the units, the tasks in lanes, and where runs are.

    Attributes
    ----------
    units, lanes : what is idle, and what waits
    """

    def __init__(self, policy: UnitPolicy, order: QueuePolicy, seed: int, queue: Queue, snapshot: Snapshot) -> None:
        self.policy = policy
        self.units = units = Units(snapshot, seed)
        alive = snapshot.capacity[units.layout.owner, units.layout.column] > 0

        def judge(job: int) -> Refusal | None:
            if any(bool(alive[low:high].any()) for low, high in policy.allowed(job, units)):
                return None
            return Refusal(_nobody(job, policy, units), "slots", int(units.table.tasks[job]), 0)

        self.lanes = TaskQueues(order, (*LANE, *policy.looks_at), judge)
        self.lanes.add(queue, queue.jobs.tolist(), snapshot)
        runs = [(leaf, run) for leaf in np.flatnonzero(alive).tolist() if (run := units.run_on(leaf)) is not None]
        self._leaf = {run.id: leaf for leaf, run in runs}
        self._moving = policy.queues_tasks and any(self._moves(run) for _, run in runs)  # whether expected ends may move
        self._planned: list[tuple[int, tuple[int, ...]]] = []  # jobs and tasks that the last plan starts
        self._last_in_line: TaskQueueTurn | None = None  # the latest turn of all tasks that were ever in line

    def follow(self, queue: Queue, snapshot: Snapshot, changes: Changes) -> list[tuple[Task, int]] | None:
        """Bring everything up to date; returns the tasks that were in line at units that are free now.

        None where something went differently from what was expected: everything must be read again.
        """
        if changes.requeued or changes.capacity or self._planned != [(s.job, s.tasks) for s, _ in changes.started]:
            return None
        units, lines = self.units, self.policy.queues_tasks
        units.snapshot = snapshot
        over = frozenset(changes.ended)
        for start, number in changes.started:
            leaf = self._leaf[number] = units.layout.leaf[start.placement.owners()[0]]
            if lines and number not in over:
                run = snapshot.run(number)
                if run.expected_end != units.ends[leaf]:
                    return None
                self._moving = self._moving or self._moves(run)
        if self._moving:
            return None
        free = [self._leaf.pop(number) for number in changes.ended if number in self._leaf]
        if lines and any(units.ends[leaf] != snapshot.now for leaf in free):
            return None
        starts = [entry for leaf in free if (entry := units.release(leaf)) is not None]
        if lines and units.ends.least <= snapshot.now:
            return None  # one takes longer than expected
        first = self.lanes.add(queue, changes.arrived, snapshot)
        if self._last_in_line is not None and first < self._last_in_line:
            return None  # it goes before one that stands in line
        return starts if len(self.lanes.waiting) == len(queue) else None

    def serve(self) -> list[tuple[Task, int]]:
        """Let the policy choose for the first task of each lane, as long as it does; returns which task starts where."""
        starts: list[tuple[Task, int]] = []
        policy, units = self.policy, self.units

        def take(turn: TaskQueueTurn, task: Task) -> bool:
            leaf = policy.choose(task, units) if policy.queues_tasks or len(units.idle) else WAIT
            if leaf < 0:
                return False
            response = units.response(task.job, leaf) if policy.queues_tasks else 0
            if leaf in units.idle:
                units.occupy(leaf, response)
                starts.append((task, leaf))
            else:
                units.stand_in_line(leaf, task, response)
                self._last_in_line = turn  # the latest so far: after an earlier one everything is read again
            return True

        self.lanes.serve(take)
        return starts

    def plan(self, starts: list[tuple[Task, int]]) -> list[Start]:
        """Starts of tasks on leaves, in the order of the queue, which count as carried out until told otherwise."""
        for task, _ in starts:
            self.lanes.started(task)
        units, key = self.units, self.units.table.order_key
        ordered = sorted(starts, key=lambda entry: (key(entry[0].job), entry[0].task))
        plan = [Start(task.job, (task.task,), units.placement(leaf, task.task)) for task, leaf in ordered]
        self._planned = [(start.job, start.tasks) for start in plan]
        return plan

    def _moves(self, run: Run) -> bool:
        """Whether the expected end of a run may move with its neighbours."""
        snapshot = self.units.snapshot
        return bool(snapshot.estimate.touches(run.placement, snapshot)) or snapshot.estimate.fetch(run, snapshot) is not None


def _nobody(job: int, policy: UnitPolicy, choices: Choices) -> str:
    """Say that no unit may run a job's tasks, and whether that is for the type which they prefer."""
    wanted = choices.able(job) and not policy.allowed(job, choices)
    prefers = f" that prefer unit type {choices.preferred(job)}" if wanted else ""
    return f"no unit may run tasks of type {choices.attribute('task_type', job, 0)}{prefers}"
