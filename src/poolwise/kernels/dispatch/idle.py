"""Ordered set of idle units with constant-time operations.

The number of a unit has three six-bit digits: its region, its block there, and its position in the block. For each digit there
are running counts in rows of 64. A row is a branch-free loop of fixed length, which compiles to a few vector instructions. Up
to 64**3 units the number of operations is constant; beyond that, only the row of regions is longer.
"""

from __future__ import annotations

import numpy as np

from poolwise.kernels.dispatch.state import BITS, MASK, RADIX, IdleArrays
from poolwise.kernels.jit import step


@step
def mark(idle: IdleArrays, unit: int, change: int) -> None:
    """Add 1 or -1 to the counts of all units after this one."""
    region, block = unit >> 2 * BITS, unit >> BITS
    for k in range(idle.regions.size):
        idle.regions[k] += change * (k > region)
    for k in range(RADIX):
        idle.blocks[region, k] += change * (k > block & MASK)
    for k in range(RADIX):
        idle.units[block, k] += change * (k > unit & MASK)
    idle.total[0] += change


@step
def before(idle: IdleArrays, unit: int) -> int:
    """Return the number of idle units with a lower number than `unit`."""
    region, block = unit >> 2 * BITS, unit >> BITS
    return int(idle.regions[region]) + int(idle.blocks[region, block & MASK]) + int(idle.units[block, unit & MASK])


@step
def at(idle: IdleArrays, number: int) -> int:
    """Return idle unit `number`, counted from 0, digit by digit; more than `number` units must be idle.

    The remainder has the width of the counts that it is compared with, so that more of them fit a vector.
    """
    region, rest = -1, np.int32(number)
    for k in range(idle.regions.size):
        region += int(idle.regions[k] <= rest)
    block, few = (region << BITS) - 1, np.int16(rest - idle.regions[region])
    for k in range(RADIX):
        block += int(idle.blocks[region, k] <= few)
    unit, fewer = (block << BITS) - 1, np.int8(few - idle.blocks[region, block & MASK])
    for k in range(RADIX):
        unit += int(idle.units[block, k] <= fewer)
    return unit


@step
def first(idle: IdleArrays, low: int, high: int) -> int:
    """Return the first idle unit in [low, high), -1 if there is none."""
    below = before(idle, low)
    return at(idle, below) if below < before(idle, high) else -1
