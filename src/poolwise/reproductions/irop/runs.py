"""The runs behind the reproduction of IRoP: what one is, how it is measured, where it is kept."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from poolwise import catalog
from poolwise.batch.methods.heep import Heep
from poolwise.batch.methods.irop import Irop
from poolwise.batch.methods.method import Limit, Method, find_method
from poolwise.batch.methods.place import Place
from poolwise.batch.problem.assignment import Solution
from poolwise.batch.problem.check import check_assignment
from poolwise.batch.problem.definition import Problem, Theta
from poolwise.batch.search.costs import costs_of
from poolwise.batch.search.packing import BinPacking, assignment_of
from poolwise.errors import PolicyError, PoolwiseError
from poolwise.files.batch import read_batch
from poolwise.reproductions import cached_measurements
from poolwise.runner import Executor, Progress

HEEP_BY_MODULE = "heep, by module"
"""Name of HEEP with the other key."""
LARGEST_FIRST, FILLED_UP = "irop, largest first", "irop, filled up"
"""Names of IRoP that rounds large workloads first, and of IRoP whose modules then give away the local memory they have left."""
IGNORE_TOLERANCE = ("cfm", "first-fit")
"""Methods that know no accepted slowdown: breaking it is counted and is not an error."""


@dataclass(frozen=True)
class IropCase:
    """One placement: a method on a problem of the paper's distribution.

    Attributes
    ----------
    tolerance : Delta of all workloads, None for 5 to 25 %
    workloads, modules : size; a third of the modules of each type
    seconds : time limit
    """

    method: str
    theta: Theta
    eta: float
    tolerance: float | None
    seed: int
    workloads: int = 150
    modules: int = 1200
    seconds: float = 0.05

    def problem(self) -> Problem:
        """Draw the problem: smaller ones take the first workloads, and the first modules of each type."""
        file = catalog.find("batches", "batch-150x1200")
        whole = read_batch(file, seed=self.seed, eta=self.eta, theta=self.theta, tolerance=self.tolerance)
        if (self.workloads, self.modules) == (len(whole.batch), len(whole.modules)):
            return whole
        rows = [members[: self.modules // len(whole.groups)] for _, members in whole.groups.ids()]
        modules = whole.modules.select_rows(np.sort(np.concatenate(rows)))
        return replace(whole, batch=whole.batch.select_rows(np.arange(self.workloads)), modules=modules)

    def run(self) -> dict[str, Any]:
        """Place and check; raises PolicyError where a constraint is broken that the method knows."""
        problem = self.problem()
        begun = time.process_time()
        try:
            found = self._method().solve(problem, Limit(self.seconds))
        except PoolwiseError as error:
            return {"failed": str(error), "cpu_s": time.process_time() - begun}
        taken = time.process_time() - begun
        verdict = check_assignment(problem, found.assignment, partial=bool(found.dropped))
        known = {"4j"} if self.method in IGNORE_TOLERANCE else set()
        if set(verdict.count()) - known:
            raise PolicyError(f"{self}: {verdict.violations[0]}")
        return {
            **_used(problem, found),
            "theta": float(np.nansum(found.theta)),
            "completion": float(np.nanmean(found.completion)),
            "energy": found.energy,
            "objective": found.objective,
            "bound": found.bound if np.isfinite(found.bound) else None,
            "violations": verdict.count().get("4j", 0),
            "dropped": len(found.dropped),
            "status": found.status,
            "cpu_s": taken,
        }

    def _method(self) -> Method:
        own: dict[str, Method] = {
            HEEP_BY_MODULE: _HeepByModule(),
            LARGEST_FIRST: Irop(largest_first=True),
            FILLED_UP: _FilledUp(),
        }
        if self.method in own:
            return own[self.method]
        return Place(guard=self.seconds > 1) if self.method == "place" else find_method(self.method)


@dataclass(frozen=True)
class _HeepByModule(Method):
    """HEEP with its modules sorted by the energy of the whole module: the paper says "their energy efficiency", not of what."""

    def solve(self, problem: Problem, limit: Limit) -> Solution:
        """Place as HEEP does that takes a module's energy for that of a core and unit of frequency."""
        modules = problem.modules
        whole = (modules.static + modules.dynamic) * modules.cores * modules.frequency
        told = replace(problem, modules=replace(modules, static=whole, dynamic=np.zeros(len(whole))))
        found = Heep().solve(told, limit)
        return Solution(problem, found.assignment, dropped=found.dropped, unmet=found.unmet)


@dataclass(frozen=True)
class _FilledUp(Method):
    """IRoP; then the local memory that its modules have left goes to whoever gains most, which equation (6) forbids."""

    def solve(self, problem: Problem, limit: Limit) -> Solution:
        """Place as IRoP does, and share the memory of each module anew; raises PolicyError where IRoP drops a workload."""
        found = Irop().solve(problem, limit)
        if found.dropped:
            raise PolicyError("IRoP left workloads out: take a smaller batch or more modules")
        modules, slot = np.unique(found.assignment.module, return_inverse=True)
        kind = np.zeros(len(problem.batch), dtype=np.int64)
        kind[: len(modules)] = problem.groups.of_module[modules]
        packing = BinPacking(slot.astype(np.int64), kind, found.objective, 0)
        return Solution(problem, assignment_of(problem, costs_of(problem), packing))


def _used(problem: Problem, found: Solution) -> dict[str, float]:
    """Shares of the cores and of the local memory in use, of the modules that any workload is on."""
    placed = found.assignment.placed
    module = found.assignment.module[placed]
    on = np.unique(module)
    local = float((found.assignment.local[placed] * problem.batch.memory[placed]).sum())
    cores, memory = float(problem.modules.free_cores[on].sum()), float(problem.modules.memory[on].sum())
    return {"cores_used": float(problem.batch.cores[placed].sum()) / cores, "memory_used": local / memory}


def measure_placement(
    cases: Iterable[IropCase], folder: Path, executor: Executor, progress: Progress | None = None
) -> dict[IropCase, dict[str, Any]]:
    """Measure cases, each once, in parallel; what is kept in the folder is not run again."""
    return cached_measurements.measure_all(cases, IropCase.run, folder, executor, Place().prepare, progress)
