"""Measured run times on composed devices: a table of composition size x sharers -> seconds, read from a CSV file."""

from __future__ import annotations

import csv
import math
import warnings
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Protocol, runtime_checkable

from poolwise.errors import InputError
from poolwise.performance.csv_table import read_once

TOLERATED_FALL = 0.02
"""Fraction by which times may fall with one more sharer without a warning, since sharing should not speed up runs."""


@dataclass(frozen=True)
class SharingTable:
    """Run times of one kind of workload.

    seconds[k - 1][s - 1] is the run time if s runs share a composition of k devices. The last row applies to all larger
    compositions; there may not be more sharers than columns. `partners` are other kinds that may share a composition with this
    one; they count as sharers like its own.
    """

    seconds: tuple[tuple[float, ...], ...]
    partners: tuple[str, ...] = ()

    @property
    def sharers(self) -> int:
        """Maximum number of runs that may share a composition."""
        return len(self.seconds[0])

    def time(self, devices: int, sharers: int) -> float:
        """Return the seconds of a run on a composition of `devices` devices that `sharers` runs, itself included, share."""
        return self.seconds[min(devices, len(self.seconds)) - 1][sharers - 1]

    @classmethod
    def read(cls, reference: str | Path) -> SharingTable:
        """Read a CSV file, or "catalog:NAME" for a shipped one.

        The header is "devices,1,2,..." (numbers of sharers); each row is a composition size, from 1; cells are seconds.
        Raises InputError with file, line and cell.
        """
        return read_once("sharing_tables", reference, _read, "performance table")


@runtime_checkable
class OffersTables(Protocol):
    """Interface of performance models with sharing tables, with which composition policies can look ahead."""

    @property
    def fixed_at_start(self) -> bool:
        """True if a run keeps its initial speed regardless of later changes."""
        ...

    def table(self, kind: str) -> SharingTable | None:
        """Return the table of a kind of workload, None if its jobs always take their base time."""
        ...


def _read(path: Path) -> SharingTable:
    with path.open(newline="", encoding="utf-8") as file:
        try:
            rows = [(k, row) for k, row in enumerate(csv.reader(file), start=1) if row and not row[0].startswith("#")]
        except (UnicodeDecodeError, csv.Error) as error:
            raise InputError(f"not a CSV table: {error}", file=path, remedy="save it as UTF-8 text") from error
    if len(rows) < 2:
        raise InputError("the table is empty", file=path, remedy='write the header "devices,1,2,..." and one row per size')
    (line, header), *body = rows
    if [cell.strip() for cell in header] != ["devices", *map(str, range(1, len(header)))] or len(header) < 2:
        raise InputError(
            f"invalid header '{','.join(header)}'", file=path, line=line, field="devices", remedy='write "devices,1,2,3,..."'
        )
    table = SharingTable(tuple(_row(path, line, k, row, len(header)) for k, (line, row) in enumerate(body, start=1)))
    _warn_of_falls(path, table)
    return table


def _row(path: Path, line: int, size: int, row: list[str], width: int) -> tuple[float, ...]:
    if row[0].strip() != str(size):
        problem, remedy = f"expected the row of {size} devices, got '{row[0]}'", "write one row per size: 1, 2, 3, ..."
        raise InputError(problem, file=path, line=line, field="devices", remedy=remedy)
    if len(row) != width:
        problem = f"expected {width - 1} times, one per number of sharers, got {len(row) - 1}"
        remedy = "give one time per number of sharers"
        raise InputError(problem, file=path, line=line, field=f"devices={size}", remedy=remedy)
    return tuple(_cell(path, line, f"devices={size}, sharers={s}", text) for s, text in enumerate(row[1:], start=1))


def _cell(path: Path, line: int, field: str, text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not (math.isfinite(seconds) and seconds > 0):
        raise InputError(f"'{text}' is not a time", file=path, line=line, field=field, remedy="give seconds above 0")
    return seconds


def _warn_of_falls(path: Path, table: SharingTable) -> None:
    for k, row in enumerate(table.seconds, start=1):
        for s, (fewer, more) in enumerate(pairwise(row), start=2):
            if more < fewer * (1 - TOLERATED_FALL):
                fall = 100 * (1 - more / fewer)
                warnings.warn(
                    f"{path}: devices={k}, sharers={s}: {fall:.1f} % faster than with one fewer sharer; check the measurement",
                    stacklevel=7,
                )
