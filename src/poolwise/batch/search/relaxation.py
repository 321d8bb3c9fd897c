"""Aggregated LP relaxation: one column for each workload on each group of identical modules.

Averaging a solution of the literal relaxation over the modules of a group gives a solution of this one, and spreading the
latter evenly gives a literal one. Their optima are therefore equal, but this program has a thousandth of the size. Source:
Sefati et al., Problems 1 and 2.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from poolwise.batch.problem.definition import LEAST_WIDTH, Problem
from poolwise.optimize.linear import LinearProgram, LinearSolver

SHORT = 1e-6
"""Fraction of a total below which a shortage counts as rounding."""


@dataclass(frozen=True)
class Shortage:
    """Shortage of the batch as a whole on the machine: constraint, resource, missing amount, available amount."""

    constraint: str
    resource: str
    short: float
    total: float

    def __str__(self) -> str:
        return f"the batch needs {self.short:.6g} more than the {self.total:.6g} {self.resource} available ({self.constraint})"


@dataclass(eq=False)
class Relaxation:
    """Rows and columns of the aggregated program, for DWLP or for F-DWLP, whose shares are fixed.

    Attributes
    ----------
    assign : (n, g) column of y, -1 where the workload must not run
    active : (g,) column of z
    cover : (n,) rows of (4b); cores, room : (g,) rows of (4c) and (4d); outside : row of (4g)
    core, mib : coefficients of a core and a MiB in the rows: 1 over that of the largest module, so that coefficients are near 1
    """

    program: LinearProgram = field(default_factory=LinearProgram)
    assign: np.ndarray = field(default_factory=lambda: np.zeros((0, 0), dtype=np.int64))
    active: list[int] = field(default_factory=list)
    cover: list[int] = field(default_factory=list)
    cores: list[int] = field(default_factory=list)
    room: list[int] = field(default_factory=list)
    outside: int = -1
    core: float = 1.0
    mib: float = 1.0

    @classmethod
    def of(cls, problem: Problem, *, fixed: bool, solver: LinearSolver = "glop") -> Relaxation:
        """Build the program of F-DWLP (`fixed`: shares of equation 6) or DWLP (shares free, P^m convex)."""
        batch, groups, (slowdown, energy) = problem.batch, problem.groups, problem.weights
        it = cls(LinearProgram(solver), np.full((len(batch), len(groups)), -1, dtype=np.int64))
        it.core, it.mib = 1 / max(1, int(groups.cores.max())), 1 / max(1.0, float(groups.memory.max()))
        lp = it.program
        it.cover = [lp.add_row(1, 1) for _ in range(len(batch))]
        it.cores = [lp.add_row(-math.inf, 0) for _ in range(len(groups))]
        it.room = [lp.add_row(-math.inf, 0) for _ in range(len(groups))]
        it.outside = lp.add_row(-math.inf, problem.remote * it.mib)
        for g in range(len(groups)):
            values = [-float(groups.free_cores[g]) * it.core, -float(groups.memory[g]) * it.mib]
            it.active.append(
                lp.add_column(energy * float(groups.static[g]), 0, float(groups.count[g]), [it.cores[g], it.room[g]], values)
            )
        for w, g in np.argwhere(problem.allowed).tolist():
            it._add(problem, w, g, fixed, slowdown, energy)
        return it

    def _add(self, problem: Problem, w: int, g: int, fixed: bool, slowdown: float, energy: float) -> None:
        batch, groups, lp = problem.batch, problem.groups, self.program
        size, least = float(batch.memory[w]), float(problem.least[w, g])
        at = np.array([w]), np.array([g])
        theta = float(problem.slowdown(*at, np.array([least]))[0])
        cost = slowdown * theta + energy * float(groups.dynamic[g] * batch.cores[w] / groups.cores[g])
        rows = [self.cover[w], self.cores[g], self.room[g], self.outside]
        local = least * size * self.mib
        outside = size * self.mib - local if 1 - least > LEAST_WIDTH else 0.0
        y = lp.add_column(cost, 0, 1, rows, [1, float(batch.cores[w]) * self.core, local, outside])
        self.assign[w, g] = y
        if fixed:
            return
        for width, gain in problem.steps(w, g):
            row = lp.add_row(-math.inf, 0, [y], [-width * self.mib])
            lp.add_column(-slowdown * gain / self.mib, 0, math.inf, [row, self.room[g], self.outside], [1, 1, -1])
        spare = float(problem.harmless[w, g]) * size  # memory that saves no slowdown still saves remote memory
        if spare > 0:
            row = lp.add_row(-math.inf, 0, [y], [-spare * self.mib])
            lp.add_column(0.0, 0, math.inf, [row, self.room[g], self.outside], [1, 1, -1])


def shortages(problem: Problem) -> list[Shortage] | None:
    """Return the shortages that remain even if workloads are split over modules: constraints that no assignment meets.

    Every workload must be able to run alone. The result is empty if the relaxation is feasible, so that only packing can fail,
    and None if the solver failed.
    """
    it = Relaxation.of(problem, fixed=False)
    lp, groups = it.program, problem.groups
    for column in range(lp.n_column):
        lp.set_cost(column, 0.0)
    totals = (
        ("4c, 4e", "cores", float((groups.free_cores * groups.count).sum()), it.cores),
        ("4d, 4f", "MiB of local memory", float((groups.memory * groups.count).sum()), it.room),
        ("4g", "MiB of remote memory", problem.remote, [it.outside]),
    )
    units = (it.core, it.mib, it.mib)
    slacks = [
        [lp.add_column(1 / max(total * unit, unit), 0, math.inf, [row], [-1]) for row in rows]
        for (_, _, total, rows), unit in zip(totals, units, strict=True)
    ]
    answer = lp.solve()
    if answer.status != "optimal":
        return None
    short_resources = []
    for (constraint, name, total, _), columns, unit in zip(totals, slacks, units, strict=True):
        short = float(answer.values[columns].sum()) / unit
        if short > SHORT * max(total, 1.0):
            short_resources.append(Shortage(constraint, name, short, total))
    return short_resources
