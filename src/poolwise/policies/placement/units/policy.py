"""What a policy for units decides: which unit a task goes to. The rest follows, a job at a time or task by task."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar, Literal, get_args

from poolwise.errors import UnknownNameError
from poolwise.interfaces import PlacementPolicy
from poolwise.model import Job, JobTable, Machine, Placement, Refusal, Snapshot
from poolwise.policies.placement.units.choices import Choices
from poolwise.policies.placement.units.layout import Tier
from poolwise.policies.placement.units.view import Task, Units

Tie = Literal["order", "random"]
WAIT = -1


class UnitPolicy(PlacementPolicy, ABC):
    """Places tasks on processing units, one task a unit.

    The scheduler `dispatch` asks `choose` task by task; under any other scheduler `place` puts all tasks of a job on idle
    units at once, or none.
    """

    may_wait: ClassVar[bool] = True
    """Whether a task may be left waiting while a unit is idle that it might have (`allowed`)."""
    looks_at: ClassVar[tuple[str, ...]] = ()
    """Columns besides the task type and the preferred type that decide whether a task waits while a unit is idle that could
    run it: tasks that differ in them do not wait for each other."""
    lines: ClassVar[bool] = False
    """Whether tasks may stand in line at busy units; the choices must then stay right while time passes as expected."""

    @abstractmethod
    def choose(self, task: Task, units: Units) -> int:
        """Leaf of the unit that a task goes to; one that is busy means standing in line there, `WAIT` means to wait.

        A policy that waits while an allowed unit is idle says when to ask again (`units.ask_at`) if no event does.
        """

    def check_settings(self) -> None:
        """Raise InputError for settings that mean nothing; callers do so before they ask the policy."""
        return

    def check(self, machine: Machine, jobs: JobTable) -> None:
        """Check the settings."""
        self.check_settings()

    def allowed(self, job: int, choices: Choices) -> Tier:
        """All units that a job's tasks may ever take, busy or not."""
        return tuple(choices.layout.of_type[kind] for kind in choices.able(job))

    def place(self, job: Job, snapshot: Snapshot) -> Placement | Refusal:
        """Find an idle unit for each task; raises InputError on a machine without units."""
        self.check_settings()
        units = Units(snapshot)
        rows: list[tuple[int, int, int, int]] = []
        if not units.able(job.index):
            return Refusal("no unit can run a task of this type", "slots", job.tasks, 0)
        for number in job.numbers:
            task = Task(job.index, number)
            leaf = self.choose(task, units)
            if leaf < 0 or leaf not in units.idle:
                return Refusal("no idle unit to its liking", "slots", job.tasks, len(units.idle) + len(rows))
            units.occupy(leaf)
            rows.append((number, int(units.layout.owner[leaf]), units.layout.column, 1))
        return Placement.of(rows)


@dataclass(frozen=True)
class TieredPolicy(UnitPolicy):
    """Takes a unit of the first tier in which one is idle.

    Parameters
    ----------
    tie
        Within a tier: "order" takes the first by (x, y), then in the order of the deployment; "random" any.
    """

    tie: Tie = "order"

    may_wait: ClassVar[bool] = False
    key: ClassVar[tuple[str, ...]] = ("task_type",)
    """Columns on which the tiers depend."""

    def check_settings(self) -> None:
        """Refuse a tie rule that is not known."""
        if self.tie not in get_args(Tie):
            raise UnknownNameError.of("tie rule", self.tie, get_args(Tie), field="tie")

    @abstractmethod
    def tiers(self, job: int, choices: Choices) -> tuple[Tier, ...]:
        """Units that a job's tasks may take, best first; all that ever come into question."""

    def allowed(self, job: int, choices: Choices) -> Tier:
        """The units of all tiers."""
        return tuple(part for tier in choices.tiers(job, self.key, self.tiers) for part in tier)

    def choose(self, task: Task, units: Units) -> int:
        """Find the first tier with an idle unit; `WAIT` if none is idle."""
        for tier in units.tiers(task.job, self.key, self.tiers):
            leaf = units.first(tier) if self.tie == "order" else units.random(tier, units.draw(task))
            if leaf >= 0:
                return leaf
        return WAIT
