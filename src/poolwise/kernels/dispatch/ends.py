"""Ends of the tasks on busy units: a radix heap, a queue for a clock that never goes back.

An end stands in the row of the highest digit of six bits in which it differs from the last end that was taken out, in the
slot that this digit names. So the ends of a row come before those of the rows above; and when the clock comes to a slot,
the ends there that are not due go to rows below. An end thus stands in at most as many slots as its distance has digits,
one more where a higher digit changes meanwhile, however many others there are. Source: Ahuja, Mehlhorn, Orlin and Tarjan
(1990), "Faster algorithms for the shortest path problem", one level.
"""

from __future__ import annotations

from poolwise.kernels.dispatch.state import BITS, MASK, RADIX, Ends
from poolwise.kernels.jit import step
from poolwise.units import NEVER


@step
def push(ends: Ends, unit: int, end: int) -> None:
    """Let the task on a unit end at a time that is not before the last end."""
    row, rest = 0, (end ^ ends.last[0]) >> BITS
    while rest > 0:
        row += 1
        rest >>= BITS
    slot = end >> BITS * row & MASK
    ends.end[unit], ends.next[unit] = end, ends.first[row, slot]
    ends.first[row, slot] = unit
    ends.least[row, slot] = min(ends.least[row, slot], end)
    ends.soonest[row] = min(ends.soonest[row], end)


@step
def lowest(ends: Ends) -> int:
    """Row that holds the least end; the uppermost if there is no end."""
    for row in range(ends.soonest.size - 1):
        if ends.soonest[row] < NEVER:
            return row
    return ends.soonest.size - 1


@step
def pop(ends: Ends, row: int) -> int:
    """Take out the slot with the least end, which is in this row: its first unit, the others follow by `next`."""
    slot = ends.soonest[row] >> BITS * row & MASK
    ends.last[0] = ends.soonest[row]
    unit = ends.first[row, slot]
    ends.first[row, slot], ends.least[row, slot] = -1, NEVER
    soonest = NEVER
    for k in range(RADIX):
        soonest = min(soonest, ends.least[row, k])
    ends.soonest[row] = soonest
    return int(unit)
