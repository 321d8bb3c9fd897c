"""Rows of whitespace-separated text, with the line of each: the form that all files of VineSim have."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np

from poolwise.arrays import FloatArray, IntArray
from poolwise.errors import InputError, UnknownNameError
from poolwise.traces.numbers import NotANumber, reals, wholes
from poolwise.traces.text_files import read_text

ABSENT = "--"
"""How a table writes that there is no value."""
_BLOCK = 20_000


@dataclass(frozen=True, slots=True)
class Line:
    """Words of one line; comments and blank lines do not count."""

    path: Path
    line: int
    words: tuple[str, ...]

    def refuse(self, field: str, problem: str, remedy: str) -> InputError:
        """Build the error for a field of this row."""
        return InputError(problem, file=self.path, line=self.line, field=field, remedy=remedy)

    def number(self, k: int, field: str) -> float:
        """Word k as a number, at least 0; raises InputError for anything else."""
        try:
            value = float(reals(self.words[k : k + 1])[0])
        except NotANumber as error:
            raise self.refuse(field, error.problem, "write a number that is 0 or more") from error
        if value < 0:
            raise self.refuse(field, f"{self.words[k]} is negative", "write a number that is 0 or more")
        return value

    def code(self, k: int, names: Sequence[str], field: str) -> int:
        """Number of the type that word k gives by its number or name; raises InputError naming what is known."""
        word = self.words[k]
        if word in names:
            return names.index(word)
        if not word.isascii() or not word.isdigit():
            raise UnknownNameError.of(field, word, names, file=self.path, line=self.line, field=field)
        if len(word) > 9 or int(word) >= len(names):
            raise self.refuse(
                field, f"there is no type {word[:20]}", f"give 0 to {len(names) - 1}, or add names with a table of types"
            )
        return int(word)


def read_lines(path: Path, fields: Sequence[str] | None = None) -> list[Line]:
    """Read the rows of a file; see `line_blocks`."""
    return [row for block in line_blocks(path, fields) for row in block]


def line_blocks(path: Path, fields: Sequence[str] | None = None) -> Iterator[list[Line]]:
    """Read the rows of a file, some at a time: taken apart they need much more memory than their numbers.

    Parameters
    ----------
    fields
        Names of the fields that each row must have; None where rows may be of any width.

    Raises InputError for a file without rows and for rows of another width.
    """
    found, empty = _rows(path), True
    while block := list(islice(found, _BLOCK)):
        empty = False
        for row in block if fields is not None else ():
            assert fields is not None
            if len(row.words) != len(fields):
                raise row.refuse(
                    fields[min(len(row.words), len(fields) - 1)],
                    f"the row has {len(row.words)} fields, expected {len(fields)}",
                    f"write: {' '.join(fields)}",
                )
        yield block
    if empty:
        raise InputError("the file holds no rows", file=path, remedy="see docs/reference/files.md for its format")


def _rows(path: Path) -> Iterator[Line]:
    for number, line in enumerate(read_text(path).split("\n"), start=1):
        words = line.partition("#")[0].split()
        if words:
            yield Line(path, number, tuple(words))


def whole_column(table: Sequence[Line], k: int, field: str) -> IntArray:
    """(n_row,) whole numbers, at least 0, from word k of each row; raises InputError for the first that is none."""
    try:
        values = wholes([row.words[k] for row in table])
    except NotANumber as error:
        row = table[error.position]
        raise row.refuse(field, error.problem, "write a whole number that is 0 or more") from error
    if len(values) and int(values.min()) < 0:
        row = table[int(np.argmin(values))]
        raise row.refuse(field, f"{row.words[k]} is negative", "write a whole number that is 0 or more")
    return values


def typed_rows(path: Path, names: Sequence[str], fields: Sequence[str] | None = None) -> list[Line]:
    """Read the rows of a table that has at most one a unit type, in the order of their numbers; raises InputError."""
    table = read_lines(path, fields)
    if len(table) > len(names):
        raise table[len(names)].refuse(
            "unit types",
            f"the table has {len(table)} rows for {len(names)} unit types",
            f"rows: {', '.join(names)}; add names with a table of types",
        )
    return table


def cells(row: Line, names: Sequence[str], what: str, missing: float = 0.0) -> FloatArray:
    """(n_name,) numbers of a row that may be shorter than the names; `missing` where there is none, or `--`.

    Raises InputError for a row that is longer.
    """
    if len(row.words) > len(names):
        extra = f"the row has {len(row.words)} numbers for {len(names)} {what}"
        raise row.refuse(what, extra, f"columns: {', '.join(names)}")
    values = np.full(len(names), missing)
    for k, word in enumerate(row.words):
        if word != ABSENT:
            values[k] = row.number(k, names[k])
    return values
