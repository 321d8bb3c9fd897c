"""Optimal packing of a few items by enumeration of all their partitions into bins of all kinds."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from poolwise.batch.search.packing import BinPacking
from poolwise.kernels.batch.fill import FillCosts
from poolwise.kernels.batch.master import add, empty_master

FEW = 6
"""Maximum number of items for enumerating all partitions; 6 items have 203 partitions."""
FULL = 1 + 1e-9
"""Relative tolerance of a bin's room for rounding."""


class Content(NamedTuple):
    """Items (as bits) in a bin of a kind, with their cost at the best shares, and their remote memory in MiB."""

    cost: float
    items: int
    kind: int
    outside: float


def pack_few(costs: FillCosts, remote: float) -> BinPacking | None:
    """Pack all items at least cost; return None if no packing keeps within `remote` MiB of remote memory.

    `costs` must not charge for remote memory. Branch and bound: the next bin contains the first remaining item. Each
    bin's cost is divided evenly over its items; the bound of an item is its smallest share in any bin.
    """
    n = len(costs.load)
    contents = _contents(costs)
    holding = [sorted(content for content in contents if content.items & -content.items == 1 << w) for w in range(n)]
    least = [
        min((content.cost / content.items.bit_count() for content in contents if content.items >> w & 1), default=math.inf)
        for w in range(n)
    ]
    available = costs.available.tolist()
    best, chosen = math.inf, None
    bins: list[Content] = []

    def extend(left: int, cost: float, room: float) -> None:
        nonlocal best, chosen
        if not left:
            if cost < best:
                best, chosen = cost, tuple(bins)
            return
        if cost + sum(least[w] for w in range(n) if left >> w & 1) >= best:
            return
        for content in holding[(left & -left).bit_length() - 1]:
            if content.items & ~left or content.outside > room or not available[content.kind]:
                continue
            available[content.kind] -= 1
            bins.append(content)
            extend(left & ~content.items, cost + content.cost, room - content.outside)
            bins.pop()
            available[content.kind] += 1

    extend((1 << n) - 1, 0.0, remote * FULL)
    if chosen is None:
        return None
    slot, kind = np.zeros(n, dtype=np.int64), np.zeros(n, dtype=np.int64)
    for number, content in enumerate(chosen):
        slot[_rows(content.items)], kind[number] = number, content.kind
    return BinPacking(slot, kind, best, 0)


def _contents(costs: FillCosts) -> list[Content]:
    """Return every set of items on every kind of bin that holds it."""
    n = len(costs.load)
    master = empty_master(costs, 0.0, len(costs.available) << n, n * len(costs.available) << n)
    contents = []
    for g in range(len(costs.available)):
        for items in range(1, 1 << n):
            rows = _rows(items)
            held = costs.load[rows].sum() <= costs.capacity[g] and costs.need[g, rows].sum() <= costs.room[g] * FULL
            if held and costs.allowed[g, rows].all():
                k = add(costs, master, g, rows)
                contents.append(Content(float(master.cost[k]), items, g, float(master.far[k] * master.unit[0])))
    return contents


def _rows(items: int) -> np.ndarray:
    return np.array([w for w in range(items.bit_length()) if items >> w & 1], dtype=np.int64)
