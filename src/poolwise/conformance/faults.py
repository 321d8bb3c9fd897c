"""Faults of the fake cluster: how often they occur, and the events that cause them."""

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
    """Rates of faults: each number is a probability unless stated otherwise; by default none occurs.

    Attributes
    ----------
    late : starts that take up to `late_s` seconds to be bound
    conflicts : starts that are refused at once, because another client was faster
    refused : starts that are refused late, after some of their tasks were bound
    twice : instants at which an earlier event is repeated
    withdrawn : jobs that their users cancel while they wait
    unknown : jobs without a requested time
    leaving : number of times that a part of the machine leaves, to come back later as new owners
    draining : number of times that a part of the machine is drained for a while; its runs continue
    renumbered : number of times that finished jobs are removed from the job table
    shuffled : whether arrivals of one instant are reported in another order than that of their ids
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
        """Return frequent faults of every kind."""
        return cls(0.5, 120.0, 0.1, 0.1, 0.3, 0.05, 0.1, 3, 3, 3, True)


@dataclass(frozen=True, slots=True)
class PartLeaves:
    """A part of the machine leaves."""

    draw: float


@dataclass(frozen=True, slots=True)
class PartReturns:
    """The part that left comes back, as new owners."""

    like: tuple[int, ...]
    capacity: IntArray


@dataclass(frozen=True, slots=True)
class PartDrains:
    """A part of the machine is drained: its runs continue, and then hold more than its capacity."""

    draw: float


@dataclass(frozen=True, slots=True)
class PartResumes:
    """The drained part accepts jobs again."""

    owners: tuple[int, ...]
    capacity: IntArray


@dataclass(frozen=True, slots=True)
class TableShrinks:
    """Finished jobs are removed from the job table."""


@dataclass(frozen=True, slots=True)
class StartFails:
    """A start fails after some of its tasks were bound."""

    run: int


@dataclass(frozen=True, slots=True)
class StartIsReal:
    """A start is bound."""

    run: int


@dataclass(frozen=True, slots=True)
class PassIsDue:
    """The cluster requests another scheduling pass."""


class LateStarts(PerformanceModel):
    """A performance model with the time to bind a start added to the setup."""

    def __init__(self, model: PerformanceModel) -> None:
        self.model = model
        self.late: dict[int, int] = {}  # run -> ns

    def setup(self, run: Run, view: Snapshot) -> int:
        """Return ns until the start is bound, plus the setup of the model."""
        return self.late.get(run.id, 0) + self.model.setup(run, view)

    def fetch(self, run: Run, view: Snapshot) -> Fetch | None:
        """Return the data of the model."""
        return self.model.fetch(run, view)

    def fetch_slowdown(self, run: Run, view: Snapshot) -> float:
        """Return the slowdown of the model."""
        return self.model.fetch_slowdown(run, view)

    def slowdown(self, run: Run, view: Snapshot) -> float:
        """Return the slowdown of the model."""
        return self.model.slowdown(run, view)

    def touches(self, placement: Placement, view: Snapshot) -> tuple[int, ...]:
        """Return the owners of the model."""
        return self.model.touches(placement, view)


def arrival_order(case: Case, faults: Fault, seed: int) -> IntArray:
    """Return (n_job,) rows of the workload in the order in which their arrivals are reported."""
    n = len(case.workload)
    if not faults.shuffled:
        return np.arange(n)
    return np.lexsort((uniform(seed, "told", np.arange(n)), case.workload.submit))


def renumbered_event(event: Any, number: dict[int, int]) -> Any:
    """Return an event with the new number of its job, None if the job has ended."""
    job = getattr(event, "job", None)
    if job is None:
        return event
    return replace(event, job=number[job]) if job in number else None
