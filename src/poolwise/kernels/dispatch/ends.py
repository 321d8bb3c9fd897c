"""Radix heap of task ends: a monotone priority queue, for a clock that never goes back.

An end is stored in the row of the highest six-bit digit in which it differs from the last end removed, in the slot given by
this digit. So all ends of a row precede those of the rows above. When the clock reaches a slot, its ends that are not due move
to lower rows. An end moves at most once per digit of its distance, plus once if a higher digit changes meanwhile, regardless of
the number of other ends. Source: Ahuja, Mehlhorn, Orlin and Tarjan (1990), "Faster algorithms for the shortest path problem",
one-level radix heap.
"""

from __future__ import annotations

from poolwise.kernels.dispatch.state import BITS, MASK, RADIX, Ends
from poolwise.kernels.jit import step
from poolwise.quantities import NEVER


@step
def push(ends: Ends, unit: int, end: int) -> None:
    """Add the end of the task on a unit; it must not precede the last end removed."""
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
    """Return the row that contains the least end; the last row if the heap is empty."""
    for row in range(ends.soonest.size - 1):
        if ends.soonest[row] < NEVER:
            return row
    return ends.soonest.size - 1


@step
def pop(ends: Ends, row: int) -> int:
    """Remove the slot with the least end, in this row; return its first unit, from which `next` leads to the others."""
    slot = ends.soonest[row] >> BITS * row & MASK
    ends.last[0] = ends.soonest[row]
    unit = ends.first[row, slot]
    ends.first[row, slot], ends.least[row, slot] = -1, NEVER
    soonest = NEVER
    for k in range(RADIX):
        soonest = min(soonest, ends.least[row, k])
    ends.soonest[row] = soonest
    return int(unit)
