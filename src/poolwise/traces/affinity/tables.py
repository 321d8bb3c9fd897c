"""Affinity and power tables in VineSim's formats, with the type names that they refer to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, Self

import numpy as np

from poolwise.arrays import FloatArray
from poolwise.atomic_write import check_writable
from poolwise.traces.text_files import write_text
from poolwise.traces.vinesim.tables import Power, write_affinity, write_power
from poolwise.traces.vinesim.types import TASKS, UNITS, Types

OPERATIONS = 1_000_000
"""Operations of a step or token; a rate in operations per microsecond then equals the measured rate per second."""


@dataclass(frozen=True, eq=False)
class UnitTables:
    """Measured rates and power of some unit types.

    The measured units and tasks follow the standard ones in `types`. `rates` (n_unit_type, n_task_type) are operations per
    microsecond, 0 where a unit type cannot run a task type. `power` is None if none was measured; `notes` are comment lines for
    the readers of the tables.
    """

    types: Types
    rates: FloatArray
    power: Power | None = None
    notes: tuple[str, ...] = ()

    @classmethod
    def of(
        cls,
        rates: Mapping[str, Mapping[str, float]],
        notes: tuple[str, ...] = (),
        *,
        busy: Mapping[str, Mapping[str, float]] | None = None,
        idle: Mapping[str, float] | None = None,
    ) -> Self:
        """Build from unit type -> task type -> operations per microsecond, and watts in the same form; the order is kept."""
        units = tuple(rates)
        tasks = tuple(dict.fromkeys(task for row in rates.values() for task in row))
        types = Types((*UNITS, *units), (*TASKS, *tasks))
        table = _filled(types, rates, 0.0)
        if busy is None or idle is None:
            return cls(types, table, None, notes)
        idle_watts = np.full(len(types.units), np.nan)
        idle_watts[: len(UNITS)] = 0.0  # a power table also has rows for the standard types, which were not measured
        idle_watts[len(UNITS) :] = [idle[unit] for unit in units]
        return cls(types, table, Power(_filled(types, busy, np.nan), idle_watts), notes)

    def write(self, folder: Path, name: str) -> list[Path]:
        """Write NAME-types.toml, NAME-affinity.txt and NAME-power.txt, each atomically; return their paths."""
        kinds = ("types.toml", "affinity.txt", *(["power.txt"] if self.power is not None else []))
        files = [folder / f"{name}-{kind}" for kind in kinds]
        for file in files:
            check_writable(file)
        write_text(files[0], _toml(self.types, self.notes))
        write_affinity(self.rates, files[1], self.notes)
        if self.power is not None:
            write_power(self.power, files[2], self.notes)
        return files


class Measurements(Protocol):
    """A reader of one source of measurements; a frozen dataclass whose fields are the options."""

    def read(self, path: Path) -> UnitTables:
        """Read the file of measurements; raise InputError with file, line and field."""
        ...


def _filled(types: Types, values: Mapping[str, Mapping[str, float]], missing: float) -> FloatArray:
    table = np.full((len(types.units), len(types.tasks)), missing)
    for unit, row in values.items():
        for task, value in row.items():
            table[types.units.index(unit), types.tasks.index(task)] = value
    return table


def _toml(types: Types, notes: tuple[str, ...]) -> str:
    lines = [f"# {note}" for note in notes] + ["version = 1"]
    for key, names in (("unit_types", types.units[len(UNITS) :]), ("task_types", types.tasks[len(TASKS) :])):
        lines.append(f"{key} = [")
        lines += [f'  "{name}",' for name in names]
        lines.append("]")
    return "\n".join(lines) + "\n"
