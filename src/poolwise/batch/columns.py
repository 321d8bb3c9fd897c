"""Column generation: the configuration bound on DWLP, and a restricted master over the module contents that it found.

A column is a set of workloads on one module of a group with its best local shares; the linear program over all columns is
far tighter than the aggregated one, and pricing finds the column it lacks. Source: Gilmore, Gomory 1961; dual smoothing by
Wentges 1997; the bound at any duals is Lagrange's.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Protocol

import numpy as np

from poolwise.arrays import FloatArray, IntArray
from poolwise.batch.assignment import Solution
from poolwise.batch.costs import costs_of
from poolwise.batch.method import Limit
from poolwise.batch.search import Guide, Late, Packing, assignment_of
from poolwise.kernels.batch.fill import Costs, cost
from poolwise.kernels.batch.price import price_out
from poolwise.optimize.linear import LinearProgram

SMOOTHING = 0.5
"""Weight of the duals that gave the best bound, against those of the master."""
KEEP = 40
"""Columns taken from one pricing of one group."""
NODES_PER_SECOND, NODES_MOST = 20_000, 400_000
"""Sets that one pricing looks at for each second of the time limit; past them the relaxed value bounds it."""
ROUNDS = 2000
CLOSED = 1e-5
"""Relative distance between master and bound at which generation ends."""
MASTER_SHARE, DIVE_SHARE = 0.75, 0.92
"""Shares of the time limit at which generation, and diving, end."""
SURE = 0.6
"""Columns that the master likes more than this are fixed together."""
INTEGER_ONLY = 3.0
"""Seconds below which the restricted master is not solved with whole numbers."""


class Polish(Protocol):
    """What the search lends to column generation."""

    def late(self, limit: Limit, share: float) -> bool:
        """Whether a share of the time is over."""
        ...

    def polish(self, costs: Costs, packing: Packing, limit: Limit) -> Packing | None:
        """Place what a packing leaves out, and anneal it a little; None where something finds no place."""
        ...


@dataclass(eq=False)
class Master:
    """The linear program over columns: cover each item once, use no more bins than there are, (4g) in one row."""

    costs: Costs
    remote: float
    program: LinearProgram = field(default_factory=LinearProgram)
    columns: dict[tuple[int, ...], int] = field(default_factory=dict)
    contents: list[tuple[int, IntArray, float]] = field(default_factory=list)

    def __post_init__(self) -> None:
        n, kinds = len(self.costs.load), len(self.costs.available)
        dear = 10 * (float(np.abs(self.costs.base).max()) + float(self.costs.opening.max()) + 1)
        for _ in range(n):
            self.program.add_row(1, 1)
        for g in range(kinds):
            self.program.add_row(-math.inf, float(self.costs.available[g]))
        self.program.add_row(-math.inf, self.remote)
        for w in range(n):  # an item may stay uncovered at a price, so that the master always has duals
            self.program.add_column(dear, 0, math.inf, [w], [1.0])

    def add(self, g: int, items: IntArray) -> bool:
        """Add a column; False if it is there."""
        items = np.sort(items)
        key = (g, *items.tolist())
        if key in self.columns:
            return False
        value, outside = set_cost(self.costs, g, items)
        n = len(self.costs.load)
        rows, values = [*items.tolist(), n + g], [1.0] * (len(items) + 1)
        if outside > 0:
            rows.append(n + len(self.costs.available))
            values.append(outside)
        self.columns[key] = self.program.add_column(value, 0, math.inf, rows, values)
        self.contents.append((g, items, value))
        return True


def set_cost(costs: Costs, g: int, items: IntArray) -> tuple[float, float]:
    """Cost of a set on one bin of kind g with its best shares, and MiB that find no room there."""
    steps = np.sort(costs.rank[g, items].reshape(-1))
    need, base, size = (float(column[items].sum()) for column in (costs.need[g], costs.base[g], costs.size))
    free = costs._replace(outside=np.zeros(1))
    value = cost(free, g, len(items), need, base, size, steps, len(steps), -1, -1)
    return value, max(0.0, size - float(costs.room[g]))


@dataclass(frozen=True, eq=False)
class Generated:
    """What column generation came to: the master with its columns, the bound, the duals that prove it."""

    master: Master
    bound: float
    duals: FloatArray
    closed: bool


def generate_columns(
    costs: Costs, remote: float, prices: Guide, packings: Iterable[Packing], late: Late, nodes: int
) -> Generated:
    """Generate columns until the bound meets the master or it is `late`."""
    n, kinds = len(costs.load), len(costs.available)
    master = Master(costs, remote)
    for packing in packings:
        for g, items in packing.sets():
            master.add(g, items)
    best = np.concatenate([prices.item, -prices.rent, [0.0]])
    bound = _price(master, best, nodes)
    closed = False
    for _ in range(ROUNDS):
        answer = master.program.solve()
        if answer.status != "optimal" or late():
            break
        if answer.objective - bound <= CLOSED * max(1.0, abs(answer.objective)):
            closed = True
            break
        known = master.program.n_column
        at = SMOOTHING * best + (1 - SMOOTHING) * answer.duals
        value = _price(master, at, nodes)
        if value <= bound and master.program.n_column == known:
            at = answer.duals  # the smoothed duals price nothing out: the master's own must
            value = _price(master, at, nodes)
            if value <= bound and master.program.n_column == known:
                closed = True
                break
        if value > bound:
            bound, best = value, at
    assert best.shape == (n + kinds + 1,)
    return Generated(master, bound, best, closed)


def _price(master: Master, duals: FloatArray, nodes: int) -> float:
    """Add the columns that duals (n + g + 1,) price out; returns the bound that these duals prove."""
    costs, n = master.costs, len(master.costs.load)
    kinds = len(costs.available)
    prize, rent, outside = duals[:n], -np.minimum(duals[n : n + kinds], 0.0), max(0.0, -float(duals[-1]))
    charged = costs._replace(outside=np.array([outside]))
    sets, sizes, values = np.empty((KEEP, n), dtype=np.int64), np.empty(KEEP, dtype=np.int64), np.empty(KEEP)
    bound = float(prize.sum()) - float((rent * costs.available).sum()) - outside * master.remote
    for g in range(kinds):
        least = float(rent[g]) + 1e-9
        most, kept, _ = price_out(charged, g, prize, least, nodes, sets, sizes, values)
        if most > least:
            bound -= min(int(costs.available[g]), n) * (most - float(rent[g]))
        for k in np.argsort(-values[:kept], kind="stable").tolist():
            master.add(g, sets[k, : sizes[k]].copy())
    return bound


def refine(solution: Solution, packings: list[Packing], prices: Guide, limit: Limit, place: Polish) -> Solution:
    """Tighten the bound of a solution by column generation, and better it: dive, polish, then the restricted master."""
    problem, costs = solution.problem, costs_of(solution.problem)
    nodes = min(int(NODES_PER_SECOND * limit.seconds) + 1, NODES_MOST)
    found = generate_columns(costs, problem.remote, prices, packings, lambda: place.late(limit, MASTER_SHARE), nodes)
    solution = replace(solution, bound=max(solution.bound, found.bound), bound_of="DWLP")
    dived = dive(found, lambda: place.late(limit, DIVE_SHARE))
    solution = _better(solution, costs, place.polish(costs, dived, limit))
    if limit.seconds >= INTEGER_ONLY and solution.gap > CLOSED:
        solution = _better(solution, costs, _restricted(found, solution.objective, limit.left))
    proven = solution.objective - solution.bound <= 1e-6 * max(1.0, abs(solution.bound))
    return replace(solution, status="optimal") if proven else solution


def _better(solution: Solution, costs: Costs, packing: Packing | None) -> Solution:
    """Take a packing where it betters a solution and keeps within the remote memory."""
    if packing is None or packing.left:
        return solution
    other = replace(solution, assignment=assignment_of(solution.problem, costs, packing))
    outside = float(((1 - other.assignment.local) * solution.problem.batch.memory).sum())
    fits = outside <= solution.problem.remote * (1 + 1e-9)
    return other if fits and other.objective < solution.objective else solution


def dive(found: Generated, late: Late) -> Packing:
    """Round the master: fix what it likes best, solve again, until every item is covered or it is `late`.

    Items that end up uncovered have slot -1.
    """
    master, program = found.master, found.master.program
    n = len(master.costs.load)
    fixed: list[int] = []
    while not late():
        answer = program.solve()
        if answer.status != "optimal":
            break
        values = answer.values[n:]
        values[fixed] = 0.0
        order = np.argsort(-values, kind="stable")
        chosen = [int(k) for k in order[: max(1, int((values > SURE).sum()))].tolist() if values[k] > 1e-6]
        if not chosen:
            break
        for k in chosen:
            program.set_bounds(n + k, 1, 1)
        fixed += chosen
    slot, kind = np.full(n, -1, dtype=np.int64), np.zeros(n, dtype=np.int64)
    for number, k in enumerate(fixed):
        g, items, _ = master.contents[k]
        slot[items], kind[number] = number, g
    return Packing(slot, kind, math.inf, int((slot < 0).sum()))


def _restricted(found: Generated, best: float, seconds: float) -> Packing | None:
    """Solve the master over its columns with whole numbers; columns too dear at the duals to be in a better answer go."""
    master, costs = found.master, found.master.costs
    n, kinds = len(costs.load), len(costs.available)
    program, chosen = LinearProgram("highs"), []
    for row in range(n + kinds + 1):
        low, high = (1, 1) if row < n else (-math.inf, float(costs.available[row - n]) if row < n + kinds else master.remote)
        program.add_row(low, high)
    for g, items, value in master.contents:
        outside = max(0.0, float(costs.size[items].sum() - costs.room[g]))
        reduced = value - float(found.duals[items].sum()) - float(found.duals[n + g]) - outside * float(found.duals[-1])
        if reduced <= best - found.bound + 1e-9:
            rows, values = [*items.tolist(), n + g, n + kinds], [1.0] * (len(items) + 1) + [outside]
            program.add_column(value, 0, 1, rows, values, integer=True)
            chosen.append((g, items))
    if not chosen:
        return None
    answer = program.solve(seconds=seconds, gap=1e-4, threads=1)
    if answer.status not in ("optimal", "feasible"):
        return None
    slot, kind = np.full(n, -1, dtype=np.int64), np.zeros(n, dtype=np.int64)
    for number, k in enumerate(np.flatnonzero(answer.values > 0.5).tolist()):
        slot[chosen[k][1]], kind[number] = number, chosen[k][0]
    return Packing(slot, kind, answer.objective, 0) if (slot >= 0).all() else None
