"""An answer: which module each workload runs on, how much of its memory is local there, and what that costs."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

import numpy as np

from poolwise.arrays import FloatArray, IntArray, frozen
from poolwise.batch.problem.definition import Problem

BoundOf = Literal["", "DWLP", "DWLP (linear program)", "F-DWLP", "F-DWLP (linear program)"]
AssignmentStatus = Literal["placed", "optimal", "limit"]


@dataclass(frozen=True, eq=False)
class Assignment:
    """Where the workloads of a batch run.

    Attributes
    ----------
    module : (n,) module of each workload, -1 where it was not placed
    local : (n,) x, share of its memory that is local
    """

    module: IntArray
    local: FloatArray

    def __post_init__(self) -> None:
        frozen(self.module)
        frozen(self.local)

    @property
    def placed(self) -> IntArray:
        """Rows of the workloads that were placed."""
        return np.flatnonzero(self.module >= 0)


@dataclass(frozen=True, eq=False)
class Solution:
    """An assignment of a problem and what is known about it.

    Attributes
    ----------
    problem, assignment : the question and the answer
    status : "placed" (a heuristic's answer), "optimal" (within the solver's tolerance), "limit" (best found in the time)
    bound : proven lower bound on the objective, NaN where none was asked for
    bound_of : the problem that the bound belongs to; a bound of F-DWLP says nothing about DWLP
    dropped : rows that could not be placed, in the order in which they were given up
    unmet : why they could not, empty where all were placed
    notes : sentences that a reader must know
    """

    problem: Problem
    assignment: Assignment
    status: AssignmentStatus = "placed"
    bound: float = float("nan")
    bound_of: BoundOf = ""
    dropped: tuple[int, ...] = ()
    unmet: str = ""
    notes: tuple[str, ...] = field(default=())

    @cached_property
    def theta(self) -> FloatArray:
        """(n,) slowdown theta of each workload, NaN where it was not placed."""
        problem, rows = self.problem, self.assignment.placed
        theta = np.full(len(problem.batch), np.nan)
        groups = problem.groups.of_module[self.assignment.module[rows]]
        theta[rows] = problem.slowdown(rows, groups, self.assignment.local[rows])
        return theta

    @cached_property
    def completion(self) -> FloatArray:
        """(n,) completion time (1 + P^m) phi / F over the one asked for, whatever theta the problem minimises."""
        problem, rows = self.problem, self.assignment.placed
        ratio = np.full(len(problem.batch), np.nan)
        groups = problem.groups.of_module[self.assignment.module[rows]]
        for row, group, local in zip(rows.tolist(), groups.tolist(), self.assignment.local[rows].tolist(), strict=True):
            ratio[row] = (1 + float(problem.batch.profile[row].at(1 - local))) * problem.pace[row, group]
        return ratio

    @cached_property
    def energy(self) -> float:
        """Static energy of the modules that are on for the batch, dynamic energy of its cores (equation 1, summed)."""
        groups, batch = self.problem.groups, self.problem.batch
        rows = self.assignment.placed
        modules = self.assignment.module[rows]
        of = groups.of_module[modules]
        static = float(groups.static[groups.of_module[np.unique(modules)]].sum())
        return static + float((groups.dynamic[of] * batch.cores[rows] / groups.cores[of]).sum())

    @cached_property
    def objective(self) -> float:
        """Equation (4a) over the workloads that were placed."""
        slowdown, energy = self.problem.weights
        return slowdown * float(np.nansum(self.theta)) + energy * self.energy

    @property
    def gap(self) -> float:
        """How far the objective lies above the bound, as a share of the bound; NaN without one."""
        if np.isnan(self.bound):
            return float("nan")
        excess = self.objective - self.bound
        if abs(excess) <= 1e-9 * max(1.0, abs(self.bound)):
            return 0.0
        return excess / abs(self.bound) if self.bound else float("inf")
