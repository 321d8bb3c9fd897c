"""Column generation: the configuration bound on DWLP, and packings made of the module contents that it found.

A column is a set of workloads on one module of a group with its best local shares; the linear program over all columns is
far tighter than the aggregated one, and pricing finds the column it lacks. The duals begin near the prices of the aggregated
program, and that of an item that stays uncovered is raised step by step: from duals that mean nothing yet, generation
took three times as long. Source: Gilmore, Gomory 1961; penalties near an estimate of the duals by du Merle, Villeneuve,
Desrosiers, Hansen 1999; the bound at any duals is Lagrange's.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from poolwise.arrays import FloatArray, IntArray
from poolwise.batch.search.packing import BinPacking, Guide, Late, most_items
from poolwise.kernels.batch.fill import FillCosts
from poolwise.kernels.batch.master import Master, add, bar, empty_master, generate, larger, levels, lonely, optimise
from poolwise.random import uniform

STEP = 0.5
"""By how much the cost of an uncovered item rises, as a share of its reach."""
SMALL = 0.1
"""Least size of a dual, as a share of the mean, where reach is shared out by size."""
DEARER, FAR = 4.0, 1e9
"""Factor on the reach of an uncovered item that no column covers, and where that ends."""
KEEP = 20
"""Columns taken from one pricing of one group."""
LOOKS, LOOKS_MOST = 50_000, 20_000_000
"""Items that one pricing looks at, and how many where fewer brought no column; past them the relaxed value bounds it."""
ROUNDS = 5
"""Steps of the search for the price of room in one pricing."""
ROOM = 4000
"""Columns that a master has room for at first."""
CLOSED = 1e-5
"""Relative distance between master and bound at which generation ends."""
UNCOVERED = 1e-6
"""Level of an uncovered item that is not rounding."""
SURE = 0.8
"""Columns that the master likes more than this are fixed together."""
WHOLE_GAP = 1e-4
"""Relative gap at which the integer solution is good enough."""
SPREAD = 0.5
"""Largest share by which a dive but the first takes a level for less than it is."""


@dataclass(frozen=True, eq=False)
class GeneratedColumns:
    """The result of column generation.

    Attributes
    ----------
    costs, master
        The problem, and the linear program with the columns so far.
    bound, duals
        The best bound, and the (m,) duals that prove it.
    price
        (g,) price of room at which pricing begins.
    reach
        (n,) how far the dual of each item may yet be from where it began.
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
        """Operations done so far, by generation and dives."""
        return int(self.master.spent[0])


def first_columns(costs: FillCosts, remote: float, prices: Guide, packing: BinPacking) -> GeneratedColumns:
    """Begin with the bins of a packing, and with duals near the guiding prices.

    Those prices sum up to a bound, and good duals to no more than the packing costs: what lies between is their reach.
    `costs` must not charge for remote memory, of which there are `remote` MiB.
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


def generate_columns(found: GeneratedColumns, effort: float, late: Late, looks_most: int = LOOKS_MOST) -> GeneratedColumns:
    """Generate columns until the bound meets the master, it is `late`, or `effort` operations are done (see `Master.spent`).

    No pricing looks at more than `looks_most` items.
    """
    costs, master, price, reach, n = found.costs, found.master, found.price, found.reach, len(found.costs.load)
    charged, scratch, effort = costs._replace(outside=np.zeros(1)), _scratch(n), effort + master.spent[0]
    bound, duals, looks, closed = found.bound, found.duals, LOOKS, False
    while master.spent[0] < effort and not late():
        if not _has_room(master, costs):
            master = larger(master)
        optimise(master)
        value, uncovered = levels(master, np.empty(int(master.used[0])))
        if value - bound <= CLOSED * max(1.0, abs(value)) and uncovered <= UNCOVERED:
            closed = True
            break
        proven, added = generate(costs, charged, master, looks, ROUNDS, price, *scratch)
        if proven > bound:
            bound, duals = proven, master.dual.copy()
        bare = -1 - master.basis[(master.basis < 0) & (master.basis >= -n) & (master.level > UNCOVERED)]
        master.dear[bare] += STEP * reach[bare]
        if added:
            looks = max(LOOKS, looks // 10)
        elif len(bare) and reach[bare].max() < FAR:
            reach[bare] *= DEARER
        elif looks < looks_most:
            looks = min(10 * looks, looks_most)
        else:
            closed = looks_most == LOOKS_MOST
            break
    return replace(found, master=master, bound=bound, duals=duals, closed=closed)


def dive(found: GeneratedColumns, effort: float, late: Late, turn: int = 0) -> BinPacking:
    """Round the master: fix what it likes best, price for what is left, solve again, until all is covered.

    It ends before that where it is `late` or `effort` operations are done; items that stay uncovered have slot -1. The columns
    priced on the way stay with the master. Each turn but the first reads the levels a little differently.
    """
    base, before = found.master, int(found.master.used[0])
    master = base._replace(  # a copy whose charges and basis may be changed, with the same columns
        charge=base.charge.copy(), inverse=base.inverse.copy(), basis=base.basis.copy(), level=base.level.copy(),
        dual=base.dual.copy(), dear=base.dear.copy(),
    )  # fmt: skip
    lonely(found.costs, master.dear)
    covered, scratch = np.zeros(master.n, dtype=np.bool_), _scratch(master.n)
    fixed: list[int] = []
    price, effort = found.price.copy(), effort + found.spent
    while found.spent < effort and not late():
        optimise(master)
        liked = np.empty(int(master.used[0]))
        levels(master, liked)
        liked[fixed] = 0.0
        chosen = np.flatnonzero(liked > SURE)
        if not len(chosen):
            if turn:
                liked *= 1 - SPREAD * uniform(turn, "batch/dive", np.arange(len(liked)))
            chosen = np.argmax(liked, keepdims=True)
            if liked[chosen[0]] <= UNCOVERED:
                break
        bar(master, chosen, covered)
        fixed += chosen.tolist()
        if _has_room(master, found.costs):
            optimise(master)
            charged = found.costs._replace(outside=np.zeros(1), allowed=found.costs.allowed & ~covered)
            generate(found.costs, charged, master, LOOKS, ROUNDS, price, *scratch)
    base.charge[before : base.used[0]] = base.cost[before : base.used[0]]
    return _packed(found, fixed)


def _packed(found: GeneratedColumns, columns: list[int]) -> BinPacking:
    """Bins of some columns: those that share no item with an earlier one, as far as there are bins."""
    master, slot = found.master, np.full(found.master.n, -1, dtype=np.int64)
    kind, taken = np.zeros(master.n, dtype=np.int64), np.zeros(len(found.costs.available), dtype=np.int64)
    for number, k in enumerate(columns):
        items, g = master.items[master.first[k] : master.first[k + 1]], int(master.kind[k])
        if (slot[items] < 0).all() and taken[g] < found.costs.available[g]:
            slot[items], kind[number] = number, g
            taken[g] += 1
    return BinPacking(slot, kind, math.inf, int((slot < 0).sum()))


def _scratch(n: int) -> tuple[IntArray, IntArray, FloatArray]:
    """Return the arrays in which a pricing leaves the sets that it found."""
    return np.empty((KEEP, n), dtype=np.int64), np.empty(KEEP, dtype=np.int64), np.empty(KEEP)


def _has_room(master: Master, costs: FillCosts) -> bool:
    """Whether a master has room for what one pricing may find."""
    columns, entries = len(costs.available) * KEEP + 1, (len(costs.available) * KEEP + 1) * most_items(costs)
    count = int(master.used[0])
    return bool(count + columns < len(master.kind) and master.first[count] + entries < len(master.items))


def choose_whole(found: GeneratedColumns, start: BinPacking, seconds: float) -> BinPacking | None:
    """Solve the master over its columns with whole numbers, from a packing; None where nothing better is found.

    Columns too dear at the duals to be in a better answer are left out.
    """
    from poolwise.optimize.linear import LinearProgram  # brings the solver, which a short search does not need

    m, n, last = found.master, found.master.n, len(found.master.limit) - 1
    own = [tuple(np.sort(items).tolist()) for _, items in start.sets()]
    program, chosen, hint = LinearProgram("highs"), [], []
    for row in range(last + 1):
        program.add_row(1 if row < n else -math.inf, 1 if row < n else float(m.limit[row]))
    for k in range(int(m.used[0])):
        items, g, far = m.items[m.first[k] : m.first[k + 1]], int(m.kind[k]), float(m.far[k])
        worth = float(found.duals[items].sum()) + float(found.duals[n + g]) + far * float(found.duals[last])
        if float(m.cost[k]) - worth <= start.cost - found.bound + 1e-9:
            program.add_column(
                float(m.cost[k]), 0, 1, [*items.tolist(), n + g, last], [1.0] * (len(items) + 1) + [far], integer=True
            )
            chosen.append(k)
            hint.append(float(tuple(items.tolist()) in own))
    if not chosen:
        return None
    answer = program.solve(seconds=seconds, gap=WHOLE_GAP, threads=1, hint=np.array(hint))
    if answer.status not in ("optimal", "feasible"):
        return None
    packing = _packed(found, [chosen[at] for at in np.flatnonzero(answer.values > 0.5).tolist()])
    return None if packing.left else replace(packing, cost=answer.objective)
