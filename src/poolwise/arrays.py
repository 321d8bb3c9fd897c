"""Names for the array types used in signatures; shapes stand in each docstring."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]


def frozen(array: NDArray[np.generic]) -> NDArray[np.generic]:
    """Make an array read-only and return it, so that a mistaken write fails where it happens."""
    array.setflags(write=False)
    return array
