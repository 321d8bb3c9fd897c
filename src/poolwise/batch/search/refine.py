"""Refinement of a packing by column generation (duals and a bound), dives and integer programming.

A large batch is refined part by part: the bins of a part are emptied, and their items are packed again.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from poolwise.arrays import IntArray
from poolwise.batch.search.column_generation import LOOKS, GeneratedColumns, choose_whole, dive, first_columns, generate_columns
from poolwise.batch.search.costs import part_of
from poolwise.batch.search.effort import DIVES, EXCHANGE, Effort
from poolwise.batch.search.packing import WARM, BinPacking, PackingPrices, exchange_all, improve, most_items, rebuild
from poolwise.kernels.batch.fill import FillCosts
from poolwise.kernels.batch.search import best_fit
from poolwise.random import uniform

MASTER_SHARE, DIVE_SHARE = 0.75, 0.92
"""Fractions of the time limit after which column generation and diving end."""
WARM_MOVES = 0.25
"""Fraction of the moves for annealing after the first dive."""
PROVEN = 1e-6
"""Relative gap between cost and bound at which a packing counts as optimal."""
FULL = 1 + 1e-9
"""Relative tolerance of the remote memory for rounding."""
PART, PART_WORK = 120, 0.05
"""Number of items in a part of a large batch, and the units of work for one part."""
PARTS_SHARE = 0.8
"""Fraction of the work for parts."""


def refine(
    costs: FillCosts, remote: float, packing: BinPacking, prices: PackingPrices, effort: Effort
) -> tuple[BinPacking, float]:
    """Improve a packing, and prove a bound. `costs` must not charge for remote memory, of which `remote` MiB exist."""
    late = lambda: effort.late(MASTER_SHARE)  # noqa: E731  # shared by two calls
    generated = generate_columns(first_columns(costs, remote, prices, packing), effort.arithmetic, late, LOOKS)
    proving, diving, dearest = effort.arithmetic - generated.spent, effort.diving, 0.0
    for turn in range(DIVES):
        before = generated.spent
        dived = dive(generated, diving, lambda: effort.late(DIVE_SHARE), turn)
        packing = better(costs, remote, packing, _polish(generated, dived, effort, anneal=turn == 0))
        took = generated.spent - before + EXCHANGE * effort.exchanges * len(np.unique(dived.slot)) ** 2
        diving, dearest = diving - took, max(dearest, took)
        if turn == 0:  # an early result is worth more than the last columns and the proof that none is missing
            generated = generate_columns(generated, proving, late)
        if is_proven(packing, generated.bound) or dearest > diving or effort.late(DIVE_SHARE):
            break
    if effort.whole and not is_proven(packing, generated.bound):
        packing = better(costs, remote, packing, choose_whole(generated, packing, effort.seconds_left, effort.nodes))
    return packing, generated.bound


def refine_parts(costs: FillCosts, remote: float, packing: BinPacking, effort: Effort) -> BinPacking:
    """Improve a packing part by part; new parts are drawn at random until the effort is spent."""
    slot, kind = packing.slot.copy(), packing.kind.copy()
    spare, turn, left = remote - outside(costs, packing), 0, max(1, int(effort.work / PART_WORK * PARTS_SHARE))
    while left and not effort.late(DIVE_SHARE):
        used = np.unique(slot)
        order = used[np.argsort(uniform(effort.seed, "batch/part", turn, used), kind="stable")]
        held = np.cumsum(np.bincount(slot)[order])
        parts = np.split(order, np.unique(np.searchsorted(held, np.arange(PART, held[-1], PART))))
        for slots in [part for part in parts if len(part)][:left]:
            if effort.late(DIVE_SHARE):
                break
            spare = _repack(costs, slot, kind, slots, spare, effort)
            left -= 1
        turn += 1
    return BinPacking.of(rebuild(costs, BinPacking(slot, kind, math.inf, 0), most_items(costs)))


def _repack(costs: FillCosts, slot: IntArray, kind: IntArray, slots: IntArray, spare: float, effort: Effort) -> float:
    """Empty some slots and pack their items again, in place; return the remote memory that is then spare."""
    rows = np.flatnonzero(np.isin(slot, slots))
    others = np.setdiff1d(slot, slots)
    taken = np.bincount(kind[others], minlength=len(costs.available))
    part = part_of(costs, rows, costs.available - taken)
    _, local = np.unique(slot[rows], return_inverse=True)
    own_kind = np.zeros(len(rows), dtype=np.int64)
    own_kind[: len(slots)] = kind[np.sort(slots)]
    before = BinPacking.of(rebuild(part, BinPacking(local, own_kind, math.inf, 0), most_items(part)))
    remote = spare + outside(part, before)
    own = replace(effort, work=PART_WORK, cut=False)
    after, _ = refine(part, remote, before, PackingPrices.of(part), own)
    effort.cut |= own.cut
    free = np.setdiff1d(np.arange(len(slot)), others)
    slot[rows] = free[after.slot]
    kind[free[: len(rows)]] = after.kind
    return remote - outside(part, after)


def is_proven(packing: BinPacking, bound: float) -> bool:
    """Return whether a packing is proven optimal."""
    return packing.cost - bound <= PROVEN * max(1.0, abs(bound))


def outside(costs: FillCosts, packing: BinPacking) -> float:
    """Return the MiB of remote memory that a packing uses: the excess over each module's room, however items share the room."""
    inside = packing.slot >= 0
    held = np.bincount(packing.slot[inside], costs.size[inside], minlength=len(packing.kind))
    used = np.unique(packing.slot[inside])
    return float(np.maximum(held[used] - costs.room[packing.kind[used]], 0.0).sum())


def _polish(generated: GeneratedColumns, dived: BinPacking, effort: Effort, *, anneal: bool) -> BinPacking | None:
    """Place the items left over by a dive at the least cost, then exchange and anneal; return None if an item does not fit."""
    costs = generated.costs
    bins = rebuild(costs, dived, most_items(costs))
    if best_fit(costs, bins, np.flatnonzero(dived.slot < 0), False):
        return None
    late = lambda: effort.late(1.0)  # noqa: E731  # shared by two calls
    packing = exchange_all(costs, BinPacking.of(bins), effort.exchanges, effort.seed, late)
    if anneal:
        bins = rebuild(costs, packing, most_items(costs))
        packing, _ = improve(costs, packing, bins, int(effort.moves * WARM_MOVES), effort.seed, late, WARM)
    return packing


def better(costs: FillCosts, remote: float, packing: BinPacking, other: BinPacking | None) -> BinPacking:
    """Return the cheaper packing; `other` counts only if it is complete and keeps within the remote memory."""
    if other is None or other.left or other.cost >= packing.cost:
        return packing
    return other if outside(costs, other) <= remote * FULL else packing
