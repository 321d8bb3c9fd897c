"""Arrays as kernels take them: each family makes its own, of the same few kinds."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from poolwise.arrays import IntArray
from poolwise.units import NEVER

T = TypeVar("T", bound=np.generic)


def blank(size: int) -> IntArray:
    """(size,) zeros, for a kernel to fill."""
    return np.zeros(size, dtype=np.int64)


def read_only(column: NDArray[T]) -> NDArray[T]:
    """Return a contiguous read-only view: one type of array, so that no kernel is compiled twice."""
    view = np.ascontiguousarray(column).view()
    view.setflags(write=False)
    return view


class ArrayTemplates:
    """Arrays as they are before a replay, so that another can begin in them.

    Parameters
    ----------
    arrays
        Arrays, and named tuples of such; read-only ones are left alone.
    """

    def __init__(self, arrays: Iterable[Any]) -> None:
        flat = [array for group in arrays for array in (group if isinstance(group, tuple) else (group,))]
        changed = [array for array in flat if isinstance(array, np.ndarray) and array.flags.writeable]
        self._kept = [(array, array.copy()) for array in changed]

    def restore(self) -> None:
        """Write back what was in them."""
        for array, before in self._kept:
            np.copyto(array, before)


def starts_of(job: IntArray, start: IntArray, sought: IntArray, jobs: int) -> IntArray:
    """(k,) ns at which sought rows of `jobs` jobs start, of runs (n_run,) of jobs that start; `NEVER` for one that has none."""
    found = np.full(jobs, NEVER)
    found[job] = start
    out: IntArray = found[sought]
    return out
