"""Helpers for the arrays passed to kernels, shared by all compiled engines."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from poolwise.arrays import IntArray
from poolwise.units import NEVER

T = TypeVar("T", bound=np.generic)


def blank(size: int) -> IntArray:
    """Return (size,) zeros for a kernel to fill."""
    return np.zeros(size, dtype=np.int64)


def read_only(column: NDArray[T]) -> NDArray[T]:
    """Return a contiguous read-only view; with one array type, no kernel is compiled twice."""
    view = np.ascontiguousarray(column).view()
    view.setflags(write=False)
    return view


class ArrayTemplates:
    """Copies of arrays before a replay, so that another replay can start in the same arrays.

    Parameters
    ----------
    arrays
        Arrays, and named tuples of arrays; read-only ones are not copied.
    """

    def __init__(self, arrays: Iterable[Any]) -> None:
        flat = [array for group in arrays for array in (group if isinstance(group, tuple) else (group,))]
        changed = [array for array in flat if isinstance(array, np.ndarray) and array.flags.writeable]
        self._saved = [(array, array.copy()) for array in changed]

    def restore(self) -> None:
        """Restore the contents of the arrays."""
        for array, before in self._saved:
            np.copyto(array, before)


def starts_of(job: IntArray, start: IntArray, awaited: IntArray, jobs: int) -> IntArray:
    """Return (k,) ns at which `awaited` rows of `jobs` jobs start, given the runs (n_run,); `NEVER` for a job without a run."""
    found = np.full(jobs, NEVER)
    found[job] = start
    out: IntArray = found[awaited]
    return out
