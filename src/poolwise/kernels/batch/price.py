"""Exact pricing: the most valuable set of items on one bin, by branch and bound with Lagrangian relaxation of the room.

With a price on room, items decouple into a knapsack over load alone. The price that makes this relaxation tightest gives a
table that bounds every partial set. Source: Lagrangian bound for two-dimensional knapsack, Fisher 1981.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from poolwise.arrays import FloatArray, IntArray
from poolwise.kernels.batch.fill import FillCosts, saved
from poolwise.kernels.jit import kernel, step

STRIDE = 0.1
"""First step of the search for the price of room, relative to its scale."""
TAKEN = 20
"""Cost, in looks, of adding an item to a set, because the set is filled again."""


@step
def worth(c: FillCosts, g: int, prize: FloatArray, price: float, out: FloatArray) -> None:
    """Write each item's prize minus its cost at a price of room, (n,); -inf if the item is not allowed on the bin."""
    for w in range(len(prize)):
        if not c.allowed[g, w]:
            out[w] = -np.inf
            continue
        value = prize[w] - c.base[g, w] - price * c.need[g, w]
        for j in range(c.rank.shape[2]):
            step = c.rank[g, w, j]
            if c.gain[g, step] > price:
                value += c.width[g, step] * (c.gain[g, step] - price)
        out[w] = value


@step
def with_item(value: float, load: int, capacity: int, before: FloatArray, after: FloatArray) -> None:
    """Compute a row of a knapsack table, largest value by capacity, from the row without an item."""
    for at in range(min(load, capacity + 1)):
        after[at] = before[at]
    for at in range(capacity + 1 - load):
        more, same = before[at] + value, before[at + load]
        after[at + load] = more if more > same else same


@step
def knapsack(value: FloatArray, load: IntArray, capacity: int, table: FloatArray) -> float:
    """Return the largest sum of values within the capacity; `table` (2, capacity + 1) is scratch."""
    here, there = 0, 1
    table[0] = 0.0
    for w in range(len(value)):
        if value[w] > 0.0 and load[w] <= capacity:
            with_item(value[w], load[w], capacity, table[here], table[there])
            here, there = there, here
    return float(table[here, capacity])


@step
def tightest(c: FillCosts, g: int, prize: FloatArray, value: FloatArray, table: FloatArray, near: float, rounds: int) -> float:
    """Return a price of room whose relaxed value is lower than at `near`, by descent on a convex function."""
    capacity, room = c.capacity[g], c.room[g]
    worth(c, g, prize, near, value)
    price, least = near, near * room + knapsack(value, c.load, capacity, table)
    most = 0.0
    for w in range(len(prize)):
        most = max(most, prize[w])
    stride = STRIDE * max(near, most / max(room, 1e-9))
    for _ in range(rounds):
        other = max(0.0, price + stride)
        worth(c, g, prize, other, value)
        relaxed = other * room + knapsack(value, c.load, capacity, table)
        if relaxed < least:
            price, least = other, relaxed
        else:
            stride *= -0.5
    return price


class BestSets(NamedTuple):
    """The k most valuable sets of items found, in any order."""

    items: IntArray  # (k, n), the first `size` of each set
    size: IntArray  # (k,)
    value: FloatArray  # (k,)


@kernel
def price_out(
    c: FillCosts, g: int, prize: FloatArray, least: float, looks: int, rounds: int, price: FloatArray, best_sets: BestSets
) -> tuple[float, int, int]:
    """Find the most valuable sets on a bin of kind g.

    Parameters
    ----------
    prize
        (n,) value of covering an item.
    least
        Only sets of a higher value are returned.
    looks
        Budget of items to examine before the search stops.
    rounds
        Steps of the search for the price of room: the better the price, the fewer looks are needed.
    price
        (g,) price of room at which that search begins, and where it ends.
    found
        Receives the best sets.

    Returns
    -------
    An upper bound on the value of any set, at least `least`; the number of sets kept; and the looks used. The bound is exact if
    at most `looks` were used.
    """
    n, capacity, room = len(prize), c.capacity[g], c.room[g]
    value = np.empty(n)
    price[g] = tightest(c, g, prize, value, np.empty((2, capacity + 1)), price[g], rounds)
    worth(c, g, prize, price[g], value)
    order = np.argsort(-value)
    count = 0
    while count < n and value[order[count]] > -np.inf:
        count += 1
    worths, loads, needs = value[order], c.load[order], c.need[g][order]
    table = np.zeros((count + 1, capacity + 1))
    for i in range(count - 1, -1, -1):
        with_item(worths[i], loads[i], capacity, table[i + 1], table[i])
    fixed = price[g] * room - c.opening[g]
    relaxed = fixed + table[0, capacity]
    if relaxed <= least:
        return least, 0, 0
    stored, best, looked = 0, least, 0
    p = c.rank.shape[2]
    steps = np.empty((n + 1, n * p), dtype=np.int64)
    pick, left = np.empty(n + 1, dtype=np.int64), np.empty(n + 2, dtype=np.int64)
    upper, need, gross = np.empty(n + 2), np.empty(n + 2), np.empty(n + 2)
    size = np.empty(n + 2)
    depth, i = 0, 0
    left[0], upper[0], need[0], gross[0], size[0] = capacity, fixed, 0.0, -c.opening[g], 0.0
    while True:
        looked += 1
        if looked > looks:
            return max(relaxed, best), stored, looked
        if i >= count or upper[depth] + table[i, left[depth]] <= best:
            if depth == 0:
                break
            depth -= 1
            i = pick[depth] + 1
            continue
        if loads[i] > left[depth] or need[depth] + needs[i] > room * (1.0 + 1e-9):
            i += 1
            continue
        if upper[depth] + worths[i] + table[i + 1, left[depth] - loads[i]] <= best:
            i += 1
            continue
        w = order[i]
        looked += TAKEN
        _merge(c, g, w, steps, depth, depth * p)
        pick[depth] = i
        left[depth + 1] = left[depth] - loads[i]
        upper[depth + 1] = upper[depth] + worths[i]
        need[depth + 1] = need[depth] + needs[i]
        size[depth + 1] = size[depth] + c.size[w]
        gross[depth + 1] = gross[depth] + prize[w] - c.base[g, w]
        depth += 1
        i += 1
        exact = gross[depth] + saved(c, g, steps[depth], depth * p, room - need[depth], -1, -1)
        if size[depth] > room:
            exact -= c.outside[0] * (size[depth] - room)
        if exact > least:
            stored = _keep(exact, order, pick, depth, best_sets, stored)
            if exact > best:
                best = exact
    return best, stored, looked


@step
def _merge(c: FillCosts, g: int, w: int, steps: IntArray, depth: int, n_step: int) -> None:
    """Write row `depth` of `steps`, merged with the sorted steps of item w, to row `depth` + 1."""
    p = c.rank.shape[2]
    k, e = 0, 0
    for at in range(n_step + p):
        if e < p and (k >= n_step or c.rank[g, w, e] < steps[depth, k]):
            steps[depth + 1, at] = c.rank[g, w, e]
            e += 1
        else:
            steps[depth + 1, at] = steps[depth, k]
            k += 1


@step
def _keep(exact: float, order: IntArray, pick: IntArray, depth: int, best_sets: BestSets, stored: int) -> int:
    """Store a set if it is among the best; return the number of sets stored."""
    at = stored
    if stored == len(best_sets.size):
        at = int(np.argmin(best_sets.value))
        if best_sets.value[at] >= exact:
            return stored
    else:
        stored += 1
    best_sets.value[at], best_sets.size[at] = exact, depth
    for k in range(depth):
        best_sets.items[at, k] = order[pick[k]]
    return stored
