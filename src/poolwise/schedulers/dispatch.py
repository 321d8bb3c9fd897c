"""Task dispatch: each waiting task goes to a processing unit as soon as its policy finds one, whatever waits before it.

Source: VineSim, sections 4.5 and 5.1; specs of the accelerators, "Policies".
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from poolwise.arrays import IntArray
from poolwise.errors import InputError
from poolwise.interfaces import Dispatcher, PlacementPolicy, QueuePolicy, Scheduler
from poolwise.model import Changes, Machine, Plan, Queue, Snapshot, Start, Workload
from poolwise.performance.fetching import COMPUTE, FETCH, fetching, stage
from poolwise.policies.order.priorities import FCFS
from poolwise.policies.placement.units.choices import Choices
from poolwise.policies.placement.units.high import High
from poolwise.policies.placement.units.layout import UnitLayout
from poolwise.policies.placement.units.policy import WAIT, TieredPolicy, UnitPolicy
from poolwise.policies.placement.units.view import Task, Units
from poolwise.registry import register
from poolwise.schedulers.lanes import Lanes, lanes_of, ranks_of
from poolwise.units import NEVER

LANE = ("task_type", "preferred_type")
"""Tasks wait behind those that are alike in these columns."""


@register("schedulers", "dispatch")
@dataclass(frozen=True)
class Dispatch(Scheduler):
    """One FIFO for each task type and preferred type; heads are served by age, each task a start of its own.

    A task that finds no allowed idle unit blocks only those behind it in its FIFO, which could take none either.

    Parameters
    ----------
    placement
        A policy for units: flat, high, pref, closer_to_data, earliest_finish, delay.
    order
        Any static queue order, such as `edf`: tasks wait and are served in it instead of by age.
    """

    placement: PlacementPolicy = field(default_factory=High)
    order: QueuePolicy = field(default_factory=FCFS)

    def open(self, machine: Machine, workload: Workload, seed: int) -> Dispatcher:
        """Begin a run. Raises InputError for another kind of placement, and for tasks that no unit may ever run."""
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
        self.placement.check()
        _check_possible(self.placement, Choices(UnitLayout.of(machine), workload))
        lane, rank = lanes_of(workload, (*LANE, *self.placement.looks_at)), ranks_of(self.order, machine, workload)
        return DispatchDispatcher(self.placement, lane, rank, seed)


@dataclass
class DispatchDispatcher(Dispatcher):
    """A run. Everything besides the settings is a cache that is rebuilt from the queue and the snapshot when in doubt."""

    policy: UnitPolicy
    lane: IntArray
    rank: IntArray
    seed: int
    _units: Units | None = None
    _lanes: Lanes | None = None
    _leaf: dict[int, int] = field(default_factory=dict)  # run -> leaf it is on
    _started: list[tuple[Task, int]] = field(default_factory=list)  # by the last plan
    _contended: bool = False  # whether expected ends move with the neighbours

    @cached_property
    def _overtaken(self) -> bool:
        """Whether later arrivals may go before tasks that stand in line."""
        return self.policy.lines and bool((np.diff(self.rank) < 0).any())

    def schedule(self, queue: Queue, snapshot: Snapshot, changes: Changes) -> Plan:
        """Start what was in line at units that are free now, then serve the lanes."""
        if changes.requeued and "stage" in snapshot.table.attributes:
            raise InputError(
                "a task whose data are fetched over shared links was lost: it cannot fetch them again",
                field="stage",
                remedy="run without loss of capacity, or with uncontended transfers",
            )
        starts = self._follow(queue, snapshot, changes)
        if starts is None:
            self._rebuild(queue, snapshot)
            starts = []
        assert self._units is not None and self._lanes is not None
        units = self._units
        units.ask_at = NEVER
        starts += self._serve(units, self._lanes)
        self._started = sorted(starts)
        plan = tuple(start for task, leaf in self._started for start in _starts(task, leaf, units))
        if plan and self.policy.lines and not self._contended:
            self._contended = bool(snapshot.estimate.touches(plan[0].placement, snapshot))
        return Plan(plan, units.ask_at if units.ask_at < NEVER else None)

    def _serve(self, units: Units, lanes: Lanes) -> list[tuple[Task, int]]:
        """Let the policy choose for the first task of each lane, as long as it does; what starts where."""
        starts: list[tuple[Task, int]] = []
        policy = self.policy

        def take(task: Task) -> bool:
            leaf = policy.choose(task, units) if policy.lines or len(units.idle) else WAIT
            if leaf < 0:
                return False
            response = units.response(task.job, leaf) if policy.lines else 0
            if leaf in units.idle:
                units.take(leaf, response)
                starts.append((task, leaf))
            else:
                units.stand_in_line(leaf, task, response)
            return True

        lanes.serve(take)
        return starts

    def _rebuild(self, queue: Queue, snapshot: Snapshot) -> None:
        """Read everything anew."""
        self._units, self._lanes = Units(snapshot, self.seed), Lanes(self.lane, self.rank)
        self._lanes.add(queue, _tasks(queue.jobs.tolist(), snapshot))
        on = ((leaf, self._units.run_on(leaf)) for leaf in range(len(self._units.layout.owner)))
        self._leaf = {run.id: leaf for leaf, run in on if run is not None}

    def _follow(self, queue: Queue, snapshot: Snapshot, changes: Changes) -> list[tuple[Task, int]] | None:
        """Bring the caches up to date; returns the tasks that were in line at units that are free now.

        None where something went otherwise than expected: everything must be read anew.
        """
        if self._units is None or self._lanes is None or changes.requeued or changes.capacity or self._contended:
            return None
        if self._overtaken and changes.arrived:
            return None
        units = self._units
        units.snapshot = snapshot
        free: list[int] = []
        for task, leaf in self._started:
            run = units.run_on(leaf)
            if run is None:
                if task.job in queue and task.task in queue.tasks(task.job):
                    return None  # it was refused
                free.append(leaf)
            elif (run.job, run.tasks) != (task.job, (task.task,)):
                return None  # so was this, and another is there
            else:
                if self.policy.lines and run.expected_end != units.ends[leaf]:
                    return None
                self._leaf[run.id] = leaf
        free += [self._leaf.pop(run) for run in changes.ended if run in self._leaf]
        if self.policy.lines and any(units.ends[leaf] != snapshot.now for leaf in free):
            return None
        starts = [start for leaf in free if (start := units.give_back(leaf)) is not None]
        if self.policy.lines and units.ends.least <= snapshot.now:
            return None  # one takes longer than expected
        self._lanes.add(queue, _tasks(changes.arrived, snapshot))
        return starts


def _tasks(jobs: Iterable[int], snapshot: Snapshot) -> Iterator[int]:
    """Rows that wait for units: not those that fetch data for others."""
    return (job for job in jobs if stage(job, snapshot) != FETCH)


def _starts(task: Task, leaf: int, units: Units) -> Iterator[Start]:
    """Start a task, and the fetching of its data where that is a run of its own."""
    yield Start(task.job, (task.task,), units.placement(leaf, task.task))
    if stage(task.job, units.snapshot) == COMPUTE:
        owner = int(units.layout.owner[leaf])
        yield Start(task.job + 1, (task.task,), fetching(task.job, task.task, owner, units.snapshot))


def _check_possible(policy: UnitPolicy, choices: Choices) -> None:
    """Raise InputError if there are tasks that no unit can run, or none that the policy allows."""
    workload = choices.table
    stages = workload.attributes.get("stage")
    for job in np.unique(lanes_of(workload, LANE), return_index=True)[1].tolist():
        if stages is not None and stages[job] == FETCH:
            continue
        able = choices.able(job)
        if able and (not isinstance(policy, TieredPolicy) or any(choices.tiers(policy, job))):
            continue
        prefers = f" that prefer unit type {choices.preferred(job)}" if able else ""
        raise InputError(
            f"no unit may run tasks of type {choices.attribute('task_type', job, 0)}{prefers}",
            field="task_type",
            remedy="deploy a unit of that type, give one an affinity, or choose another placement",
        )
