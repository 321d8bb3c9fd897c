"""Faults of the fake cluster: how often they occur, and what causes them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from poolwise.arrays import IntArray
from poolwise.conformance.cases import Case
from poolwise.model import Event, Run, Snapshot
from poolwise.performance.ideal import SimpleModel
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
    recycled : number of times that rows of jobs that are gone are given to later jobs
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
    recycled: int = 0
    shuffled: bool = False

    @classmethod
    def of_all_kinds(cls) -> Fault:
        """Return frequent faults of every kind."""
        return cls(0.5, 120.0, 0.1, 0.1, 0.3, 0.05, 0.1, 3, 3, 3, True)


@dataclass(frozen=True, slots=True)
class Due:
    """A fault at an instant: a method of the cluster that returns the events to report, and its arguments."""

    method: Callable[..., Iterable[Event]]
    arguments: tuple[Any, ...] = ()


class LateStarts(SimpleModel):
    """Time to bind a start, as a setup."""

    def __init__(self) -> None:
        self.late: dict[int, int] = {}  # run -> ns

    def setup(self, run: Run, view: Snapshot) -> int:
        """Return ns until the start is bound."""
        return self.late.get(run.id, 0)

    def slowdown(self, run: Run, view: Snapshot) -> float:
        """Return 0."""
        return 0.0


def arrival_order(case: Case, faults: Fault, seed: int) -> IntArray:
    """Return (n_job,) rows of the workload in the order in which their arrivals are reported."""
    n = len(case.workload)
    if not faults.shuffled:
        return np.arange(n)
    return np.lexsort((uniform(seed, "told", np.arange(n)), case.workload.submit))
