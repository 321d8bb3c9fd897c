"""Rows of whitespace-separated words with their line numbers, the common form of VineSim's files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np

from poolwise.arrays import FloatArray, IntArray
from poolwise.errors import InputError, UnknownNameError
from poolwise.quantities import format_count
from poolwise.traces.numbers import NotANumber, reals, wholes
from poolwise.traces.text_files import read_text

ABSENT = "--"
"""Word that marks a missing value in a table."""
_BLOCK = 20_000


@dataclass(frozen=True, slots=True)
class Line:
    """Words of one line that is neither blank nor a comment."""

    path: Path
    line: int
    words: tuple[str, ...]

    def error(self, field: str, problem: str, remedy: str) -> InputError:
        """Build the error for a field of this line."""
        return InputError(problem, file=self.path, line=self.line, field=field, remedy=remedy)

    def number(self, k: int, field: str) -> float:
        """Return word k as a number of at least 0; raise InputError for anything else."""
        try:
            value = float(reals(self.words[k : k + 1])[0])
        except NotANumber as error:
            raise self.error(field, error.problem, "write a number of at least 0") from error
        if value < 0:
            raise self.error(field, f"{self.words[k]} is negative", "write a number of at least 0")
        return value

    def code(self, k: int, names: Sequence[str], field: str) -> int:
        """Return the number of the type that word k denotes by number or name; raise InputError with the known names."""
        word = self.words[k]
        if word in names:
            return names.index(word)
        if not word.isascii() or not word.isdigit():
            raise UnknownNameError.of(field, word, names, file=self.path, line=self.line, field=field)
        if len(word) > 9 or int(word) >= len(names):
            raise self.error(
                field, f"unknown type {word[:20]}", f"use 0 to {len(names) - 1}, or add names with a table of types"
            )
        return int(word)


def read_lines(path: Path, fields: Sequence[str] | None = None) -> list[Line]:
    """Read the rows of a file; see `line_blocks`."""
    return [row for block in line_blocks(path, fields) for row in block]


def line_blocks(path: Path, fields: Sequence[str] | None = None) -> Iterator[list[Line]]:
    """Read the rows of a file in blocks, because split rows need much more memory than their numbers.

    Parameters
    ----------
    fields
        Names of the fields that each row must have; None to accept rows of any width.

    Raises InputError for a file without rows and for rows of another width.
    """
    rows, empty = _rows(path), True
    while block := list(islice(rows, _BLOCK)):
        empty = False
        for row in block if fields is not None else ():
            assert fields is not None
            check_width(row, fields)
        yield block
    if empty:
        raise InputError("the file contains no rows", file=path, remedy="see docs/reference/files.md for its format")


def check_width(row: Line, fields: Sequence[str]) -> None:
    """Raise InputError for a row whose number of words differs from the number of fields."""
    if len(row.words) != len(fields):
        raise row.error(
            fields[min(len(row.words), len(fields) - 1)],
            f"the row has {len(row.words)} fields, expected {len(fields)}",
            f"write: {' '.join(fields)}",
        )


def _rows(path: Path) -> Iterator[Line]:
    for number, line in enumerate(read_text(path).split("\n"), start=1):
        words = line.partition("#")[0].split()
        if words:
            yield Line(path, number, tuple(words))


def whole_column(table: Sequence[Line], k: int, field: str) -> IntArray:
    """Return word k of each row as whole numbers of at least 0, (n_row,); raise InputError for the first invalid one."""
    try:
        values = wholes([row.words[k] for row in table])
    except NotANumber as error:
        row = table[error.position]
        raise row.error(field, error.problem, "write a whole number of at least 0") from error
    if len(values) and int(values.min()) < 0:
        row = table[int(np.argmin(values))]
        raise row.error(field, f"{row.words[k]} is negative", "write a whole number of at least 0")
    return values


def rows_by_unit_type(path: Path, names: Sequence[str], fields: Sequence[str] | None = None) -> list[Line]:
    """Read a table with at most one row per unit type, in the order of their numbers; raise InputError for other tables."""
    table = read_lines(path, fields)
    if len(table) > len(names):
        raise table[len(names)].error(
            "unit types",
            f"the table has {format_count(len(table), 'row')} for {format_count(len(names), 'unit type')}",
            f"rows: {', '.join(names)}; add names with a table of types",
        )
    return table


def cells(row: Line, names: Sequence[str], columns: str, missing: float = 0.0) -> FloatArray:
    """Return the numbers in a row, (n_name,), with `missing` for `--` and after an early end; `columns` describes the names.

    Raises InputError for a longer row.
    """
    if len(row.words) > len(names):
        problem = f"the row has {len(row.words)} numbers for {len(names)} {columns}"
        raise row.error(columns, problem, f"columns: {', '.join(names)}")
    values = np.full(len(names), missing)
    for k, word in enumerate(row.words):
        if word != ABSENT:
            values[k] = row.number(k, names[k])
    return values
