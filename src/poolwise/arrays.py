"""Names for the array types used in signatures; shapes stand in each docstring."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]


def blocks(size: int) -> Iterator[slice]:
    """Slices that cover `size` rows, each small enough for intermediate results to stay in a processor's cache.

    Touching memory for the first time costs more than a sum or two.
    """
    step = 1 << 14
    return (slice(first, first + step) for first in range(0, size, step))


def frozen(array: NDArray[np.generic]) -> NDArray[np.generic]:
    """Make an array read-only and return it, so that a mistaken write fails where it happens."""
    array.setflags(write=False)
    return array


def kept(array: IntArray) -> IntArray:
    """Return an array that will not change: the same one if it owns its data and is read-only, else a copy."""
    if array.base is None and not array.flags.writeable:
        return array
    copy = array.copy()
    copy.setflags(write=False)
    return copy


def same(before: IntArray, now: IntArray) -> bool:
    """Whether two arrays are equal, which needs no look where they are one and the same that was `kept`."""
    return before is now or np.array_equal(before, now)
