"""Tables with a row per unit type, in the order of their numbers and without a header: affinities, prices and power.

An affinity is the operations per microsecond of a unit type for a task type; columns are task types. A unit type cannot run a
task type whose cell is 0, `--` or missing. Source: VineSim, sections 4.4, 5.2.2 and 5.3.1; specs of the accelerators, "Model"
and "Files".
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

import numpy as np

from poolwise.arrays import FloatArray
from poolwise.errors import UnknownNameError
from poolwise.traces.numbers import number_text
from poolwise.traces.text_files import write_text
from poolwise.traces.vinesim.rows import ABSENT, Line, cells, read_lines, rows_by_unit_type
from poolwise.traces.vinesim.types import STANDARD, Types

INT = 0
"""Task type whose column contains absolute rates in a relative table."""


def read_affinity(path: Path, kind: str = "absolute", types: Types = STANDARD) -> FloatArray:
    """Read (n_unit_type, n_task_type) operations per microsecond, 0 where a unit type cannot run a task type.

    Parameters
    ----------
    kind
        "absolute": every cell is operations per microsecond; "relative": only column INT is, and the other cells are factors of
        it.

    Raises InputError with file, line and field for text, a negative number, more rows or columns than types, and factors of a
    missing INT rate.
    """
    if kind not in (conventions := ("absolute", "relative")):
        raise UnknownNameError.of("convention", kind, conventions, field="affinity-kind")
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


@dataclass(frozen=True, eq=False)
class Power:
    """Watts of each unit type.

    Attributes
    ----------
    busy : (n_unit_type, n_task_type) W while a task of the type occupies the unit, data transfer included; NaN if not given
    idle : (n_unit_type,) W; NaN for types without a row
    """

    busy: FloatArray
    idle: FloatArray


def read_prices(path: Path, types: Types = STANDARD) -> FloatArray:
    """Read purchase prices, (n_unit_type,), NaN for types after the last row; raise InputError with file, line and field."""
    table = rows_by_unit_type(path, types.units, ("price",))
    prices = np.full(len(types.units), np.nan)
    prices[: len(table)] = [row.number(0, "price") for row in table]
    return prices


def read_power(path: Path, types: Types = STANDARD, columns: int | None = None) -> Power:
    """Read a power table: one column per task type, then idle watts, which default to 0.

    Parameters
    ----------
    columns
        Number of task types with a column, as in the corresponding affinity table; by default all.

    Raises InputError with file, line and field.
    """
    tasks = types.tasks[:columns]
    busy, idle = np.full((len(types.units), len(types.tasks)), np.nan), np.full(len(types.units), np.nan)
    for unit, row in enumerate(rows_by_unit_type(path, types.units)):
        watts = cells(row, (*tasks, "idle"), "task types and idle", np.nan)
        busy[unit, : len(tasks)], idle[unit] = watts[:-1], np.nan_to_num(watts[-1])
    return Power(busy, idle)


def write_power(power: Power, path: Path, comments: Sequence[str] = ()) -> None:
    """Write a power table with its column of idle watts, atomically."""
    heading = "".join(f"# {comment}\n" for comment in comments)
    table = np.concatenate([power.busy, power.idle[:, None]], axis=1)[~np.isnan(power.idle)]
    words = ((ABSENT if math.isnan(value) else number_text(value) for value in row) for row in table.tolist())
    write_text(path, heading + "".join(" ".join(row) + "\n" for row in words))
