"""Interface of batch placement methods, their lookup by name, and infeasibility messages."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from poolwise import registry
from poolwise.arrays import BoolArray
from poolwise.batch.problem.assignment import Solution
from poolwise.batch.problem.definition import Problem


@dataclass(frozen=True)
class Limit:
    """Limit on the time of a method, on its work, or on both. The time starts when the object is created.

    A result within a time limit may depend on the speed of the machine. A result within a limit of work (`Limit.by_work`)
    depends only on the inputs.

    Parameters
    ----------
    seconds
        Time limit.
    clock
        Clock that measures the time: wall time, or `time.process_time` for benchmarks that share a core with other processes.
    work
        Limit of work; one unit takes about a second on one core. `place` converts it to moves, operations and nodes
        (`batch.search.effort`), and `opt` to nodes of branch and bound. The other methods always do the same work.
    """

    seconds: float = 1.0
    clock: Callable[[], float] = time.perf_counter
    work: float | None = None
    begun: float = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "begun", self.clock())

    @classmethod
    def by_work(cls, work: float) -> Limit:
        """Return a limit on the work only."""
        return cls(math.inf, work=work)

    def __str__(self) -> str:
        return f"{self.seconds:g} s" if self.work is None else f"{self.work:g} units of work"

    @property
    def is_timed(self) -> bool:
        """True if there is a time limit; without one no method reads the clock."""
        return math.isfinite(self.seconds)

    @property
    def spent(self) -> float:
        """Seconds since the start."""
        return self.clock() - self.begun

    @property
    def left(self) -> float:
        """Seconds left, at least 0."""
        return max(0.0, self.seconds - self.spent)


class Method(Protocol):
    """A batch placement method; a frozen configuration."""

    def solve(self, problem: Problem, limit: Limit) -> Solution:
        """Place the batch. If some workloads do not fit, those of lowest priority are dropped, and the constraint is named."""
        ...


def find_method(name: str, **settings: Any) -> Method:
    """Return a method by name, or from "FILE.py:NAME". Raises UnknownNameError or InputError."""
    method: Method = registry.make("methods", name, **settings)
    return method


def unplaced(problem: Problem, dropped: Sequence[int]) -> str:
    """Return the constraint that the first dropped workload violates; empty if none was dropped."""
    if not dropped:
        return ""
    w = int(dropped[0])
    name = problem.batch.name[w]
    return impossible(problem, w) or f"no module has enough free cores (4c) and local memory (4d) left for workload {name}"


def possible(problem: Problem) -> BoolArray:
    """Return whether each workload could run alone on an empty machine, (n,)."""
    most = np.where(problem.allowed, problem.groups.memory, -np.inf).max(axis=1, initial=-np.inf)
    fits: BoolArray = problem.batch.memory - most <= problem.remote
    return fits


def impossible(problem: Problem, w: int) -> str:
    """Return the constraint that keeps a workload from running even alone on an empty machine; empty if it can run."""
    batch, groups = problem.batch, problem.groups
    if bool(problem.allowed[w].any()):
        outside = float((batch.memory[w] - groups.memory[problem.allowed[w]]).min())
        if outside <= problem.remote:
            return ""
        return (
            f"workload {batch.name[w]} needs {outside:.6g} MiB of remote memory, but only {problem.remote:.6g} MiB exist (4g)"
        )
    name = batch.name[w]
    wide = groups.free_cores >= batch.cores[w]
    if not wide.any():
        most = int(groups.free_cores.max()) if len(groups) else 0
        return f"workload {name} requests {int(batch.cores[w])} cores (4c), but no module has more than {most} free"
    fast = wide & ~np.isnan(problem.least[w])
    if not fast.any():
        return f"no module with enough cores is fast enough to keep the slowdown of workload {name} within its tolerance (4j)"
    needs = (problem.least[w] * batch.memory[w])[fast]
    return (
        f"workload {name} needs {float(needs.min()):.6g} MiB of local memory to keep its slowdown within its tolerance "
        f"(4d, 4j), but no module that could run it has that much free"
    )
