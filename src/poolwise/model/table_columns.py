"""Columns of a table that grows at its end."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from poolwise.arrays import FloatArray, IntArray

Column = NDArray[np.generic]
Scalar = TypeVar("Scalar", bound=np.generic)


def grown(column: NDArray[Scalar], length: int, more: NDArray[Scalar]) -> NDArray[Scalar]:
    """Return a column with `more` appended after its first `length` rows; its capacity is doubled if necessary."""
    kind = np.result_type(column, more)
    need = length + len(more)
    if need > len(column) or kind != column.dtype or not column.flags.writeable:
        room = np.empty(max(need, 2 * length, 16), dtype=kind)
        room[:length] = column[:length]
        column = room
    column[length:need] = more
    return column


class ShownColumns(Mapping[str, NDArray[Scalar]]):
    """Columns by name, each cut to the rows that have arrived."""

    def __init__(self, columns: Mapping[str, NDArray[Scalar]], length: Callable[[], int]) -> None:
        self._columns, self._length = columns, length

    def __getitem__(self, name: str) -> NDArray[Scalar]:
        return self._columns[name][: self._length()]

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __len__(self) -> int:
        return len(self._columns)


@dataclass
class Kinds:
    """Kinds of rows: rows with equal values in some columns have the same number (see `JobTable.kinds`).

    Attributes
    ----------
    of : (n_row,) number of each row's kind
    value : values of the columns, by number
    number : values -> number
    refills : number of the table's refills that the kinds already include
    """

    of: IntArray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    value: list[tuple[Any, ...]] = field(default_factory=list)
    number: dict[tuple[Any, ...], int] = field(default_factory=dict)
    refills: int = 0
    held: IntArray = field(default_factory=lambda: np.zeros(0, dtype=np.int64), repr=False)  # `of`, with spare capacity

    def append(self, columns: Sequence[Column]) -> None:
        """Assign numbers to the next rows, given their columns, in the order in which kinds are first seen."""
        done, numbers = len(self.of), self._numbers(columns)
        self.held = grown(self.held, done, numbers)
        self.of = self.held[: done + len(numbers)]

    def refill(self, rows: slice, columns: Sequence[Column]) -> None:
        """Assign new numbers to rows that now belong to other jobs."""
        self.held[rows] = self._numbers(columns)

    def _numbers(self, columns: Sequence[Column]) -> IntArray:
        numbers = []
        for value in zip(*(column.tolist() for column in columns), strict=True):
            number = self.number.setdefault(value, len(self.number))
            if number == len(self.value):
                self.value.append(value)
            numbers.append(number)
        return np.array(numbers, dtype=np.int64)


def log10(values: IntArray | FloatArray) -> FloatArray:
    """Return the log10 of positive values, (n,), as `math.log10` computes it.

    Integers with few distinct values are looked up in a table.
    """
    most = int(values.max(initial=0))
    if values.dtype == np.int64 and most < len(values):
        table = np.array([math.log10(v) for v in range(1, most + 1)], dtype=np.float64)
        logarithms: FloatArray = table[values.astype(np.int64, copy=False) - 1]
        return logarithms
    return np.array([math.log10(v) for v in values.tolist()], dtype=np.float64)
