"""What every way of placing a batch has in common, and how they are found by name."""

from __future__ import annotations

import importlib
import importlib.util
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
    """How long a method may take.

    Parameters
    ----------
    seconds
        From now on.
    clock
        The clock that counts them: the wall clock, or `time.process_time` where a benchmark shares its core with others.
    """

    seconds: float = 1.0
    clock: Callable[[], float] = time.perf_counter
    begun: float = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "begun", self.clock())

    @property
    def spent(self) -> float:
        """Seconds since the beginning."""
        return self.clock() - self.begun

    @property
    def left(self) -> float:
        """Seconds left, at least 0."""
        return max(0.0, self.seconds - self.spent)


class Method(Protocol):
    """A way of placing a batch; a frozen configuration."""

    def solve(self, problem: Problem, limit: Limit) -> Solution:
        """Place the batch. What cannot be placed is dropped, lowest priority first, and the constraint named."""
        ...


def find_method(name: str, **settings: Any) -> Method:
    """Look up a method by name, or load "FILE.py:NAME"; raises UnknownNameError or InputError.

    A shipped method is in the file of its name, and only that file is imported: some bring a solver, some compile kernels.
    """
    own = f"poolwise.batch.methods.{name.replace('-', '_')}"
    if name.isprintable() and ":" not in name and "." not in name and importlib.util.find_spec(own):
        importlib.import_module(own)
    method: Method = registry.make("methods", name, **settings)
    return method


def unplaced(problem: Problem, dropped: Sequence[int]) -> str:
    """Name the constraint that a dropped workload met, from the first of them; empty where none was dropped."""
    if not dropped:
        return ""
    w = int(dropped[0])
    name = problem.batch.name[w]
    return impossible(problem, w) or f"no module has cores (4c) and local memory (4d) left for workload {name}"


def possible(problem: Problem) -> BoolArray:
    """(n,) whether each workload could run if it were alone."""
    most = np.where(problem.allowed, problem.groups.memory, -np.inf).max(axis=1, initial=-np.inf)
    fits: BoolArray = problem.batch.memory - most <= problem.remote
    return fits


def impossible(problem: Problem, w: int) -> str:
    """Why a workload cannot run even alone on an empty machine, naming the constraint; empty if it can."""
    batch, groups = problem.batch, problem.groups
    if bool(problem.allowed[w].any()):
        outside = float((batch.memory[w] - groups.memory[problem.allowed[w]]).min())
        if outside <= problem.remote:
            return ""
        return f"workload {batch.name[w]} leaves {outside:.6g} MiB for remote memory, which has {problem.remote:.6g} (4g)"
    name = batch.name[w]
    wide = groups.free_cores >= batch.cores[w]
    if not wide.any():
        most = int(groups.free_cores.max()) if len(groups) else 0
        return f"workload {name} asks for {int(batch.cores[w])} cores (4c), no module has more than {most} free"
    fast = wide & ~np.isnan(problem.least[w])
    if not fast.any():
        return f"no module with enough cores is fast enough to keep the slowdown of workload {name} within its tolerance (4j)"
    needs = (problem.least[w] * batch.memory[w])[fast]
    return (
        f"workload {name} needs {float(needs.min()):.6g} MiB of local memory to keep its slowdown within its tolerance "
        f"(4d, 4j), no module that could run it has that much free"
    )
