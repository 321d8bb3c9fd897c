"""Water filling: cost of a set of items on one bin, with the bin's room allocated where it saves most.

An item needs a minimum room, which depends on the kind of bin. Each of its steps uses additional room, up to the width of the
step, and saves `gain` per unit. The gains of an item decrease from one step to the next, so taking the steps of all items by
decreasing gain is optimal. The rank of a step in that order is fixed per kind of bin; a bin keeps the ranks of its items' steps
sorted.
"""

from __future__ import annotations

from typing import NamedTuple

from poolwise.arrays import BoolArray, FloatArray, IntArray
from poolwise.kernels.jit import entry, step


class FillCosts(NamedTuple):
    """Costs of n items on g kinds of bins, with p steps per item."""

    load: IntArray  # (n,) share of a bin's capacity that an item uses (cores)
    size: FloatArray  # (n,) most room that an item uses
    need: FloatArray  # (g, n) least room that it uses
    base: FloatArray  # (g, n) cost of an item at its least room
    allowed: BoolArray  # (g, n) whether an item may be on a bin of the kind
    rank: IntArray  # (g, n, p) ranks of an item's steps, ascending
    # (g, n * p) by rank: room that a step uses, cost saved per unit of it
    width: FloatArray
    gain: FloatArray
    owner: IntArray  # (g, n * p) by rank: the item
    available: IntArray  # (g,) number of bins
    capacity: IntArray  # (g,) load that a bin can hold
    room: FloatArray  # (g,) room of a bin
    opening: FloatArray  # (g,) cost of a bin that has items
    outside: FloatArray  # (1,) cost per unit of size beyond the room


class Totals(NamedTuple):
    """Totals over the items on a bin: their number, least room, cost at their least room, and most room."""

    items: int
    need: float
    base: float
    size: float


@step
def saved(c: FillCosts, g: int, steps: IntArray, n_step: int, room: float, without: int, extra: int) -> float:
    """Return the cost saved by filling `room` with a bin's sorted steps, leaving out item `without` and adding item `extra`."""
    total, k, e = 0.0, 0, 0
    n_extra = c.rank.shape[2] if extra >= 0 else 0
    while room > 0.0:
        if k < n_step and without >= 0 and c.owner[g, steps[k]] == without:
            k += 1
            continue
        if e < n_extra and (k >= n_step or c.rank[g, extra, e] < steps[k]):
            step = c.rank[g, extra, e]
            e += 1
        elif k < n_step:
            step = steps[k]
            k += 1
        else:
            break
        take = min(room, c.width[g, step])
        total += take * c.gain[g, step]
        room -= take
    return total


@entry
def cost(c: FillCosts, g: int, of: Totals, steps: IntArray, n_step: int, without: int, extra: int) -> float:
    """Return the cost of a bin whose totals already include the change by `without` and `extra`; 0 if it is empty."""
    if of.items == 0:
        return 0.0
    value: float = c.opening[g] + of.base - saved(c, g, steps, n_step, c.room[g] - of.need, without, extra)
    if of.size > c.room[g]:
        value += c.outside[0] * (of.size - c.room[g])
    return value


@step
def shares(c: FillCosts, g: int, steps: IntArray, n_step: int, room: float, out: FloatArray) -> float:
    """Add to `out` (n,) the room that each item gets by filling; return the room left."""
    for k in range(n_step):
        if room <= 0.0:
            break
        take = min(room, c.width[g, steps[k]])
        out[c.owner[g, steps[k]]] += take
        room -= take
    return room
