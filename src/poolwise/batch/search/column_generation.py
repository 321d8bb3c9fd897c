"""Column generation: the configuration bound on DWLP, and packings made of the generated columns.

A column is a set of workloads on one module of a group, with its best local shares. The linear program over all columns is far
tighter than the aggregated one; pricing finds columns of negative reduced cost. The duals start near the prices of the
aggregated program, and the penalty of an uncovered item is raised step by step, because generation from arbitrary duals takes
three times as long. Source: Gilmore, Gomory 1961; penalties near an estimate of the duals by du Merle, Villeneuve, Desrosiers,
Hansen 1999; the bound at any duals is the Lagrangian bound.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from poolwise.arrays import FloatArray
from poolwise.batch.search.packing import BinPacking, Late, PackingPrices, most_items
from poolwise.kernels.batch.fill import FillCosts
from poolwise.kernels.batch.master import (
    Master,
    add,
    empty_master,
    enlarged,
    fix_columns,
    generate,
    levels,
    optimize,
    uncovered_costs,
)
from poolwise.kernels.batch.price import BestSets
from poolwise.random import uniform

STEP = 0.5
"""Increase of the penalty of an uncovered item, as a fraction of its reach."""
SMALL = 0.1
"""Minimum size of a dual, as a fraction of the mean, when the reach is distributed by size."""
DEARER, FAR = 4.0, 1e9
"""Factor that increases the reach of an item that no column covers, and the reach at which this stops."""
KEEP = 20
"""Maximum number of columns to keep from one pricing of one group."""
LOOKS, LOOKS_MOST = 50_000, 20_000_000
"""Maximum number of items that a pricing visits: initially, and after pricings that found no column."""
ROUNDS = 5
"""Steps of the search for the price of room in one pricing."""
ROOM = 4000
"""Initial column capacity of a master."""
CLOSED = 1e-5
"""Relative gap between master and bound at which generation ends."""
UNCOVERED = 1e-6
"""Level above which an uncovered item is not due to rounding."""
SURE = 0.8
"""Columns with a master value above this are fixed together."""
WHOLE_GAP = 1e-4
"""Relative gap at which the integer solution is accepted."""
SPREAD = 0.5
"""Largest relative reduction of the master values by random perturbation, in all dives but the first."""


@dataclass(frozen=True, eq=False)
class GeneratedColumns:
    """Result of column generation.

    Attributes
    ----------
    costs, master
        The problem, and the restricted master program with the columns so far.
    bound, duals
        The best bound, and the (m,) duals that prove it.
    price
        (g,) initial price of room in the pricing.
    reach
        (n,) maximum remaining distance of each item's dual from its initial value.
    closed
        Whether no column is missing.
    """

    costs: FillCosts
    master: Master
    bound: float
    duals: FloatArray
    price: FloatArray
    reach: FloatArray
    closed: bool = False

    @property
    def spent(self) -> int:
        """Number of operations so far, in generation and dives."""
        return int(self.master.spent[0])


def first_columns(costs: FillCosts, remote: float, prices: PackingPrices, packing: BinPacking) -> GeneratedColumns:
    """Build the initial master from the bins of a packing, with duals near the guiding prices.

    The prices sum up to a bound, and good duals sum up to at most the cost of the packing. The difference is how far the duals
    may move in total: their reach.
    `costs` must not charge for remote memory, of which `remote` MiB exist.
    """
    n = len(costs.load)
    master = empty_master(costs, remote, ROOM, ROOM * most_items(costs))
    for g, items in packing.sets():
        add(costs, master, g, items)
    size = np.maximum(np.abs(prices.item), SMALL * np.abs(prices.item).mean() + CLOSED)
    reach = size / size.sum() * max(packing.cost - prices.bound, CLOSED * max(1.0, abs(packing.cost)))
    master.dear[:n] = prices.item + STEP * reach
    return GeneratedColumns(
        costs, master, prices.bound, np.concatenate([prices.item, -prices.rent, [0.0]]), prices.price.copy(), reach
    )


def generate_columns(generated: GeneratedColumns, effort: float, late: Late, looks_most: int = LOOKS_MOST) -> GeneratedColumns:
    """Generate columns until the bound meets the master, `late` returns True, or `effort` operations are done (`Master.spent`).

    Each pricing visits at most `looks_most` items.
    """
    costs, master, price, reach, n = (
        generated.costs,
        generated.master,
        generated.price,
        generated.reach,
        len(generated.costs.load),
    )
    charged, scratch, effort = costs._replace(outside=np.zeros(1)), _scratch(n), effort + master.spent[0]
    bound, duals, looks, closed = generated.bound, generated.duals, LOOKS, False
    while master.spent[0] < effort and not late():
        if not _has_room(master, costs):
            master = enlarged(master)
        optimize(master)
        value, uncovered = levels(master, np.empty(int(master.used[0])))
        if value - bound <= CLOSED * max(1.0, abs(value)) and uncovered <= UNCOVERED:
            closed = True
            break
        proven, added = generate(costs, charged, master, looks, ROUNDS, price, scratch)
        if proven > bound:
            bound, duals = proven, master.dual.copy()
        uncovered_items = -1 - master.basis[(master.basis < 0) & (master.basis >= -n) & (master.level > UNCOVERED)]
        master.dear[uncovered_items] += STEP * reach[uncovered_items]
        if added:
            looks = max(LOOKS, looks // 10)
        elif len(uncovered_items) and reach[uncovered_items].max() < FAR:
            reach[uncovered_items] *= DEARER
        elif looks < looks_most:
            looks = min(10 * looks, looks_most)
        else:
            closed = looks_most == LOOKS_MOST
            break
    return replace(generated, master=master, bound=bound, duals=duals, closed=closed)


def dive(generated: GeneratedColumns, effort: float, late: Late, turn: int = 0) -> BinPacking:
    """Round the master by diving: fix its largest columns, price for the remaining items, and repeat until all are covered.

    The dive ends early if `late` returns True or `effort` operations are done; items that remain uncovered have slot -1.
    Columns found during the dive are kept in the master. All turns but the first perturb the master values.
    """
    base, before = generated.master, int(generated.master.used[0])
    master = base._replace(  # a copy with the same columns, whose charges and basis may change
        charge=base.charge.copy(), inverse=base.inverse.copy(), basis=base.basis.copy(), level=base.level.copy(),
        dual=base.dual.copy(), dear=base.dear.copy(),
    )  # fmt: skip
    uncovered_costs(generated.costs, master.dear)
    covered, scratch = np.zeros(master.n, dtype=np.bool_), _scratch(master.n)
    fixed: list[int] = []
    price, effort = generated.price.copy(), effort + generated.spent
    while generated.spent < effort and not late():
        optimize(master)
        value = np.empty(int(master.used[0]))
        levels(master, value)
        value[fixed] = 0.0
        chosen = np.flatnonzero(value > SURE)
        if not len(chosen):
            if turn:
                value *= 1 - SPREAD * uniform(turn, "batch/dive", np.arange(len(value)))
            chosen = np.argmax(value, keepdims=True)
            if value[chosen[0]] <= UNCOVERED:
                break
        fix_columns(master, chosen, covered)
        fixed += chosen.tolist()
        if _has_room(master, generated.costs):
            optimize(master)
            charged = generated.costs._replace(outside=np.zeros(1), allowed=generated.costs.allowed & ~covered)
            generate(generated.costs, charged, master, LOOKS, ROUNDS, price, scratch)
    base.charge[before : base.used[0]] = base.cost[before : base.used[0]]
    return _packed(generated, fixed)


def _packed(generated: GeneratedColumns, columns: list[int]) -> BinPacking:
    """Return the bins of the columns that share no item with an earlier column, as long as bins of their kind are available."""
    master, slot = generated.master, np.full(generated.master.n, -1, dtype=np.int64)
    kind, taken = np.zeros(master.n, dtype=np.int64), np.zeros(len(generated.costs.available), dtype=np.int64)
    for number, k in enumerate(columns):
        items, g = master.items[master.first[k] : master.first[k + 1]], int(master.kind[k])
        if (slot[items] < 0).all() and taken[g] < generated.costs.available[g]:
            slot[items], kind[number] = number, g
            taken[g] += 1
    return BinPacking(slot, kind, math.inf, int((slot < 0).sum()))


def _scratch(n: int) -> BestSets:
    """Return work arrays for the sets found by a pricing."""
    return BestSets(np.empty((KEEP, n), dtype=np.int64), np.empty(KEEP, dtype=np.int64), np.empty(KEEP))


def _has_room(master: Master, costs: FillCosts) -> bool:
    """Return whether a master has room for the columns of one pricing."""
    columns, entries = len(costs.available) * KEEP + 1, (len(costs.available) * KEEP + 1) * most_items(costs)
    count = int(master.used[0])
    return bool(count + columns < len(master.kind) and master.first[count] + entries < len(master.items))


def choose_whole(generated: GeneratedColumns, start: BinPacking, seconds: float | None, nodes: int) -> BinPacking | None:
    """Solve the integer master over the existing columns, starting from a packing; return None if nothing better is found.

    Columns whose reduced cost excludes them from a better solution are left out. The search ends after `seconds` or, if that is
    None, after `nodes` nodes.
    """
    from poolwise.optimize.linear import LinearProgram  # loads the solver, which a short search does not need

    m, n, last = generated.master, generated.master.n, len(generated.master.limit) - 1
    own = [tuple(np.sort(items).tolist()) for _, items in start.sets()]
    program, chosen, hint = LinearProgram("highs"), [], []
    for row in range(last + 1):
        program.add_row(1 if row < n else -math.inf, 1 if row < n else float(m.limit[row]))
    for k in range(int(m.used[0])):
        items, g, far = m.items[m.first[k] : m.first[k + 1]], int(m.kind[k]), float(m.far[k])
        worth = float(generated.duals[items].sum()) + float(generated.duals[n + g]) + far * float(generated.duals[last])
        if float(m.cost[k]) - worth <= start.cost - generated.bound + 1e-9:
            program.add_column(
                float(m.cost[k]), 0, 1, [*items.tolist(), n + g, last], [1.0] * (len(items) + 1) + [far], integer=True
            )
            chosen.append(k)
            hint.append(float(tuple(items.tolist()) in own))
    if not chosen:
        return None
    answer = program.solve(
        seconds=seconds, nodes=nodes if seconds is None else None, gap=WHOLE_GAP, threads=1, hint=np.array(hint)
    )
    if answer.status not in ("optimal", "feasible"):
        return None
    packing = _packed(generated, [chosen[at] for at in np.flatnonzero(answer.values > 0.5).tolist()])
    return None if packing.left else replace(packing, cost=answer.objective)
