"""Optimum of DWLP by mixed-integer programming, with a time limit and the remaining integrality gap.

Source: Sefati et al., IRoP, Problem 1. Local memory beyond the minimum is a sequence of steps for each workload and module. If
P^m is convex, the solver fills the steps in order; otherwise a binary variable per step enforces the order.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from poolwise.batch.methods.method import Limit, Method
from poolwise.batch.methods.shrink import place_most
from poolwise.batch.problem.assignment import Assignment, Solution
from poolwise.batch.problem.definition import Problem
from poolwise.errors import PoolwiseError
from poolwise.optimize.linear import LinearProgram, LinearSolver
from poolwise.registry import register

NODES = 1000
"""Nodes of branch and bound per unit of work; the root node is always solved."""
FEASIBILITY = 1e-9
"""Largest violation of a row, or of integrality, that the solvers accept.

Rows of memory are divided by their limits, so a module or the remote memory exceeds its limit by at most this fraction.
Rounding a binary variable that is off by this much adds at most this fraction of the memory of the workloads. The sum is far
below the tolerance of `check_assignment`, which the solvers' default, 1e-6, would exceed.
"""

Entry = tuple[int, int, list[tuple[int, float]]]
"""(module, column of y, steps as (column, width))."""


@register("methods", "opt")
@dataclass(frozen=True)
class Opt(Method):
    """Exact solution of Problem 1 with SCIP or HiGHS.

    Parameters
    ----------
    solver
        "scip" or "highs".
    gap
        Relative gap at which a solution counts as optimal.
    """

    solver: LinearSolver = "scip"
    gap: float = 1e-6

    def solve(self, problem: Problem, limit: Limit) -> Solution:
        """Solve the problem. Raises PoolwiseError if no assignment is found within the limit."""
        return place_most(problem, lambda part: self._attempt(part, limit))

    def _attempt(self, problem: Problem, limit: Limit) -> Solution | None:
        if not len(problem.batch):
            return None
        program = Program.of(problem, self.solver)
        answer = program.lp.solve(
            seconds=max(limit.left, 0.01) if limit.is_timed else None,
            nodes=None if limit.work is None else max(1, int(limit.work * NODES)),
            gap=self.gap,
            feasibility=FEASIBILITY,
            threads=1,
        )
        if answer.status == "infeasible":
            return None
        if answer.status not in ("optimal", "feasible"):
            detail = f"{answer.status}: {answer.detail}" if answer.detail else answer.status
            raise PoolwiseError(
                f"the solver found no assignment within {limit} ({detail})\n  remedy: increase the limit, or use --method place"
            )
        assignment = program.read(answer.values)
        status = "optimal" if answer.status == "optimal" else "limit"
        return Solution(problem, assignment, status, answer.bound, "DWLP")  # type: ignore[arg-type]  # one of the two


@dataclass(eq=False)
class Program:
    """The mixed-integer program and the meaning of its columns.

    Attributes
    ----------
    mib : scale of the memory columns, per MiB: 1 over the memory of the largest module
    outside : row of the remote memory
    far : coefficient of the memory columns in this row: the inverse of its limit
    """

    problem: Problem
    lp: LinearProgram
    entries: list[list[Entry]] = field(default_factory=list)
    mib: float = 1.0
    outside: int = -1
    far: float = 1.0

    @classmethod
    def of(cls, problem: Problem, solver: LinearSolver) -> Program:
        """Build Problem 1. No group contributes more modules than there are workloads."""
        it = cls(problem, LinearProgram(solver), [[] for _ in range(len(problem.batch))])
        lp, groups, n = it.lp, problem.groups, len(problem.batch)
        it.mib = 1 / max(1.0, float(groups.memory.max()))
        cover = [lp.add_row(1, 1) for _ in range(n)]
        it.far = 1 / (it.mib * (min(problem.remote, float(problem.batch.memory.sum())) + 1))
        it.outside = lp.add_row(-math.inf, problem.remote * it.mib * it.far)
        for g, members in groups.ids():
            before = -1
            for module in members[:n].tolist():
                before = it._module(module, g, cover, before)
        return it

    def _module(self, module: int, g: int, cover: list[int], before: int) -> int:
        """Add rows and columns of a module; identical modules are switched on in order. Return the column of z."""
        problem, lp, groups = self.problem, self.lp, self.problem.groups
        batch, (slowdown, energy) = problem.batch, problem.weights
        cores, room = lp.add_row(-math.inf, 0), lp.add_row(-math.inf, 0)
        near = 1 / (max(1.0, float(groups.memory[g])) * self.mib)  # coefficient of a unit of memory in the module's row
        values = [-float(groups.free_cores[g]), -float(groups.memory[g]) * self.mib * near]
        z = lp.add_column(energy * float(groups.static[g]), 0, 1, [cores, room], values, integer=True)
        if before >= 0:
            lp.add_row(0, math.inf, [before, z], [1, -1])
        for w in np.flatnonzero(problem.allowed[:, g]).tolist():
            least, size = float(problem.least[w, g]), float(batch.memory[w])
            theta = float(problem.slowdown(np.array([w]), np.array([g]), np.array([least]))[0])
            cost = slowdown * theta + energy * float(groups.dynamic[g] * batch.cores[w] / groups.cores[g])
            rows = [cover[w], cores, room, self.outside]
            local = least * size * self.mib
            values = [1, float(batch.cores[w]), local * near, (size * self.mib - local) * self.far]
            y = lp.add_column(cost, 0, 1, rows, values, integer=True)
            lp.add_row(-math.inf, 0, [y, z], [1, -1])  # implied, but tighter
            steps = [*problem.steps(w, g), (float(problem.harmless[w, g]) * size, 0.0)]
            self.entries[w].append((module, y, self._steps(w, steps, y, room, near, slowdown)))
        return z

    def _steps(
        self, w: int, steps: list[tuple[float, float]], y: int, room: int, near: float, slowdown: float
    ) -> list[tuple[int, float]]:
        lp, convex, columns = self.lp, self.problem.batch.profile[w].is_convex, []
        earlier: tuple[int, float] | None = None
        for width, gain in steps:
            if width <= 0:
                continue
            width, gain = width * self.mib, gain / self.mib
            row = lp.add_row(-math.inf, 0, [y], [-width])
            step = lp.add_column(-slowdown * gain, 0, width, [row, room, self.outside], [1, near, -self.far])
            if earlier is not None and not convex:  # this step may fill only once the previous one is full
                full = lp.add_column(0, 0, 1, integer=True)
                lp.add_row(0, math.inf, [earlier[0], full], [1, -earlier[1]])
                lp.add_row(-math.inf, 0, [step, full], [1, -width])
            earlier = (step, width)
            columns.append(earlier)
        return columns

    def read(self, values: np.ndarray) -> Assignment:
        """Extract the module and local share of each workload from a solution."""
        problem = self.problem
        module, local = np.full(len(problem.batch), -1, dtype=np.int64), np.ones(len(problem.batch))
        for w, entries in enumerate(self.entries):
            where, _, steps = max(entries, key=lambda entry: float(values[entry[1]]))
            least = float(problem.least[w, problem.groups.of_module[where]])
            more = sum(float(values[step]) for step, _ in steps) / self.mib
            module[w], local[w] = where, min(max(least + more / float(problem.batch.memory[w]), least), 1.0)
        return Assignment(module, local)
