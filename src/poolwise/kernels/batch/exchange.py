"""Exact exchange of items between many bins at once: each bin gives up one item, and these items are reassigned optimally.

Each bin takes back at most one item. The cost of an item in a bin thus does not depend on the other items, and the optimum is a
linear assignment. The current assignment is feasible, so an exchange never increases the cost. Source: shortest augmenting
paths with dual variables (Kuhn 1955; Jonker, Volgenant 1987).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from poolwise.arrays import FloatArray, IntArray
from poolwise.kernels.batch.fill import FillCosts
from poolwise.kernels.batch.search import Bins, alone, changed, draw, fits, put, take, vacant
from poolwise.kernels.jit import kernel, step

BARRED = 1e12
"""Cost of a bin that cannot hold an item."""
NEW = 8
"""Maximum number of new bins that one exchange may open."""
PART = 90
"""Bins per exchange. The time of an exchange grows with the cube of this number; its gain does not."""


@kernel
def assign(cost: FloatArray, n: int, m: int, column: IntArray) -> None:
    """Assign each of n rows a different one of m >= n columns at minimum total cost; `column` (n,) receives the columns."""
    row_price, price = np.zeros(n + 1), np.zeros(m + 1)
    taken, way = np.zeros(m + 1, dtype=np.int64), np.zeros(m + 1, dtype=np.int64)  # 1 + row of a column; 0 for none
    least, seen = np.empty(m + 1), np.empty(m + 1, dtype=np.bool_)
    waiting = np.zeros(n + 1, dtype=np.bool_)
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
        least[:] = np.inf
        seen[:] = False
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
            column[taken[j] - 1] = j - 1


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


@kernel
def exchange(c: FillCosts, b: Bins, state: NDArray[np.uint64]) -> None:
    """Remove one random item from each of up to PART random bins, and reassign all of them at minimum cost."""
    n_slot = len(b.place)
    bins = min(PART, b.open[n_slot])
    slots, hand = np.empty(bins, dtype=np.int64), np.empty(bins, dtype=np.int64)
    for k in range(bins):  # partial shuffle of the bins in use
        other = k + int(draw(state) * (b.open[n_slot] - k))
        s, t = b.open[other], b.open[k]
        b.open[other], b.open[k] = t, s
        b.place[t], b.place[s] = other, k
        slots[k] = s
    for k in range(bins):
        hand[k] = b.items[slots[k], int(draw(state) * b.n_item[slots[k]])]
    for w in hand:
        take(c, b, w)
    cost = np.empty((bins, bins + NEW))
    for r in range(bins):
        w = hand[r]
        for j in range(bins):  # the bins' remaining load admits any item that fits, so each item can return
            s = slots[j]
            cost[r, j] = changed(c, b, s, -1, w) - b.cost[s] if fits(c, b, s, -1, w) else BARRED
        cost[r, bins:] = cheapest_new(c, b, w, bins + NEW)[1]
    column = np.empty(bins, dtype=np.int64)
    assign(cost, bins, bins + NEW, column)
    for r in range(bins):
        if column[r] < bins:
            put(c, b, slots[column[r]], hand[r])
    for r in range(bins):
        if column[r] >= bins:
            slot = vacant(b)
            b.kind[slot] = cheapest_new(c, b, hand[r], 1)[0]
            put(c, b, slot, hand[r])
