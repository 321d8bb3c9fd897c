"""Helpers for the arrays passed to kernels, shared by all compiled engines."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from poolwise.arrays import IntArray
from poolwise.quantities import NEVER

T = TypeVar("T", bound=np.generic)
A = TypeVar("A")


def blank(*shape: int) -> IntArray:
    """Return zeros of a shape for a kernel to fill."""
    return np.zeros(shape, dtype=np.int64)


def zeros_of(kind: type[A], size: int, /, **arrays: Any) -> A:
    """Return a named tuple of arrays: the given ones, and (size,) integer zeros for every other field."""
    fields: tuple[str, ...] = getattr(kind, "_fields")  # noqa: B009  # not known to the type checker
    return kind(**{name: arrays[name] if name in arrays else blank(size) for name in fields})


def read_only(column: NDArray[T]) -> NDArray[T]:
    """Return a contiguous read-only view, so that all arrays have one type and no kernel is compiled twice."""
    view = np.ascontiguousarray(column).view()
    view.setflags(write=False)
    return view


class ArrayTemplates:
    """Copies of arrays and records, taken before a replay, so that another replay can start in the same memory.

    Parameters
    ----------
    arrays
        Arrays, records, and named tuples of arrays; read-only arrays are not copied.
    """

    def __init__(self, arrays: Iterable[Any]) -> None:
        flat = [array for group in arrays for array in (group if isinstance(group, tuple) else (group,))]
        self._saved = [(array, array.copy()) for array in flat if isinstance(array, np.ndarray) and array.flags.writeable]
        self._records = [(record, record.copy()) for record in flat if isinstance(record, np.void)]

    def restore(self) -> None:
        """Restore the contents of the arrays and records."""
        for array, before in self._saved:
            np.copyto(array, before)
        for record, scalars in self._records:
            for name in scalars.dtype.names or ():
                record[name] = scalars[name]


def starts_of(job: IntArray, start: IntArray, awaited: IntArray, jobs: int) -> IntArray:
    """Return the start times (ns) of the `awaited` rows, (k,), among `jobs` jobs, given the runs, (n_run,).

    The time is `NEVER` for a row that has no run.
    """
    values = np.full(jobs, NEVER)
    values[job] = start
    out: IntArray = values[awaited]
    return out
