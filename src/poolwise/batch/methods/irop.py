"""Iterative rounding: fix one workload at a time where the relaxation of F-DWLP likes it most, and solve again.

Source: Sefati et al., IRoP, Algorithm 1 and equation (6). Modules without a workload are alike within a group and share one
column for each workload: the relaxation's value is that of the literal one, whose solution is read as spread evenly over them,
as an interior point method returns it. A module that gets a workload gets rows and columns of its own.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from poolwise.arrays import FloatArray, IntArray
from poolwise.batch.methods.method import Limit, Method
from poolwise.batch.methods.shrink import place_most
from poolwise.batch.problem.assignment import Assignment, Solution
from poolwise.batch.problem.definition import Problem
from poolwise.batch.search.relaxation import Relaxation
from poolwise.registry import register

TIE = 1e-9
"""Values of y closer than this are equal; the lowest module goes first."""

ROUNDING = 1e-6
"""Relative excess of local memory that only the solver may judge."""


@register("methods", "irop")
@dataclass(frozen=True)
class Irop(Method):
    """IRoP exactly as Algorithm 1 says; on failure the workload of lowest priority is left out, and the algorithm begins again.

    Parameters
    ----------
    largest_first
        Round workloads by local memory needed, descending, instead of in input order.
    solve_again
        After a refusal solve again before the next module is chosen, as the text of section IV-B says; the listing of
        Algorithm 1 goes on with the y it has, which is several times faster.
    """

    largest_first: bool = False
    solve_again: bool = False

    def solve(self, problem: Problem, limit: Limit) -> Solution:
        """Round; the bound is that of the relaxation of F-DWLP. Takes the time it takes."""
        return place_most(problem, self._attempt, one_by_one=True)

    def _attempt(self, problem: Problem) -> Solution | None:
        if not len(problem.batch):
            return None
        rounding = Rounding.of(problem)
        if rounding.y is None:
            return None
        bound = rounding.value
        order = np.arange(len(problem.batch))
        if self.largest_first:
            needed = np.nanmin(np.where(problem.allowed, problem.least, np.nan), axis=1) * problem.batch.memory
            order = np.argsort(-needed, kind="stable")
        for w in order.tolist():
            if not rounding.fix(w, self.solve_again):
                return None
        module = np.array([rounding.home[w] for w in range(len(problem.batch))], dtype=np.int64)
        local = problem.least[np.arange(len(module)), problem.groups.of_module[module]]
        return Solution(problem, Assignment(module, local), bound=bound, bound_of="F-DWLP (linear program)")


@dataclass(eq=False)
class Rounding:
    """The one relaxation while it is rounded; `home` says where the workloads fixed so far are.

    Attributes
    ----------
    columns : module in use -> (n,) its columns of y, -1 where a workload may not be
    untouched : group -> its modules without a workload, ascending
    y : (n_column,) the last solution, None where there is none
    """

    problem: Problem
    relaxation: Relaxation
    columns: dict[int, IntArray] = field(default_factory=dict)
    untouched: dict[int, list[int]] = field(default_factory=dict)
    home: dict[int, int] = field(default_factory=dict)
    y: FloatArray | None = None
    value: float = math.nan

    @classmethod
    def of(cls, problem: Problem) -> Rounding:
        """Relax and solve (lines 1 and 2)."""
        it = cls(problem, Relaxation.of(problem, fixed=True))
        it.untouched = {g: members.tolist() for g, members in problem.groups.ids()}
        it._solve()
        return it

    def fix(self, w: int, again: bool = False) -> bool:
        """Find a module for a workload (lines 4 to 15); False where none is feasible.

        A program that turned out infeasible has no y to offer: the next module is chosen by the y of the last feasible one,
        or, with `again`, of the one without the refused choice.
        """
        while True:
            module = self._favourite(w)
            if module is None:
                return False
            opened = module not in self.columns
            if opened:
                self._open(module)
            column = int(self.columns[module][w])
            if self._fits(w, module) and self._fix_and_solve(column):
                self.home[w] = module
                self._settle(w, module)
                return True
            self.relaxation.program.set_bounds(column, 0, 0)
            if opened:  # what fails on one untouched module fails on all like it
                self._close(module, w)
            else:
                self.columns[module][w] = -1
            if again:
                self._solve()

    def _fits(self, w: int, module: int) -> bool:
        """Whether a module holds a workload beside those fixed there: where it does not, no solver need be asked."""
        problem, g = self.problem, int(self.problem.groups.of_module[module])
        rows = [w, *(v for v, home in self.home.items() if home == module)]
        cores = int(problem.batch.cores[rows].sum())
        local = float((problem.least[rows, g] * problem.batch.memory[rows]).sum())
        return bool(cores <= problem.groups.free_cores[g] and local <= float(problem.groups.memory[g]) * (1 + ROUNDING))

    def _fix_and_solve(self, column: int) -> bool:
        self.relaxation.program.set_bounds(column, 1, 1)
        return self._solve()

    def _settle(self, w: int, module: int) -> None:
        """Take a fixed workload out of every other module: (4b) bars it there already, but the solver need not carry it on."""
        program, it = self.relaxation.program, self.relaxation
        for g in np.flatnonzero(it.assign[w] >= 0).tolist():
            program.remove_column(int(it.assign[w, g]))
        it.assign[w] = -1
        for other, columns in self.columns.items():
            if other != module and columns[w] >= 0:
                program.remove_column(int(columns[w]))
                columns[w] = -1

    def _favourite(self, w: int) -> int | None:
        """Find the module with the largest y of a workload among those not yet refused."""
        best, choice = -math.inf, None
        candidates: list[tuple[int, float]] = []
        for module, columns in self.columns.items():
            if columns[w] >= 0:
                candidates.append((module, self._at(int(columns[w]))))
        for g, modules in self.untouched.items():
            column = int(self.relaxation.assign[w, g])
            if modules and column >= 0:
                candidates.append((modules[0], self._at(column) / len(modules)))
        for module, value in sorted(candidates):
            if value > best + TIE:
                best, choice = value, module
        return choice

    def _at(self, column: int) -> float:
        return float(self.y[column]) if self.y is not None and column < len(self.y) else 0.0

    def _solve(self) -> bool:
        answer = self.relaxation.program.solve()
        if answer.status == "optimal":
            self.y, self.value = answer.values, answer.objective
        return answer.status == "optimal"

    def _open(self, module: int) -> None:
        """Give a module rows and columns of its own; it is on, so z = 1 needs no column (its cost is the same for all)."""
        problem, it = self.problem, self.relaxation
        batch, groups, lp = problem.batch, problem.groups, self.relaxation.program
        g = int(groups.of_module[module])
        self.untouched[g].remove(module)
        lp.set_bounds(it.active[g], 0, float(len(self.untouched[g])))
        cores = lp.add_row(-math.inf, float(groups.free_cores[g]) * it.core)
        room = lp.add_row(-math.inf, float(groups.memory[g]) * it.mib)
        columns = np.full(len(batch), -1, dtype=np.int64)
        slowdown, energy = problem.weights
        waiting = [w for w in range(len(batch)) if w not in self.home and it.assign[w, g] >= 0]
        least = problem.least[waiting, g]
        theta = problem.slowdown(np.array(waiting), np.full(len(waiting), g), least)
        for k, w in enumerate(waiting):
            size = float(batch.memory[w]) * it.mib
            local = float(least[k]) * size
            cost = slowdown * float(theta[k]) + energy * float(groups.dynamic[g] * batch.cores[w] / groups.cores[g])
            rows = [it.cover[w], cores, room, it.outside]
            columns[w] = lp.add_column(cost, 0, 1, rows, [1, float(batch.cores[w]) * it.core, local, size - local])
        self.columns[module] = columns

    def _close(self, module: int, w: int) -> None:
        """Take an opening back: the module is untouched again, and workload w is refused on all of its group."""
        it, g = self.relaxation, int(self.problem.groups.of_module[module])
        for column in self.columns.pop(module).tolist():
            if column >= 0:
                it.program.remove_column(column)
        self.untouched[g] = sorted([*self.untouched[g], module])
        it.program.set_bounds(it.active[g], 0, float(len(self.untouched[g])))
        it.program.set_bounds(int(it.assign[w, g]), 0, 0)
        it.assign[w, g] = -1
