"""Packing items into bins of several kinds: best fit by marginal cost, then simulated annealing.

Source: best fit and simulated annealing (Kirkpatrick, Gelatt, Vecchi 1983); water filling gives the cost of a bin.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from poolwise.arrays import FloatArray, IntArray
from poolwise.kernels.batch.fill import FillCosts, Totals, cost, shares
from poolwise.kernels.jit import entry, step

FREE = 1e-9
"""Relative shortage of room that is attributed to rounding."""


class Bins(NamedTuple):
    """Bins in use: s slots, at most k items in each."""

    where: IntArray  # (n,) slot of each item, -1 outside
    kind: IntArray  # (s,) kind of bin in each slot
    items: IntArray  # (s, k) items, the first n_item of them
    steps: IntArray  # (s, k * p) ranks of their steps, sorted
    # (s,) number of items and their totals, and the cost of the bin
    n_item: IntArray
    load: IntArray
    need: FloatArray
    base: FloatArray
    size: FloatArray
    cost: FloatArray
    used: IntArray  # (g,) bins in use of each kind
    open: IntArray  # (s + 1,) slots with items, the first open[s] of them
    place: IntArray  # (s,) position of a slot in `open`, -1 if it is empty


def empty_bins(c: FillCosts, most: int) -> Bins:
    """Return bins without items, with space for `most` items each."""
    n, kinds, p = len(c.load), len(c.available), c.rank.shape[2]
    items, steps = np.zeros((n, most), dtype=np.int64), np.zeros((n, most * p), dtype=np.int64)
    kind, n_item, load = (np.zeros(n, dtype=np.int64) for _ in range(3))
    need, base, size, cost_ = (np.zeros(n) for _ in range(4))
    used, in_use = np.zeros(kinds, dtype=np.int64), np.zeros(n + 1, dtype=np.int64)
    nowhere = np.full(n, -1, dtype=np.int64)
    return Bins(nowhere, kind, items, steps, n_item, load, need, base, size, cost_, used, in_use, nowhere.copy())


@step
def fits(c: FillCosts, b: Bins, s: int, without: int, extra: int) -> bool:
    """Return whether slot s can hold item `extra` once item `without` is removed (either may be -1)."""
    g = b.kind[s]
    if not c.allowed[g, extra]:
        return False
    load, need, more = b.load[s] + c.load[extra], b.need[s] + c.need[g, extra], 1
    if without >= 0:
        load -= c.load[without]
        need -= c.need[g, without]
        more = 0
    return bool(load <= c.capacity[g] and need <= c.room[g] * (1.0 + FREE) and b.n_item[s] + more <= b.items.shape[1])


@step
def changed(c: FillCosts, b: Bins, s: int, without: int, extra: int) -> float:
    """Return the cost of slot s with one item removed and another added (-1 for none)."""
    g, n, need, base, size = b.kind[s], b.n_item[s], b.need[s], b.base[s], b.size[s]
    if without >= 0:
        n, need, base, size = n - 1, need - c.need[g, without], base - c.base[g, without], size - c.size[without]
    if extra >= 0:
        n, need, base, size = n + 1, need + c.need[g, extra], base + c.base[g, extra], size + c.size[extra]
    p = c.rank.shape[2]
    return cost(c, g, Totals(n, need, base, size), b.steps[s], b.n_item[s] * p, without, extra)


@step
def alone(c: FillCosts, g: int, w: int) -> float:
    """Return the cost of a new bin of kind g with one item."""
    return cost(c, g, Totals(1, c.need[g, w], c.base[g, w], c.size[w]), c.rank[g, w], 0, -1, w)


@step
def refresh(c: FillCosts, b: Bins, s: int) -> None:
    """Recompute the totals, sorted steps and cost of slot s from its items, so that rounding errors do not accumulate."""
    g, p = b.kind[s], c.rank.shape[2]
    load, need, base, size, n_step = 0, 0.0, 0.0, 0.0, 0
    steps = b.steps[s]
    for k in range(b.n_item[s]):
        w = b.items[s, k]
        load, need, base, size = load + c.load[w], need + c.need[g, w], base + c.base[g, w], size + c.size[w]
        for j in range(p):
            step, at = c.rank[g, w, j], n_step
            while at > 0 and steps[at - 1] > step:
                steps[at] = steps[at - 1]
                at -= 1
            steps[at] = step
            n_step += 1
    b.load[s], b.need[s], b.base[s], b.size[s] = load, need, base, size
    b.cost[s] = cost(c, g, Totals(b.n_item[s], need, base, size), steps, n_step, -1, -1)


@step
def put(c: FillCosts, b: Bins, s: int, w: int) -> None:
    """Add an item to slot s."""
    if b.n_item[s] == 0:
        n_slot = len(b.place)
        b.place[s] = b.open[n_slot]
        b.open[b.open[n_slot]] = s
        b.open[n_slot] += 1
        b.used[b.kind[s]] += 1
    b.items[s, b.n_item[s]] = w
    b.n_item[s] += 1
    b.where[w] = s
    refresh(c, b, s)


@entry
def put_all(c: FillCosts, b: Bins, slot: IntArray) -> None:
    """Add each item to its slot, `slot` (n,); items with -1 stay outside."""
    for w in range(len(slot)):
        if slot[w] >= 0:
            put(c, b, slot[w], w)


@entry
def split(c: FillCosts, b: Bins, out: FloatArray) -> None:
    """Write (n,) the room of each item: its need, then room where it saves most, then the rest up to the items' sizes.

    Room that saves nothing still reduces the size beyond the room.
    """
    p = c.rank.shape[2]
    for k in range(b.open[len(b.place)]):
        s = b.open[k]
        g = b.kind[s]
        for j in range(b.n_item[s]):
            out[b.items[s, j]] = c.need[g, b.items[s, j]]
        left = shares(c, g, b.steps[s], b.n_item[s] * p, c.room[g] - b.need[s], out)
        for j in range(b.n_item[s]):
            w = b.items[s, j]
            more = min(max(left, 0.0), max(c.size[w] - out[w], 0.0))
            out[w] += more
            left -= more


@step
def take(c: FillCosts, b: Bins, w: int) -> None:
    """Remove an item from its slot."""
    s = b.where[w]
    k = 0
    while b.items[s, k] != w:
        k += 1
    b.n_item[s] -= 1
    b.items[s, k] = b.items[s, b.n_item[s]]
    b.where[w] = -1
    if b.n_item[s] == 0:
        n_slot = len(b.place)
        b.open[n_slot] -= 1
        last = b.open[b.open[n_slot]]
        b.open[b.place[s]] = last
        b.place[last] = b.place[s]
        b.place[s] = -1
        b.used[b.kind[s]] -= 1
    refresh(c, b, s)


@step
def vacant(b: Bins) -> int:
    """Return an empty slot: there are as many slots as items, so a removed item always leaves one."""
    for s in range(len(b.place)):
        if b.place[s] < 0:
            return s
    return -1


@step
def cheapest(c: FillCosts, b: Bins, w: int, barred: int, per_load: bool) -> tuple[int, int, float]:
    """Return (slot or -1, kind of a new bin or -1, added cost) of the best place for an item.

    With `per_load`, a new bin costs only the item's share of it, as if other items will fill it. Slot `barred` is skipped.
    """
    best, slot, kind = np.inf, -1, -1
    n_slot = len(b.place)
    for k in range(b.open[n_slot]):
        s = b.open[k]
        if s != barred and fits(c, b, s, -1, w):
            added = changed(c, b, s, -1, w) - b.cost[s]
            if added < best or (added == best and s < slot):
                best, slot = added, s
    for g in range(len(c.available)):
        if b.used[g] < c.available[g] and c.allowed[g, w]:
            added = alone(c, g, w)
            if per_load:
                added -= c.opening[g] * (1.0 - c.load[w] / c.capacity[g])
            if added < best:
                best, slot, kind = added, -1, g
    return slot, kind, best


@step
def insert(c: FillCosts, b: Bins, w: int, barred: int, per_load: bool) -> bool:
    """Insert an item where it costs least; return False if no bin can hold it."""
    slot, kind, _ = cheapest(c, b, w, barred, per_load)
    if slot < 0:
        if kind < 0:
            return False
        slot = vacant(b)
        b.kind[slot] = kind
    put(c, b, slot, w)
    return True


@entry
def best_fit(c: FillCosts, b: Bins, order: IntArray, per_load: bool) -> int:
    """Insert items one after another where each costs least; return the number of items that no bin can hold."""
    left = 0
    for w in order:
        if not insert(c, b, w, -1, per_load):
            left += 1
    return left


@entry
def total(b: Bins) -> float:
    """Return the cost of all bins in use."""
    value = 0.0
    for k in range(b.open[len(b.place)]):
        value += b.cost[b.open[k]]
    return value


@step
def draw(state: NDArray[np.uint64]) -> float:
    """Return a uniform random number in [0, 1): xorshift64* (Vigna 2016)."""
    x = state[0]
    x ^= x >> np.uint64(12)
    x ^= x << np.uint64(25)
    x ^= x >> np.uint64(27)
    state[0] = x
    return float((x * np.uint64(2685821657736338717)) >> np.uint64(11)) * 2.0**-53


@step
def accept(rise: float, heat: float, state: NDArray[np.uint64]) -> bool:
    """Return whether a move is accepted by the Metropolis criterion."""
    return bool(rise <= 0.0 or (heat > 0.0 and draw(state) < math.exp(-rise / heat)))


@step
def move(c: FillCosts, b: Bins, heat: float, state: NDArray[np.uint64]) -> float:
    """Try to move a random item to a random bin in use, or to a new one; return the change of cost."""
    n_slot = len(b.place)
    w = int(draw(state) * len(b.where))
    here = b.where[w]
    k = int(draw(state) * (b.open[n_slot] + 1))
    left = changed(c, b, here, w, -1) - b.cost[here]
    if k == b.open[n_slot]:
        g = int(draw(state) * len(c.available))
        if b.n_item[here] == 1 or b.used[g] >= c.available[g] or not c.allowed[g, w]:
            return 0.0
        rise = left + alone(c, g, w)
        if not accept(rise, heat, state):
            return 0.0
        there = vacant(b)
        b.kind[there] = g
    else:
        there = b.open[k]
        if there == here or not fits(c, b, there, -1, w):
            return 0.0
        rise = left + changed(c, b, there, -1, w) - b.cost[there]
        if not accept(rise, heat, state):
            return 0.0
    before = b.cost[here] + b.cost[there]
    take(c, b, w)
    put(c, b, there, w)
    return float(b.cost[here] + b.cost[there] - before)


@step
def swap(c: FillCosts, b: Bins, heat: float, state: NDArray[np.uint64]) -> float:
    """Try to exchange two random items of different bins; return the change of cost."""
    v, w = int(draw(state) * len(b.where)), int(draw(state) * len(b.where))
    here, there = b.where[v], b.where[w]
    if here == there or not fits(c, b, here, v, w) or not fits(c, b, there, w, v):
        return 0.0
    before = b.cost[here] + b.cost[there]
    rise = changed(c, b, here, v, w) + changed(c, b, there, w, v) - before
    if not accept(rise, heat, state):
        return 0.0
    for k in range(b.n_item[here]):
        if b.items[here, k] == v:
            b.items[here, k] = w
    for k in range(b.n_item[there]):
        if b.items[there, k] == w:
            b.items[there, k] = v
    b.where[v], b.where[w] = there, here
    refresh(c, b, here)
    refresh(c, b, there)
    return float(b.cost[here] + b.cost[there] - before)


@step
def exchange_kind(c: FillCosts, b: Bins, heat: float, state: NDArray[np.uint64]) -> float:
    """Try to change the kind of a random bin, keeping its items; return the change of cost."""
    s = b.open[int(draw(state) * b.open[len(b.place)])]
    old, g = b.kind[s], int(draw(state) * len(c.available))
    if g == old or b.used[g] >= c.available[g] or b.load[s] > c.capacity[g]:
        return 0.0
    need = 0.0
    for k in range(b.n_item[s]):
        if not c.allowed[g, b.items[s, k]]:
            return 0.0
        need += c.need[g, b.items[s, k]]
    if need > c.room[g] * (1.0 + FREE):
        return 0.0
    before = b.cost[s]
    b.kind[s] = g
    refresh(c, b, s)
    if accept(b.cost[s] - before, heat, state):
        b.used[old] -= 1
        b.used[g] += 1
        return float(b.cost[s] - before)
    b.kind[s] = old
    refresh(c, b, s)
    return 0.0


@step
def dissolve(c: FillCosts, b: Bins, heat: float, state: NDArray[np.uint64], hand: IntArray) -> float:
    """Try to empty a random bin into the others, each item where it costs least, and undo it if rejected; return the change."""
    s = b.open[int(draw(state) * b.open[len(b.place)])]
    before, kind, n = total(b), b.kind[s], b.n_item[s]
    for k in range(n):
        hand[k] = b.items[s, k]
    for k in range(n):
        take(c, b, hand[k])
    for k in range(1, n):  # heaviest first
        w, at = hand[k], k
        while at > 0 and c.load[hand[at - 1]] < c.load[w]:
            hand[at] = hand[at - 1]
            at -= 1
        hand[at] = w
    done = 0
    while done < n and insert(c, b, hand[done], s, True):
        done += 1
    after = total(b)
    if done == n and accept(after - before, heat, state):
        return after - before
    for k in range(done):
        take(c, b, hand[k])
    slot = vacant(b)
    b.kind[slot] = kind
    for k in range(n):
        put(c, b, slot, hand[k])
    return 0.0


class Annealing(NamedTuple):
    """Arrays of an annealing run."""

    random: NDArray[np.uint64]  # (1,) state of the random number generator
    where: IntArray  # (n,) slot of each item in the best assignment
    kind: IntArray  # (s,) kind of bin in each slot of it
    hand: IntArray  # scratch: items of one bin


@entry
def anneal(c: FillCosts, b: Bins, run: Annealing, moves: int, hot: float, cold: float, best: float) -> float:
    """Anneal for a number of moves from temperature `hot` to `cold`; return the cost of the best assignment so far."""
    state, value = run.random, total(b)
    fall = (cold / hot) ** (1.0 / max(1, moves)) if hot > 0.0 else 1.0
    heat = hot
    for _ in range(moves):
        which = draw(state)
        if which < 0.40:
            value += move(c, b, heat, state)
        elif which < 0.985:
            value += swap(c, b, heat, state)
        elif which < 0.995:
            value += exchange_kind(c, b, heat, state)
        else:
            value += dissolve(c, b, heat, state, run.hand)
        if value < best - 1e-12:
            best = value
            for w in range(len(run.where)):
                run.where[w] = b.where[w]
            for s in range(len(run.kind)):
                run.kind[s] = b.kind[s]
        heat *= fall
    return best
