"""Prices and power of units: price lists and power tables, one row per unit type in the order of the numbers.

Source: VineSim, sections 4.4 and 5.2.2; specs of the accelerators, "Files".
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from poolwise.arrays import FloatArray
from poolwise.traces.numbers import number_text
from poolwise.traces.text_files import write_text
from poolwise.traces.vinesim.rows import ABSENT, cells, rows_by_unit_type
from poolwise.traces.vinesim.types import Types


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


def read_prices(path: Path, types: Types | None = None) -> FloatArray:
    """Read (n_unit_type,) purchase prices, NaN for types after the last row; raise InputError with file, line and field."""
    types = types if types is not None else Types()
    table = rows_by_unit_type(path, types.units, ("price",))
    prices = np.full(len(types.units), np.nan)
    prices[: len(table)] = [row.number(0, "price") for row in table]
    return prices


def write_prices(prices: FloatArray, path: Path) -> None:
    """Write (n_unit_type,) prices atomically, up to the first type whose price is NaN."""
    write_text(path, "".join(f"{number_text(value)}\n" for value in prices[~np.isnan(prices)].tolist()))


def read_power(path: Path, types: Types | None = None, columns: int | None = None) -> Power:
    """Read a power table: one column per task type, then idle watts, which default to 0.

    Parameters
    ----------
    columns
        Number of task types with a column, as in the corresponding affinity table; by default all.

    Raises InputError with file, line and field.
    """
    types = types if types is not None else Types()
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
