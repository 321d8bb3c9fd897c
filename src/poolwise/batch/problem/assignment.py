"""Assignments of workloads to modules with their local memory shares, and solutions with cost and bound."""

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
    """Assignment of the workloads of a batch.

    Attributes
    ----------
    module : (n,) module of each workload, -1 if it was not placed
    local : (n,) x, fraction of its memory that is local
    """

    module: IntArray
    local: FloatArray

    def __post_init__(self) -> None:
        frozen(self.module)
        frozen(self.local)

    @property
    def placed(self) -> IntArray:
        """Rows of the placed workloads."""
        return np.flatnonzero(self.module >= 0)


@dataclass(frozen=True, eq=False)
class Solution:
    """An assignment of a problem, with its status and bound.

    Attributes
    ----------
    problem, assignment : the problem and its assignment
    status : "placed" (by a heuristic), "optimal" (within the solver's tolerance) or "limit" (best found within the time limit)
    bound : proven lower bound on the objective, NaN if there is none
    bound_of : the problem to which the bound applies; a bound of F-DWLP does not apply to DWLP
    dropped : rows that could not be placed, in the order in which they were dropped
    unmet : the constraint because of which they were dropped; empty if all workloads were placed
    notes : sentences to show to the user
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
        """Slowdown theta of each workload, (n,), NaN if it was not placed."""
        problem, rows = self.problem, self.assignment.placed
        theta = np.full(len(problem.batch), np.nan)
        groups = problem.groups.of_module[self.assignment.module[rows]]
        theta[rows] = problem.slowdown(rows, groups, self.assignment.local[rows])
        return theta

    @cached_property
    def completion(self) -> FloatArray:
        """Completion time (1 + P^m) phi / F relative to the requested one, (n,), whatever theta the problem minimizes."""
        problem, rows = self.problem, self.assignment.placed
        ratio = np.full(len(problem.batch), np.nan)
        groups = problem.groups.of_module[self.assignment.module[rows]]
        for row, group, local in zip(rows.tolist(), groups.tolist(), self.assignment.local[rows].tolist(), strict=True):
            ratio[row] = (1 + float(problem.batch.profile[row].at(1 - local))) * problem.pace[row, group]
        return ratio

    @cached_property
    def energy(self) -> float:
        """Static energy of the modules that the batch turns on, plus dynamic energy of its cores (equation 1, summed)."""
        groups, batch = self.problem.groups, self.problem.batch
        rows = self.assignment.placed
        modules = self.assignment.module[rows]
        of = groups.of_module[modules]
        static = float(groups.static[groups.of_module[np.unique(modules)]].sum())
        return static + float((groups.dynamic[of] * batch.cores[rows] / groups.cores[of]).sum())

    @cached_property
    def objective(self) -> float:
        """Equation (4a) over the placed workloads."""
        slowdown, energy = self.problem.weights
        return slowdown * float(np.nansum(self.theta)) + energy * self.energy

    @property
    def gap(self) -> float:
        """Relative gap between objective and bound, as a fraction of the bound; NaN without a bound."""
        if np.isnan(self.bound):
            return float("nan")
        excess = self.objective - self.bound
        if abs(excess) <= 1e-9 * max(1.0, abs(self.bound)):
            return 0.0
        return excess / abs(self.bound) if self.bound else float("inf")
