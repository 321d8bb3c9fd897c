"""Task dispatch: assigns each waiting task to a processing unit as soon as the policy finds one, independent of other tasks.

Source: VineSim, sections 4.5 and 5.1; specs of the accelerators, "Policies".
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass, field

import numpy as np

from poolwise.errors import InputError
from poolwise.interfaces import Dispatcher, PlacementPolicy, QueuePolicy, Scheduler
from poolwise.model import (
    Changes,
    Decisions,
    JobTable,
    Machine,
    Queue,
    Reason,
    Refusal,
    Reject,
    Run,
    Snapshot,
    Start,
    Wait,
    WaitCause,
)
from poolwise.policies.order.priorities import FCFS
from poolwise.policies.placement.units.layout import Choices, UnitLayout
from poolwise.policies.placement.units.policies import High
from poolwise.policies.placement.units.policy import WAIT, UnitPolicy
from poolwise.policies.placement.units.view import Task, Units
from poolwise.quantities import NEVER
from poolwise.registry import register
from poolwise.schedulers.fitting import NEVER_FITS
from poolwise.schedulers.task_queues import TaskQueues, TaskQueueTurn, lanes_of

LANE = ("task_type", "preferred_type")
"""Columns that define a FIFO: tasks with equal values wait behind each other."""


@register("schedulers", "dispatch")
@dataclass(frozen=True)
class Dispatch(Scheduler):
    """Serves one FIFO for each task type and preferred type, oldest head first; each task starts on its own.

    A task without an allowed idle unit blocks only the tasks behind it in its FIFO, which no idle unit may run either. Tasks
    that no unit may ever run are rejected.

    Parameters
    ----------
    placement
        Unit policy: flat, high, pref, closer_to_data, earliest_finish or delay.
    order
        Static queue order, such as `edf`, by which tasks wait and are served; by age if not given.
    """

    placement: PlacementPolicy = field(default_factory=High)
    order: QueuePolicy = field(default_factory=FCFS)

    def open(self, machine: Machine, seed: int) -> Dispatcher:
        """Start a run; raise InputError for an unsupported placement or order, and for a machine without units."""
        UnitLayout.of(machine)
        return DispatchDispatcher(self._policy(), self.order, seed)

    def check(self, machine: Machine, jobs: JobTable) -> None:
        """Raise InputError as `open` does, and for tasks that no unit may ever run."""
        policy, choices = self._policy(), Choices(UnitLayout.of(machine), jobs)
        for job in np.unique(lanes_of(jobs, LANE), return_index=True)[1].tolist():
            if not policy.allowed(job, choices):
                raise InputError(
                    _no_unit_may_run(job, policy, choices),
                    field="task_type",
                    remedy="deploy a unit of that type, give one an affinity, or choose another placement",
                )

    def _policy(self) -> UnitPolicy:
        """Return the placement with checked settings; raise InputError if it or the order is unsupported."""
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
    """State of a run. Everything except the settings is a cache, rebuilt from the queue and the snapshot when in doubt."""

    policy: UnitPolicy
    order: QueuePolicy
    seed: int
    _cache: _Cache | None = None

    def schedule(self, queue: Queue, snapshot: Snapshot, changes: Changes) -> Decisions:
        """Start the tasks queued at units that have become free, then serve the FIFOs."""
        starts = None if self._cache is None else self._cache.follow(queue, snapshot, changes)
        if starts is None or self._cache is None:
            self._cache, starts = _Cache(self.policy, self.order, self.seed, queue, snapshot), []
        hopeless = self._cache.lanes.hopeless
        rejected = [(job, hopeless[job]) for job in queue.jobs.tolist() if job in hopeless] if hopeless else []
        if rejected and not snapshot.may_grow:
            self._cache = None  # the loop runs another pass with the same changes
            return Decisions(tuple(Reject(job, f"{NEVER_FITS}: {refusal.reason}") for job, refusal in rejected))
        units = self._cache.units
        units.ask_at = NEVER
        started = self._cache.ordered(starts + self._cache.serve())
        waits = tuple(Wait(job, refusal) for job, refusal in rejected)
        reasons = self._reasons(changes.explain, queue, snapshot, started) if changes.explain else {}
        return Decisions((*waits, *started), units.ask_at if units.ask_at < NEVER else None, reasons)

    def _reasons(self, explain: Collection[int], queue: Queue, snapshot: Snapshot, started: list[Start]) -> dict[int, Reason]:
        """Return why jobs wait: after the starts, no idle unit may run their tasks, or the policy waits for a better unit."""
        assert self._cache is not None
        units, starts, reasons, ahead = self._cache.units, Counter[int](), dict[int, Reason](), 0
        for start in started:
            starts[start.job] += len(start.tasks)
        for job in queue.jobs[np.argsort(-self.order.priority(queue, snapshot), kind="stable")].tolist():
            left = len(queue.tasks(job)) - starts[job]
            if job in explain and left:
                idle = any(units.idle.count(low, high) for low, high in self.policy.allowed(job, units))
                if not idle:
                    short = Refusal("no unit that may run its tasks is idle", "slots", left, 0)
                    reasons[job] = Reason.of(WaitCause.SHORT, short.reason, short, ahead=ahead)
                elif self.policy.may_wait:
                    text = "units that may run its tasks are idle, but it waits for a better one"
                    reasons[job] = Reason(WaitCause.POSTPONED, text, ahead=ahead)
            ahead += left > 0
        return reasons


class _Cache:
    """State derived from a queue and a snapshot: units, waiting tasks, and the units of runs.

    Attributes
    ----------
    units : unit occupancy and expected ends
    lanes : FIFOs of waiting tasks
    """

    def __init__(self, policy: UnitPolicy, order: QueuePolicy, seed: int, queue: Queue, snapshot: Snapshot) -> None:
        self.policy = policy
        self.units = units = Units(snapshot, seed)
        alive = snapshot.capacity[units.layout.owner, units.layout.column] > 0

        def judge(job: int) -> Refusal | None:
            if any(bool(alive[low:high].any()) for low, high in policy.allowed(job, units)):
                return None
            return Refusal(_no_unit_may_run(job, policy, units), "slots", int(units.table.tasks[job]), 0)

        self.lanes = TaskQueues(order, (*LANE, *policy.looks_at), judge)
        self.lanes.add(queue, queue.jobs.tolist(), snapshot)
        runs = [(leaf, run) for leaf in np.flatnonzero(alive).tolist() if (run := units.run_on(leaf)) is not None]
        self._leaf = {run.id: leaf for leaf, run in runs}
        self._moving = policy.queues_tasks and any(self._moves(run) for _, run in runs)  # True if expected ends may change
        self._planned: list[tuple[int, tuple[int, ...]]] = []  # jobs and tasks that the last pass starts
        self._last_in_line: TaskQueueTurn | None = None  # latest turn of all tasks that were ever in line

    def follow(self, queue: Queue, snapshot: Snapshot, changes: Changes) -> list[tuple[Task, int]] | None:
        """Apply the changes; return the tasks that were queued at units that are now free.

        Returns None if the run deviates from the expected state, which must then be rebuilt.
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
            return None  # a run takes longer than expected
        first = self.lanes.add(queue, changes.arrived, snapshot)
        if self._last_in_line is not None and first < self._last_in_line:
            return None  # a new task precedes one that is in line
        return starts if len(self.lanes.waiting) == len(queue) else None

    def serve(self) -> list[tuple[Task, int]]:
        """Let the policy choose a unit for the head of each FIFO until it declines; return the (task, leaf) starts."""
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
                self._last_in_line = turn  # the latest so far; an earlier arrival forces a rebuild
            return True

        self.lanes.serve(take)
        return starts

    def ordered(self, starts: list[tuple[Task, int]]) -> list[Start]:
        """Return the starts of tasks on leaves in queue order; they count as applied unless the next changes differ."""
        for task, _ in starts:
            self.lanes.started(task)
        units, key = self.units, self.units.table.order_key
        ordered = sorted(starts, key=lambda entry: (key(entry[0].job), entry[0].task))
        decided = [Start(task.job, (task.task,), units.placement(leaf, task.task)) for task, leaf in ordered]
        self._planned = [(start.job, start.tasks) for start in decided]
        return decided

    def _moves(self, run: Run) -> bool:
        """Return whether the expected end of a run depends on its neighbors."""
        snapshot = self.units.snapshot
        return bool(snapshot.estimate.touches(run.placement, snapshot)) or snapshot.estimate.fetch(run, snapshot) is not None


def _no_unit_may_run(job: int, policy: UnitPolicy, choices: Choices) -> str:
    """Return the reason why no unit may run a job's tasks, with the preferred type if that is the cause."""
    wanted = choices.able(job) and not policy.allowed(job, choices)
    prefers = f" that prefer unit type {choices.preferred(job)}" if wanted else ""
    return f"no unit may run tasks of type {choices.attribute('task_type', job, 0)}{prefers}"
