"""Affinity tables: operations per microsecond of each unit type for each task type.

Rows are unit types and columns are task types, both in the order of their numbers, without a header. A unit type cannot run a
task type whose cell is 0, `--` or missing. Source: VineSim, section 5.3.1; specs of the accelerators, "Model".
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import Literal, get_args

import numpy as np

from poolwise.arrays import FloatArray
from poolwise.errors import UnknownNameError
from poolwise.traces.numbers import number_text
from poolwise.traces.text_files import write_text
from poolwise.traces.vinesim.rows import ABSENT, Line, cells, read_lines, rows_by_unit_type
from poolwise.traces.vinesim.types import Types

AffinityKind = Literal["absolute", "relative"]
INT = 0
"""Task type whose column contains absolute rates in a relative table."""


def check_kind(kind: str) -> None:
    """Raise UnknownNameError for an unknown convention."""
    if kind not in get_args(AffinityKind):
        raise UnknownNameError.of("convention", kind, get_args(AffinityKind), field="affinity-kind")


def read_affinity(path: Path, kind: AffinityKind = "absolute", types: Types | None = None) -> FloatArray:
    """Read (n_unit_type, n_task_type) operations per microsecond, 0 where a unit type cannot run a task type.

    Parameters
    ----------
    kind
        "absolute": every cell is operations per microsecond; "relative": column INT is, and the others are factors of it.

    Raises InputError with file, line and field for text, a negative number, more rows or columns than types, and factors of a
    missing INT rate.
    """
    check_kind(kind)
    types = types if types is not None else Types()
    table = rows_by_unit_type(path, types.units)
    rates = np.zeros((len(types.units), len(types.tasks)))
    for unit, row in enumerate(table):
        values = cells(row, types.tasks, "task types")
        rates[unit] = values if kind == "absolute" else _products(row, values, types)
    return rates


def _products(row: Line, values: FloatArray, types: Types) -> FloatArray:
    """Convert a row of factors to rates: products of the decimal numbers as written, rounded once."""
    if values[INT] == 0 and values.any():
        raise row.error(types.tasks[INT], "the row has factors but no INT rate", "write the INT rate of this unit type")
    factors = [Decimal(word) if word != ABSENT else Decimal(0) for word in row.words]
    for k in range(1, len(factors)):
        values[k] = float(factors[k] * factors[INT])
        if not math.isfinite(values[k]):
            raise row.error(types.tasks[k], "the product with the INT rate is too large", "write a smaller factor")
    return values


def count_columns(path: Path) -> int:
    """Return the number of task types in an affinity table; a power table has one more column."""
    return max(len(row.words) for row in read_lines(path))


def write_affinity(rates: FloatArray, path: Path, comments: Sequence[str] = ()) -> None:
    """Write (n_unit_type, n_task_type) operations per microsecond as an absolute table, atomically."""
    heading = "".join(f"# {comment}\n" for comment in comments)
    write_text(
        path, heading + "".join(" ".join(number_text(v) if v > 0 else ABSENT for v in row) + "\n" for row in rates.tolist())
    )
