"""Arrays as kernels take them: each family makes its own, of the same few kinds."""

from __future__ import annotations

from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from poolwise.arrays import IntArray

T = TypeVar("T", bound=np.generic)


def blank(size: int) -> IntArray:
    """(size,) zeros, for a kernel to fill."""
    return np.zeros(size, dtype=np.int64)


def read_only(column: NDArray[T]) -> NDArray[T]:
    """Return a contiguous read-only view: one type of array, so that no kernel is compiled twice."""
    view = np.ascontiguousarray(column).view()
    view.setflags(write=False)
    return view
