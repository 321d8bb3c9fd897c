"""Pricing: the set of items that is worth most on one bin, exactly, by branch and bound on a relaxed room.

With a price on room, items decouple into a knapsack over load alone; the price that makes this relaxation tightest gives a
table from which every partial set is bounded. Source: Lagrangian bound for two-dimensional knapsack, Fisher 1981.
"""

from __future__ import annotations

import numpy as np

from poolwise.arrays import FloatArray, IntArray
from poolwise.kernels.batch.fill import Costs
from poolwise.kernels.jit import kernel, step


@step
def worth(c: Costs, g: int, prize: FloatArray, price: float, out: FloatArray) -> None:
    """(n,) prize of each item less its cost when room has a price; -inf where it may not be on the bin."""
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
def knapsack(value: FloatArray, load: IntArray, capacity: int, table: FloatArray) -> float:
    """Largest sum of values within the capacity; `table` (capacity + 1,) is scratch."""
    table[: capacity + 1] = 0.0
    for w in range(len(value)):
        if value[w] > 0.0:
            for at in range(capacity, load[w] - 1, -1):
                other = table[at - load[w]] + value[w]
                if other > table[at]:
                    table[at] = other
    return float(table[capacity])


@step
def tightest(c: Costs, g: int, prize: FloatArray, value: FloatArray, table: FloatArray, rounds: int) -> float:
    """Price of room at which the relaxed set is worth least (golden section on a convex function)."""
    capacity, room, ratio = c.capacity[g], c.room[g], 0.6180339887498949
    low, high = 0.0, 0.0
    for w in range(len(prize)):
        if c.allowed[g, w] and c.need[g, w] > 0.0:
            high = max(high, (prize[w] - c.base[g, w]) / c.need[g, w])
    for k in range(c.gain.shape[1]):
        high = max(high, c.gain[g, k])
    a, d = high - ratio * (high - low), low + ratio * (high - low)
    worth(c, g, prize, a, value)
    at_a = a * room + knapsack(value, c.load, capacity, table)
    worth(c, g, prize, d, value)
    at_d = d * room + knapsack(value, c.load, capacity, table)
    for _ in range(rounds):
        if at_a < at_d:
            high, d, at_d = d, a, at_a
            a = high - ratio * (high - low)
            worth(c, g, prize, a, value)
            at_a = a * room + knapsack(value, c.load, capacity, table)
        else:
            low, a, at_a = a, d, at_d
            d = low + ratio * (high - low)
            worth(c, g, prize, d, value)
            at_d = d * room + knapsack(value, c.load, capacity, table)
    return a if at_a < at_d else d


@kernel
def price_out(
    c: Costs, g: int, prize: FloatArray, least: float, nodes: int, rounds: int,
    sets: IntArray, sizes: IntArray, values: FloatArray,
) -> tuple[float, int, bool]:  # fmt: skip
    """Find the sets worth most on a bin of kind g.

    Parameters
    ----------
    prize
        (n,) what covering an item is worth.
    least
        Only sets worth more than this are of interest.
    nodes
        Sets to look at before giving up.
    rounds
        Steps of the search for the price of room: the more, the fewer sets need be looked at.
    sets, sizes, values
        (k, n), (k,), (k,) where the sets found are left, the k best of those seen.

    Returns
    -------
    An upper bound on what any set is worth (exact where nothing was given up, and at least `least`), how many sets were
    kept, and whether the bound is exact.
    """
    n, capacity, room = len(prize), c.capacity[g], c.room[g]
    value, flat = np.empty(n), np.empty(capacity + 1)
    price = tightest(c, g, prize, value, flat, rounds)
    worth(c, g, prize, price, value)
    order = np.argsort(-value)
    count = 0
    while count < n and value[order[count]] > -np.inf:
        count += 1
    table = np.zeros((count + 1, capacity + 1))
    for i in range(count - 1, -1, -1):
        w = order[i]
        load, v = c.load[w], value[w]
        for at in range(capacity + 1):
            table[i, at] = table[i + 1, at]
            if at >= load and table[i + 1, at - load] + v > table[i, at]:
                table[i, at] = table[i + 1, at - load] + v
    fixed = price * room - c.opening[g]
    relaxed = fixed + table[0, capacity]
    if relaxed <= least:
        return least, 0, True
    kept, best, seen = 0, least, 0
    p = c.rank.shape[2]
    steps = np.empty((n + 1, n * p), dtype=np.int64)
    pick, left = np.empty(n + 1, dtype=np.int64), np.empty(n + 2, dtype=np.int64)
    upper, need, gross = np.empty(n + 2), np.empty(n + 2), np.empty(n + 2)
    size = np.empty(n + 2)
    depth, i = 0, 0
    left[0], upper[0], need[0], gross[0], size[0] = capacity, fixed, 0.0, -c.opening[g], 0.0
    while True:
        if i >= count or upper[depth] + table[i, left[depth]] <= best:
            if depth == 0:
                break
            depth -= 1
            i = pick[depth] + 1
            continue
        w = order[i]
        if c.load[w] > left[depth] or need[depth] + c.need[g, w] > room * (1.0 + 1e-9):
            i += 1
            continue
        if upper[depth] + value[w] + table[i + 1, left[depth] - c.load[w]] <= best:
            i += 1
            continue
        seen += 1
        if seen > nodes:
            return max(relaxed, best), kept, False
        _merge(c, g, w, steps, depth, depth * p)
        pick[depth] = i
        left[depth + 1] = left[depth] - c.load[w]
        upper[depth + 1] = upper[depth] + value[w]
        need[depth + 1] = need[depth] + c.need[g, w]
        size[depth + 1] = size[depth] + c.size[w]
        gross[depth + 1] = gross[depth] + prize[w] - c.base[g, w]
        depth += 1
        i += 1
        exact = gross[depth] + _filled(c, g, steps[depth], depth * p, room - need[depth])
        if size[depth] > room:
            exact -= c.outside[0] * (size[depth] - room)
        if exact > least:
            kept = _keep(exact, order, pick, depth, sets, sizes, values, kept)
            if exact > best:
                best = exact
    return best, kept, True


@step
def _merge(c: Costs, g: int, w: int, steps: IntArray, depth: int, n_step: int) -> None:
    """Row depth + 1 of `steps` becomes row depth with the steps of item w, sorted."""
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
def _filled(c: Costs, g: int, steps: IntArray, n_step: int, room: float) -> float:
    total = 0.0
    for k in range(n_step):
        if room <= 0.0:
            break
        take = min(room, c.width[g, steps[k]])
        total += take * c.gain[g, steps[k]]
        room -= take
    return total


@step
def _keep(
    exact: float, order: IntArray, pick: IntArray, depth: int, sets: IntArray, sizes: IntArray, values: FloatArray, kept: int
) -> int:
    """Remember a set if it is among the best; returns how many are remembered."""
    at = kept
    if kept == len(sizes):
        at = int(np.argmin(values))
        if values[at] >= exact:
            return kept
    else:
        kept += 1
    values[at], sizes[at] = exact, depth
    for k in range(depth):
        sets[at, k] = order[pick[k]]
    return kept
