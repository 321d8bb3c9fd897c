"""Names of the array types used in signatures; docstrings state the shapes."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]


def blocks(size: int) -> Iterator[slice]:
    """Return slices that cover `size` rows, each small enough for intermediate results to stay in the processor's cache.

    The first access to new memory costs more than summing its contents once or twice.
    """
    step = 1 << 14
    return (slice(first, first + step) for first in range(0, size, step))


def frozen(array: NDArray[np.generic]) -> NDArray[np.generic]:
    """Make an array read-only and return it, so that an accidental write fails where it happens."""
    array.setflags(write=False)
    return array


def immutable(array: IntArray) -> IntArray:
    """Return a read-only array with the same values: the array itself if it is read-only and owns its data, else a copy."""
    if array.base is None and not array.flags.writeable:
        return array
    copy = array.copy()
    copy.setflags(write=False)
    return copy


def arrays_equal(before: IntArray, now: IntArray) -> bool:
    """Return whether two arrays are equal, in constant time if they are the same `immutable` array."""
    return before is now or np.array_equal(before, now)
