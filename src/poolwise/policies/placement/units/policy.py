"""Base classes of unit policies, which choose a processing unit for each task."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar, Literal, get_args

from poolwise.errors import UnknownNameError
from poolwise.interfaces import PlacementPolicy
from poolwise.model import Job, JobTable, Machine, Placement, Refusal, Snapshot
from poolwise.policies.placement.units.layout import Choices, Tier
from poolwise.policies.placement.units.view import Task, Units

Tie = Literal["order", "random"]
WAIT = -1


class UnitPolicy(PlacementPolicy, ABC):
    """Place tasks on processing units, one task per unit.

    The scheduler `dispatch` calls `choose` for each task. Under any other scheduler, `place` puts all tasks of a job on idle
    units at once, or none.
    """

    may_wait: ClassVar[bool] = True
    """Whether a task may wait while a unit that it is allowed to use (`allowed`) is idle."""
    looks_at: ClassVar[tuple[str, ...]] = ()
    """Columns, in addition to the task type and the preferred type, that decide whether a task waits while a suitable unit is
    idle. Tasks with different values in these columns do not wait for each other."""
    queues_tasks: ClassVar[bool] = False
    """Whether tasks may queue at busy units. Choices must then remain valid while time passes as expected."""

    @abstractmethod
    def choose(self, task: Task, units: Units) -> int:
        """Return the leaf of the chosen unit, which is idle or at which the task queues, or `WAIT`.

        A policy that waits while an allowed unit is idle sets `units.ask_at` to be called again without an event.
        """

    def check_settings(self) -> None:
        """Raise InputError for invalid settings; callers do so before they use the policy."""
        return

    def check(self, machine: Machine, jobs: JobTable) -> None:
        """Check the settings."""
        self.check_settings()

    def allowed(self, job: int, choices: Choices) -> Tier:
        """Return all units that a job's tasks may ever use, busy or not."""
        return tuple(choices.layout.of_type[kind] for kind in choices.able(job))

    def place(self, job: Job, snapshot: Snapshot) -> Placement | Refusal:
        """Find an idle unit for each task. Raises InputError on a machine without units."""
        self.check_settings()
        units = Units(snapshot)
        rows: list[tuple[int, int, int, int]] = []
        if not units.able(job.index):
            return Refusal("no unit can run a task of this type", "slots", job.tasks, 0)
        for number in job.numbers:
            task = Task(job.index, number)
            leaf = self.choose(task, units)
            if leaf < 0 or leaf not in units.idle:
                return Refusal("no idle unit that the policy accepts", "slots", job.tasks, len(units.idle) + len(rows))
            units.occupy(leaf)
            rows.append((number, int(units.layout.owner[leaf]), units.layout.column, 1))
        return Placement.of(rows)


@dataclass(frozen=True)
class TieredPolicy(UnitPolicy):
    """Choose a unit of the first tier that has an idle one.

    Parameters
    ----------
    tie
        Rule within a tier: "order" takes the first by (x, y), then by the order of the deployment; "random" takes any.
    """

    tie: Tie = "order"

    may_wait: ClassVar[bool] = False
    key: ClassVar[tuple[str, ...]] = ("task_type",)
    """Columns that determine the tiers."""

    def check_settings(self) -> None:
        """Raise UnknownNameError for an unknown tie rule."""
        if self.tie not in get_args(Tie):
            raise UnknownNameError.of("tie rule", self.tie, get_args(Tie), field="tie")

    @abstractmethod
    def tiers(self, job: int, choices: Choices) -> tuple[Tier, ...]:
        """Return the units that a job's tasks may use, best tier first; units in no tier are never used."""

    def allowed(self, job: int, choices: Choices) -> Tier:
        """Return the units of all tiers."""
        return tuple(part for tier in choices.tiers(job, self.key, self.tiers) for part in tier)

    def choose(self, task: Task, units: Units) -> int:
        """Choose a unit of the first tier with an idle one; return `WAIT` if none is idle."""
        for tier in units.tiers(task.job, self.key, self.tiers):
            leaf = units.first(tier) if self.tie == "order" else units.random(tier, units.draw(task))
            if leaf >= 0:
                return leaf
        return WAIT
