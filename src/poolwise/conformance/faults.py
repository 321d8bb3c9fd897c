"""What goes wrong on a cluster of the tests, how often, and the events that bring it about."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from poolwise.arrays import IntArray
from poolwise.conformance.cases import Case
from poolwise.interfaces import PerformanceModel
from poolwise.model import Fetch, Placement, Run, Snapshot
from poolwise.random import uniform


@dataclass(frozen=True)
class Fault:
    """How often things go wrong, each a probability unless stated otherwise; nothing goes wrong by default.

    Attributes
    ----------
    late : starts that take time to become real, up to `late_s` seconds
    conflicts : starts that are refused at once, since somebody else was faster
    refused : starts that are refused late, after some of their tasks were bound
    twice : instants at which an earlier event is reported again
    withdrawn : jobs that their users take back while they wait
    unknown : jobs of which nobody says how long they take
    leaving : number of times that a part of the machine leaves, to come back later as new owners
    draining : number of times that a part of the machine takes no more work for a while, and its runs go on
    renumbered : number of times that finished jobs are removed from the job table
    shuffled : whether arrivals of one instant are told in another order than that of their ids
    """

    late: float = 0.0
    late_s: float = 120.0
    conflicts: float = 0.0
    refused: float = 0.0
    twice: float = 0.0
    withdrawn: float = 0.0
    unknown: float = 0.0
    leaving: int = 0
    draining: int = 0
    renumbered: int = 0
    shuffled: bool = False

    @classmethod
    def of_all_kinds(cls) -> Fault:
        """Return trouble of every kind, and plenty of it."""
        return cls(0.5, 120.0, 0.1, 0.1, 0.3, 0.05, 0.1, 3, 3, 3, True)


@dataclass(frozen=True, slots=True)
class PartLeaves:
    """A part of the machine leaves."""

    draw: float


@dataclass(frozen=True, slots=True)
class PartReturns:
    """What left comes back, as new owners."""

    like: tuple[int, ...]
    capacity: IntArray


@dataclass(frozen=True, slots=True)
class PartDrains:
    """A part of the machine takes no more work; its runs go on, and hold more than there is by then."""

    draw: float


@dataclass(frozen=True, slots=True)
class PartResumes:
    """What was drained takes work again."""

    owners: tuple[int, ...]
    capacity: IntArray


@dataclass(frozen=True, slots=True)
class TableShrinks:
    """Finished jobs are removed from the job table."""


@dataclass(frozen=True, slots=True)
class StartFails:
    """A start turns out to be impossible, after some of its tasks were bound."""

    run: int


@dataclass(frozen=True, slots=True)
class StartIsReal:
    """A start has become real."""

    run: int


@dataclass(frozen=True, slots=True)
class PassIsDue:
    """The cluster asks for another pass."""


class LateStarts(PerformanceModel):
    """A model of how long runs take, with the time that their starts need to become real before it."""

    def __init__(self, model: PerformanceModel) -> None:
        self.model = model
        self.late: dict[int, int] = {}  # run -> ns

    def setup(self, run: Run, view: Snapshot) -> int:
        """Ns until it is real, and then what the model says."""
        return self.late.get(run.id, 0) + self.model.setup(run, view)

    def fetch(self, run: Run, view: Snapshot) -> Fetch | None:
        """What the model says."""
        return self.model.fetch(run, view)

    def fetch_slowdown(self, run: Run, view: Snapshot) -> float:
        """What the model says."""
        return self.model.fetch_slowdown(run, view)

    def slowdown(self, run: Run, view: Snapshot) -> float:
        """What the model says."""
        return self.model.slowdown(run, view)

    def touches(self, placement: Placement, view: Snapshot) -> tuple[int, ...]:
        """What the model says."""
        return self.model.touches(placement, view)


def told_order(case: Case, trouble: Fault, seed: int) -> IntArray:
    """(n_job,) rows of the workload in the order in which their arrivals are told."""
    n = len(case.workload)
    if not trouble.shuffled:
        return np.arange(n)
    return np.lexsort((uniform(seed, "told", np.arange(n)), case.workload.submit))


def renumbered_event(event: Any, number: dict[int, int]) -> Any:
    """Return an event with the new number of its job, None where the job is over."""
    job = getattr(event, "job", None)
    if job is None:
        return event
    return replace(event, job=number[job]) if job in number else None
