"""Exact exchange of items between many bins at once: each bin gives up one item, and these items are reassigned optimally.

Each bin takes back at most one item. The cost of an item in a bin thus does not depend on the other items, and the optimum is a
linear assignment. The current assignment is feasible, so an exchange never increases the cost. Source: shortest augmenting
paths with dual variables (Kuhn 1955; Jonker, Volgenant 1987).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from poolwise.arrays import BoolArray, FloatArray, IntArray
from poolwise.kernels.batch.fill import FillCosts
from poolwise.kernels.batch.search import Bins, alone, changed, draw, fits, put, take, vacant
from poolwise.kernels.jit import entry, step

BARRED = 1e12
"""Cost of a bin that cannot hold an item."""
NEW = 8
"""Maximum number of new bins that one exchange may open."""
PART = 90
"""Bins per exchange. The time of an exchange grows with the cube of this number; its gain does not."""


class Exchange(NamedTuple):
    """Scratch arrays of an exchange of up to r items between up to k bins."""

    slots: IntArray  # (r,) slots of the bins
    hand: IntArray  # (r,) items removed from these bins
    cost: FloatArray  # (r, k) cost of each item in each bin
    column: IntArray  # (r,) assigned bins
    # Prices of rows (r + 1,) and columns (k + 1,), and the search from a row
    row_price: FloatArray
    waiting: BoolArray  # (r + 1,)
    price: FloatArray
    taken: IntArray  # (k + 1,) 1 + row of a column; 0 for none
    way: IntArray  # (k + 1,)
    least: FloatArray  # (k + 1,)
    seen: BoolArray  # (k + 1,)


def empty_exchange(rows: int = PART, columns: int = PART + NEW) -> Exchange:
    """Return scratch arrays for assignments of up to `rows` rows to up to `columns` columns."""
    slots, hand, column = (np.zeros(rows, dtype=np.int64) for _ in range(3))
    row_price, price, least = np.zeros(rows + 1), np.zeros(columns + 1), np.zeros(columns + 1)
    taken, way = np.zeros(columns + 1, dtype=np.int64), np.zeros(columns + 1, dtype=np.int64)
    waiting, seen = np.zeros(rows + 1, dtype=np.bool_), np.zeros(columns + 1, dtype=np.bool_)
    return Exchange(slots, hand, np.zeros((rows, columns)), column, row_price, waiting, price, taken, way, least, seen)


@step
def assign(x: Exchange, n: int, m: int) -> None:
    """Assign each of n rows a different one of m >= n columns at minimum total cost; `x.column` receives the columns."""
    cost, row_price, price, taken, way, least, seen = x.cost, x.row_price, x.price, x.taken, x.way, x.least, x.seen
    waiting = x.waiting
    row_price[: n + 1] = 0.0
    price[: m + 1] = 0.0
    taken[: m + 1] = 0
    for row in range(1, n + 1):  # greedy start: a row takes its cheapest column if that is free
        j = int(np.argmin(cost[row - 1, :m])) + 1
        row_price[row] = cost[row - 1, j - 1]
        waiting[row] = taken[j] > 0
        if not waiting[row]:
            taken[j] = row
    for row in range(1, n + 1):
        if not waiting[row]:
            continue
        taken[0], at = row, 0
        least[: m + 1] = np.inf
        seen[: m + 1] = False
        while True:
            seen[at] = True
            here, step, next_ = taken[at], np.inf, 0
            for j in range(1, m + 1):
                if seen[j]:
                    continue
                value = cost[here - 1, j - 1] - row_price[here] - price[j]
                if value < least[j]:
                    least[j], way[j] = value, at
                if least[j] < step:
                    step, next_ = least[j], j
            for j in range(m + 1):
                if seen[j]:
                    row_price[taken[j]] += step
                    price[j] -= step
                else:
                    least[j] -= step
            at = next_
            if taken[at] == 0:
                break
        while at != 0:
            taken[at] = taken[way[at]]
            at = way[at]
    for j in range(1, m + 1):
        if taken[j] > 0:
            x.column[taken[j] - 1] = j - 1


@step
def cheapest_new(c: FillCosts, b: Bins, w: int, more: int) -> tuple[int, float]:
    """Return (kind, cost) of the cheapest new bin for an item, of kinds with at least `more` bins left; kind -1 if none."""
    kind, best = -1, BARRED
    for g in range(len(c.available)):
        if b.used[g] + more <= c.available[g] and c.allowed[g, w]:
            value = alone(c, g, w)
            if value < best:
                kind, best = g, value
    return kind, best


@entry
def exchange(c: FillCosts, b: Bins, x: Exchange, state: NDArray[np.uint64]) -> None:
    """Remove one random item from each of up to PART random bins, and reassign all of them at minimum cost."""
    n_slot = len(b.place)
    bins = min(PART, b.open[n_slot])
    slots, hand, cost, column = x.slots, x.hand, x.cost, x.column
    for k in range(bins):  # partial shuffle of the bins in use
        other = k + int(draw(state) * (b.open[n_slot] - k))
        s, t = b.open[other], b.open[k]
        b.open[other], b.open[k] = t, s
        b.place[t], b.place[s] = other, k
        slots[k] = s
    for k in range(bins):
        hand[k] = b.items[slots[k], int(draw(state) * b.n_item[slots[k]])]
    for k in range(bins):
        take(c, b, hand[k])
    for r in range(bins):
        w = hand[r]
        for j in range(bins):  # the bins' remaining load admits any item that fits, so each item can return
            s = slots[j]
            cost[r, j] = changed(c, b, s, -1, w) - b.cost[s] if fits(c, b, s, -1, w) else BARRED
        cost[r, bins : bins + NEW] = cheapest_new(c, b, w, bins + NEW)[1]
    assign(x, bins, bins + NEW)
    for r in range(bins):
        if column[r] < bins:
            put(c, b, slots[column[r]], hand[r])
    for r in range(bins):
        if column[r] >= bins:
            slot = vacant(b)
            b.kind[slot] = cheapest_new(c, b, hand[r], 1)[0]
            put(c, b, slot, hand[r])
