"""Packing by local search: best fit guided by prices of the LP relaxation, then annealing. Kernels do the computation."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from poolwise.arrays import FloatArray, IntArray
from poolwise.batch.problem.assignment import Assignment
from poolwise.batch.problem.definition import Problem
from poolwise.kernels.batch.exchange import empty_exchange, exchange
from poolwise.kernels.batch.fill import FillCosts
from poolwise.kernels.batch.guide import guide, priced
from poolwise.kernels.batch.search import Annealing, Bins, anneal, best_fit, empty_bins, put_all, split, total

TRIES = (0.99, 0.95)
"""Fractions of the guiding prices at which best fit is tried: the full price causes ties."""
LARGE = 500
"""Minimum number of items at which there is time for only one attempt."""
HOT, COLD = 0.2, 0.001
"""Initial and final temperature of the annealing, as fractions of the average cost of a bin."""

WARM = 0.02
"""Initial temperature for a packing that is already good."""
IDLE = 4
"""Exchange rounds without a gain after which the search stops."""
Late = Callable[[], bool]
"""Function that returns whether the time is over."""
SQUEEZE = 1000
"""Moves per item in the search for any complete packing."""


@dataclass(frozen=True, eq=False)
class BinPacking:
    """Items in bins: slot of each item (n,), kind of each slot (n,), cost, and number of unplaced items, `left`.

    Unplaced items have slot -1, and make the cost infinite.
    """

    slot: IntArray
    kind: IntArray
    cost: float
    left: int

    @classmethod
    def of(cls, bins: Bins, left: int = 0) -> BinPacking:
        """Record the contents of bins."""
        return cls(bins.where.copy(), bins.kind.copy(), total(bins), left)

    def sets(self) -> Iterator[tuple[int, IntArray]]:
        """Iterate over (kind, items) of the bins in use."""
        order = np.argsort(self.slot, kind="stable")
        slots = self.slot[order]
        for items in np.split(order, np.flatnonzero(np.diff(slots)) + 1):
            if len(items) and self.slot[items[0]] >= 0:
                yield int(self.kind[self.slot[items[0]]]), items


@dataclass(frozen=True, eq=False)
class PackingPrices:
    """Prices that guide the packing: a bound on the cost, and prices of room (g,), scarce bins (g,) and items (n,)."""

    bound: float
    price: FloatArray
    rent: FloatArray
    item: FloatArray

    @classmethod
    def of(cls, costs: FillCosts, rounds: int = 400) -> PackingPrices:
        """Optimize the prices by ascent."""
        price, rent, item = np.zeros(len(costs.available)), np.zeros(len(costs.available)), np.zeros(len(costs.load))
        bound = guide(costs, rounds, price, rent, item)
        return cls(bound, price, rent, item)


def most_items(costs: FillCosts) -> int:
    """Return an upper bound on the number of items per bin."""
    most = 1
    loads = np.cumsum(np.sort(costs.load))
    for g in range(len(costs.available)):
        by_load = int(np.searchsorted(loads, costs.capacity[g], side="right"))
        needs = np.cumsum(np.sort(costs.need[g]))
        by_room = int(np.searchsorted(needs, costs.room[g] * (1 + 1e-6), side="right"))
        most = max(most, min(by_load, by_room))
    return min(most, len(costs.load)) + 1


def fit(costs: FillCosts, prices: PackingPrices) -> tuple[BinPacking, Bins]:
    """Return the best of a few best-fit packings by marginal cost, heaviest items first, at fractions of the guiding prices."""
    least = np.where(costs.allowed, costs.need / np.maximum(costs.room[:, None], 1e-9), np.inf).min(axis=0)
    load, least = costs.load / max(1, int(costs.capacity.max())), np.where(np.isfinite(least), least, 0.0)
    most, best = most_items(costs), None
    order = np.argsort(-(load + least), kind="stable")
    for share in TRIES if len(load) < LARGE else TRIES[:1]:
        bins = empty_bins(costs, most)
        left = best_fit(priced(costs, prices.price, prices.rent, share), bins, order, False)
        bins = rebuild(costs, BinPacking.of(bins), most)  # at the true costs, without the prices
        packing = BinPacking.of(bins, left)
        if best is None or (packing.left, packing.cost) < (best[0].left, best[0].cost):
            best = packing, bins
    assert best is not None
    return best


def improve(
    costs: FillCosts, start: BinPacking, bins: Bins, moves: int, seed: int, late: Late, hot: float = HOT
) -> tuple[BinPacking, bool]:
    """Anneal from a packing; return the result, and whether all moves were made before `late` returned True."""
    slot, kind = start.slot.copy(), start.kind.copy()
    n_bin = max(1, int(bins.open[-1]))
    per_bin = max(abs(start.cost) / n_bin, 1e-9)
    run = Annealing(_random(seed), slot, kind, np.empty(bins.items.shape[1], dtype=np.int64))
    block, best, done = 4096, start.cost, 0
    while done < moves:
        if late():
            return BinPacking(slot, kind, best, 0), False
        now = min(block, moves - done)
        here, there = (hot * (COLD / hot) ** (at / moves) * per_bin for at in (done, done + now))
        best = anneal(costs, bins, run, now, here, there, best)
        done += now
    return BinPacking(slot, kind, best, 0), True


def exchange_all(costs: FillCosts, start: BinPacking, rounds: int, seed: int, late: Late) -> BinPacking:
    """Exchange one item of every bin at the same time, for a number of rounds; the result is never worse."""
    bins, state, best, idle = rebuild(costs, start, most_items(costs)), _random(seed), start.cost, 0
    scratch = empty_exchange()
    for _ in range(rounds):
        if late() or idle == IDLE:
            break
        exchange(costs, bins, scratch, state)
        value = total(bins)
        idle = 0 if value < best - 1e-12 else idle + 1
        best = min(best, value)
    packing = BinPacking.of(bins)
    return packing if packing.cost < start.cost else start


def _random(seed: int) -> NDArray[np.uint64]:
    """Return the random state of the kernels."""
    return np.array([(seed * 0x9E3779B97F4A7C15 + 0x2545F4914F6CDD1D) & (2**64 - 1) or 1], dtype=np.uint64)


def squeeze(costs: FillCosts, seed: int, late: Late) -> tuple[BinPacking, Bins]:
    """Search for any packing of all items: items without a place are in bins of an extra kind, which annealing empties.

    `left` of the packing is the number of items that remain there.
    """
    kinds, n = costs.need.shape
    dear = 10 * (float(costs.opening.max()) + float(np.abs(costs.base).max()) + 1)
    waiting = costs._replace(
        need=np.vstack([costs.need, np.zeros((1, n))]),
        base=np.vstack([costs.base, dear * (1 + costs.load / costs.load.max())[None]]),
        allowed=np.vstack([costs.allowed, np.ones((1, n), dtype=np.bool_)]),
        rank=np.concatenate([costs.rank, costs.rank[:1]]),
        width=np.vstack([costs.width, np.zeros_like(costs.width[:1])]),
        gain=np.vstack([costs.gain, np.zeros_like(costs.gain[:1])]),
        owner=np.vstack([costs.owner, costs.owner[:1]]),
        available=np.append(costs.available, n),
        capacity=np.append(costs.capacity, int(costs.load.sum()) + 1),
        room=np.append(costs.room, np.inf),
        opening=np.append(costs.opening, 0.0),
    )
    bins = empty_bins(waiting, most_items(costs))
    best_fit(waiting, bins, np.argsort(-costs.size, kind="stable"), False)
    start = BinPacking.of(bins)
    packing, _ = improve(waiting, start, bins, SQUEEZE * n, seed, late)
    left = int((packing.kind[packing.slot] == kinds).sum())
    return replace(packing, left=left, cost=np.inf if left else packing.cost), rebuild(costs, packing, most_items(costs))


def rebuild(costs: FillCosts, packing: BinPacking, most: int) -> Bins:
    """Return the bins of a packing, without the items in bins of unknown kinds."""
    bins = empty_bins(costs, most)
    has_kind = packing.kind < len(costs.available)
    bins.kind[:] = np.where(has_kind, packing.kind, 0)
    put_all(costs, bins, np.where(has_kind[packing.slot], packing.slot, -1))
    return bins


def assignment_of(problem: Problem, costs: FillCosts, packing: BinPacking) -> Assignment:
    """Assign modules to the bins of a packing (lowest free index of each group first) and fill their local memory."""
    bins, module, amount = rebuild(costs, packing, most_items(costs)), np.full(len(costs.load), -1), np.zeros(len(costs.load))
    split(costs, bins, amount)
    members = {g: iter(rows.tolist()) for g, rows in problem.groups.ids()}
    for g, items in sorted(packing.sets(), key=lambda entry: int(entry[1][0])):
        module[items] = next(members[g])
    return Assignment(module, np.minimum(amount / costs.size, 1.0))
