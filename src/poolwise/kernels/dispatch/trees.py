"""Trees over units in arrays of 2 * base: the children of k are 2k and 2k + 1, the units the last `base` (a power of two).

The same as `policies.placement.trees`, which is what they are tested against.
"""

from __future__ import annotations

from poolwise.arrays import IntArray
from poolwise.kernels.jit import step


@step
def mark(tree: IntArray, unit: int, change: int) -> None:
    """Add 1 or -1 to a unit's count and to all above it."""
    k = (tree.size >> 1) + unit
    while k > 0:
        tree[k] += change
        k >>= 1


@step
def before(tree: IntArray, unit: int) -> int:
    """Units below `unit` that are marked."""
    base = tree.size >> 1
    if unit == base:
        return int(tree[1])
    k, count = base + unit, 0
    while k > 1:
        if k & 1:
            count += tree[k - 1]
        k >>= 1
    return count


@step
def at(tree: IntArray, number: int) -> int:
    """Marked unit with so many marked ones below it."""
    base, k = tree.size >> 1, 1
    while k < base:
        k <<= 1
        if number >= tree[k]:
            number -= tree[k]
            k += 1
    return k - base


@step
def first(tree: IntArray, low: int, high: int) -> int:
    """First marked unit from low to high (excluded), -1 if there is none."""
    below = before(tree, low)
    if below >= tree[1]:
        return -1
    unit = at(tree, below)
    return unit if unit < high else -1


@step
def put(tree: IntArray, unit: int, value: int) -> None:
    """Set a unit's number in a tree of minima."""
    k = (tree.size >> 1) + unit
    tree[k] = value
    while k > 1:
        k >>= 1
        least = min(tree[2 * k], tree[2 * k + 1])
        if tree[k] == least:
            return
        tree[k] = least


@step
def least(tree: IntArray) -> int:
    """First unit that has the least number."""
    base, k = tree.size >> 1, 1
    while k < base:
        k <<= 1
        if tree[k] != tree[1]:
            k += 1
    return k - base
