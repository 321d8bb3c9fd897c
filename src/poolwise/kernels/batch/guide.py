"""Prices of load and room that maximize the Lagrangian bound: a proven lower bound, and guidance for packing.

With a price of room on each kind of bin, a bin in use costs only what its load and room are worth, and every item is assigned
to the kind where it is cheapest. The best prices are those of the aggregated linear program, found here by subgradient ascent
(Held, Wolfe, Crowder 1974) without an LP solver.
"""

from __future__ import annotations

import numpy as np

from poolwise.arrays import FloatArray
from poolwise.kernels.batch.fill import FillCosts
from poolwise.kernels.jit import kernel, step


@step
def relaxed(c: FillCosts, price: FloatArray, rent: FloatArray, slope: FloatArray, use: FloatArray, item: FloatArray) -> float:
    """Return the lower bound at prices of room (g,) and rents (g,) of bins in short supply.

    `slope` (g,) and `use` (g,) receive the subgradients with respect to prices and rents, `item` (n,) the cost of each item
    at these prices.
    """
    total = 0.0
    slope[:] = 0.0
    use[:] = 0.0
    for g in range(len(price)):
        total -= rent[g] * c.available[g]
        use[g] -= c.available[g]
    for w in range(len(item)):
        best, kind, room = np.inf, -1, 0.0
        for g in range(len(price)):
            if not c.allowed[g, w]:
                continue
            per_load = (c.opening[g] + rent[g] - price[g] * c.room[g]) / c.capacity[g]
            value, taken = c.base[g, w] + per_load * c.load[w] + price[g] * c.need[g, w], c.need[g, w]
            for j in range(c.rank.shape[2]):
                step = c.rank[g, w, j]
                if c.gain[g, step] > price[g]:
                    value -= c.width[g, step] * (c.gain[g, step] - price[g])
                    taken += c.width[g, step]
            if value < best:
                best, kind, room = value, g, taken
        item[w] = best
        if kind >= 0:
            total += best
            slope[kind] += room - c.room[kind] * c.load[w] / c.capacity[kind]
            use[kind] += c.load[w] / c.capacity[kind]
    return total


@kernel
def guide(c: FillCosts, rounds: int, best_price: FloatArray, best_rent: FloatArray, best_item: FloatArray) -> float:
    """Ascend to good prices; return the bound that they prove and write them to `best_*` ((g,), (g,), (n,))."""
    kinds = len(c.available)
    dearest = np.empty(kinds)
    scale = 0.0
    for g in range(kinds):
        scale = max(scale, c.opening[g])
    for g in range(kinds):
        dearest[g] = (c.opening[g] if c.opening[g] > 0.0 else scale) / max(c.room[g], 1e-9)
    price, rent = 0.5 * np.minimum(dearest, c.opening / np.maximum(c.room, 1e-9)), np.zeros(kinds)
    slope, use, item = np.empty(kinds), np.empty(kinds), np.empty(len(c.load))
    best, step = -np.inf, 0.25
    for _ in range(rounds):
        value = relaxed(c, price, rent, slope, use, item)
        if value > best:
            best = value
            for g in range(kinds):
                best_price[g], best_rent[g] = price[g], rent[g]
            for w in range(len(item)):
                best_item[w] = item[w]
        length = 0.0
        for g in range(kinds):
            length += (slope[g] * dearest[g]) ** 2
            if use[g] > 0.0 or rent[g] > 0.0:
                length += (use[g] * scale) ** 2
        if length == 0.0:
            break
        length = np.sqrt(length)
        for g in range(kinds):
            if use[g] > 0.0 or rent[g] > 0.0:
                rent[g] = max(rent[g] + step * scale * use[g] * scale / length, 0.0)
            most = (c.opening[g] + rent[g]) / max(c.room[g], 1e-9)
            price[g] = min(max(price[g] + step * dearest[g] * slope[g] * dearest[g] / length, 0.0), most)
        step *= 0.985
    return best


def priced(c: FillCosts, price: FloatArray, rent: FloatArray, share: float) -> FillCosts:
    """Return costs that charge each item a share of the prices of its load and room, and charge less for opening a bin."""
    per_load = share * np.maximum(c.opening + rent - price * c.room, 0.0) / np.maximum(c.capacity, 1)
    per_room = share * price
    over = c.gain > per_room[:, None]
    return c._replace(
        base=c.base + per_load[:, None] * c.load + per_room[:, None] * c.need,
        gain=np.where(over, c.gain - per_room[:, None], 0.0),
        width=np.where(over, c.width, 0.0),
        opening=c.opening - per_load * c.capacity - per_room * c.room,
    )
