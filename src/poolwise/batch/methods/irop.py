"""IRoP: iterative rounding. Fix one workload at a time to the module with its largest LP value in F-DWLP, and solve again.

Source: Sefati et al., IRoP, Algorithm 1 and equation (6). Modules without a workload are identical within a group and share one
column per workload. This relaxation has the same value as the literal one. Its solution is read as if it were spread evenly
over these modules, like that of an interior point method. A module that gets a workload gets its own rows and columns.
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
from poolwise.optimize.linear import LinearSolver
from poolwise.registry import register

TIE = 1e-9
"""Values of y that differ by less than this count as equal; the lowest module is then chosen."""

ROUNDING = 1e-6
"""Relative excess of local memory below which only the solver decides feasibility."""


@register("methods", "irop")
@dataclass(frozen=True)
class Irop(Method):
    """IRoP, Algorithm 1 as printed; on failure it drops the workload of lowest priority and starts again.

    Parameters
    ----------
    largest_first
        Round workloads by required local memory, descending, instead of in input order.
    solve_again
        Solve again after a rejected choice, before the next module is chosen, as in the text of section IV-B. The listing of
        Algorithm 1 continues with the previous y, which is several times faster.
    interior_point
        Solve by an interior point method, as the paper does, instead of the simplex method. The optimum is the same. If several
        y are optimal, the simplex method returns a vertex, and the interior point method a point inside the optimal face.
    """

    largest_first: bool = False
    solve_again: bool = False
    interior_point: bool = False

    def solve(self, problem: Problem, limit: Limit) -> Solution:
        """Round the relaxation of F-DWLP, whose value is the bound. Ignores the time limit."""
        return place_most(problem, self._attempt, one_by_one=True)

    def _attempt(self, problem: Problem) -> Solution | None:
        if not len(problem.batch):
            return None
        rounding = Rounding.of(problem, "interior_point" if self.interior_point else "glop")
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
        module = np.array([rounding.module_of[w] for w in range(len(problem.batch))], dtype=np.int64)
        local = problem.least[np.arange(len(module)), problem.groups.of_module[module]]
        return Solution(problem, Assignment(module, local), bound=bound, bound_of="F-DWLP (linear program)")


def approximation_ratio(problem: Problem) -> float:
    """Return psi of Theorem 1: the largest ratio of IRoP's energy to that of its relaxation; inf if it is unbounded.

    psi = max(C N S, D), with C the number of modules, N the largest ratio of a module's cores to a workload's, and S and D the
    largest ratios of static and of dynamic energy between modules. The batch must not be empty.
    """
    modules = problem.modules
    cores = float(modules.cores.max()) / float(problem.batch.cores.min())
    static, dynamic = (float(e.max() / e.min()) if e.min() > 0 else math.inf for e in (modules.static, modules.dynamic))
    return max(len(modules) * cores * static, dynamic)


@dataclass(eq=False)
class Rounding:
    """State of the rounding of one relaxation.

    Attributes
    ----------
    columns : module in use -> (n,) its columns of y, -1 where a workload must not run
    untouched : group -> its modules without a workload, ascending
    module_of : workload -> module, of the workloads fixed so far
    y : (n_column,) the last solution, None if there is none
    """

    problem: Problem
    relaxation: Relaxation
    columns: dict[int, IntArray] = field(default_factory=dict)
    untouched: dict[int, list[int]] = field(default_factory=dict)
    module_of: dict[int, int] = field(default_factory=dict)
    y: FloatArray | None = None
    value: float = math.nan

    @classmethod
    def of(cls, problem: Problem, solver: LinearSolver = "glop") -> Rounding:
        """Relax and solve the problem (lines 1 and 2)."""
        it = cls(problem, Relaxation.of(problem, fixed=True, solver=solver))
        it.untouched = {g: members.tolist() for g, members in problem.groups.ids()}
        it._solve()
        return it

    def fix(self, w: int, solve_again: bool = False) -> bool:
        """Fix a workload to a module (lines 4 to 15); return False if no module is feasible.

        An infeasible program has no y. The y of the last feasible program therefore determines the next module or, with
        `solve_again`, the y of the program without the rejected choice.
        """
        while True:
            module = self._best_module(w)
            if module is None:
                return False
            opened = module not in self.columns
            if opened:
                self._open(module)
            column = int(self.columns[module][w])
            if self._fits(w, module) and self._fix_and_solve(column):
                self.module_of[w] = module
                self._settle(w, module)
                return True
            self.relaxation.program.set_bounds(column, 0, 0)
            if opened:  # a choice that fails on one untouched module fails on all identical ones
                self._close(module, w)
            else:
                self.columns[module][w] = -1
            if solve_again:
                self._solve()

    def _fits(self, w: int, module: int) -> bool:
        """Return whether a module has room for a workload in addition to those fixed there.

        If it has none, the solver need not be called.
        """
        problem, g = self.problem, int(self.problem.groups.of_module[module])
        rows = [w, *(v for v, fixed in self.module_of.items() if fixed == module)]
        cores = int(problem.batch.cores[rows].sum())
        local = float((problem.least[rows, g] * problem.batch.memory[rows]).sum())
        return bool(cores <= problem.groups.free_cores[g] and local <= float(problem.groups.memory[g]) * (1 + ROUNDING))

    def _fix_and_solve(self, column: int) -> bool:
        self.relaxation.program.set_bounds(column, 1, 1)
        return self._solve()

    def _settle(self, w: int, module: int) -> None:
        """Remove a fixed workload from all other modules, to shrink the program; (4b) excludes it there already."""
        program, it = self.relaxation.program, self.relaxation
        for g in np.flatnonzero(it.assign[w] >= 0).tolist():
            program.remove_column(int(it.assign[w, g]))
        it.assign[w] = -1
        for other, columns in self.columns.items():
            if other != module and columns[w] >= 0:
                program.remove_column(int(columns[w]))
                columns[w] = -1

    def _best_module(self, w: int) -> int | None:
        """Return the module with the largest y of a workload among the modules not yet rejected."""
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
        """Give a module its own rows and columns. It is on, so z = 1 needs no column; its cost is the same in all solutions."""
        problem, it = self.problem, self.relaxation
        batch, groups, lp = problem.batch, problem.groups, self.relaxation.program
        g = int(groups.of_module[module])
        self.untouched[g].remove(module)
        lp.set_bounds(it.active[g], 0, float(len(self.untouched[g])))
        cores = lp.add_row(-math.inf, float(groups.free_cores[g]) * it.core)
        room = lp.add_row(-math.inf, float(groups.memory[g]) * it.mib)
        columns = np.full(len(batch), -1, dtype=np.int64)
        slowdown, energy = problem.weights
        waiting = [w for w in range(len(batch)) if w not in self.module_of and it.assign[w, g] >= 0]
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
        """Undo an opening: the module is untouched again, and workload w is rejected on its whole group."""
        it, g = self.relaxation, int(self.problem.groups.of_module[module])
        for column in self.columns.pop(module).tolist():
            if column >= 0:
                it.program.remove_column(column)
        self.untouched[g] = sorted([*self.untouched[g], module])
        it.program.set_bounds(it.active[g], 0, float(len(self.untouched[g])))
        it.program.set_bounds(int(it.assign[w, g]), 0, 0)
        it.assign[w, g] = -1
