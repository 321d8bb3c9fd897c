"""Deployments: the units and their locations. Fields: type x y.

Source: VineSim, section 5.2.1, "Deployment description"; specs of the accelerators, "Files".
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from poolwise.arrays import IntArray, frozen
from poolwise.traces.text_files import write_text
from poolwise.traces.vinesim.rows import read_lines, whole_column
from poolwise.traces.vinesim.types import Types

FIELDS = ("type", "x", "y")


@dataclass(frozen=True, eq=False)
class UnitList:
    """Units in the order of the file.

    Attributes
    ----------
    type : (n_unit,) number of the unit type
    x, y : (n_unit,) rack and shelf, from 0
    """

    type: IntArray
    x: IntArray
    y: IntArray

    def __post_init__(self) -> None:
        for array in (self.type, self.x, self.y):
            frozen(array)

    def __len__(self) -> int:
        return len(self.type)

    @classmethod
    def of(cls, units: list[tuple[int, int, int]]) -> UnitList:
        """Build from (type, x, y) tuples."""
        table = np.array(units, dtype=np.int64).reshape(-1, 3)
        return cls(table[:, 0].copy(), table[:, 1].copy(), table[:, 2].copy())


def read_deployment(path: Path, types: Types | None = None) -> UnitList:
    """Read a deployment, with types as numbers or names. Raise InputError with file, line and field."""
    types = types if types is not None else Types()
    table = read_lines(path, FIELDS)
    codes = np.array([row.code(0, types.units, "type") for row in table], dtype=np.int64)
    return UnitList(codes, whole_column(table, 1, "x"), whole_column(table, 2, "y"))


def write_deployment(deployment: UnitList, path: Path) -> None:
    """Write a deployment atomically."""
    columns = (deployment.type.tolist(), deployment.x.tolist(), deployment.y.tolist())
    write_text(path, "".join(f"{kind} {x} {y}\n" for kind, x, y in zip(*columns, strict=True)))
