"""Columns of a job table read from CSV or Parquet, with errors that state the location of a value."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import compress
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from poolwise.arrays import BoolArray, FloatArray, IntArray
from poolwise.errors import InputError
from poolwise.quantities import format_count
from poolwise.traces.numbers import NotANumber, are_whole, reals, wholes
from poolwise.traces.parquet import MAGIC, read_parquet, sealed_parquet
from poolwise.traces.text_files import beginning, read_text

Counts = Mapping[str, Mapping[str, int]]
_QUOTED = re.compile(r'"[^"]*"')
_KEY = "poolwise"  # key of the row counts in a Parquet file's metadata


def csv_header(path: Path) -> set[str]:
    """Return the words between the commas of the first line of a file, plain or gzip."""
    return {*beginning(path).partition(b"\n")[0].decode("utf-8-sig", "replace").strip().split(",")}


def is_parquet(start: bytes) -> bool:
    """Return whether a file with these first bytes is Parquet."""
    return start.startswith(MAGIC)


def is_table(start: bytes) -> bool:
    """Return whether a file with these first bytes is Parquet, or CSV with at least three named columns."""
    if is_parquet(start):
        return True
    mark, header = delimiter_of(start), start.partition(b"\n")[0].decode("latin-1")
    names = [name.strip(' \t\r"') for name in header.split(mark)] if mark else []
    return len(names) >= 3 and sum(name[:1].isalpha() for name in names) >= 3


def _check_names(path: Path, names: Sequence[str], line: int | None) -> None:
    for k, name in enumerate(names):
        if "\n" in name or "\r" in name:
            problem = f"the name of column {k + 1} spans several lines"
            raise InputError(problem, file=path, line=line, remedy="close the quotes in the header")
        if not name or name in names[:k]:
            problem = f"column '{name}' appears twice" if name else f"column {k + 1} has no name"
            raise InputError(problem, file=path, line=line, field=name or None, remedy="give each column a unique name")


# CSV


@dataclass(frozen=True)
class _CSV:
    path: Path
    names: Sequence[str]
    header_line: int | None
    words: Sequence[Sequence[str]]  # one sequence per column
    lines: Sequence[int]
    counts: Counts = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.lines)

    def filter_rows(self, keep: BoolArray) -> _CSV:
        words = [list(compress(column, keep)) for column in self.words]
        return replace(self, words=words, lines=list(compress(self.lines, keep)))

    def wholes(self, name: str) -> IntArray:
        words = self._words(name)
        try:
            return wholes(words)
        except NotANumber as error:
            raise self.error(error.position, name, error.problem, "write a whole number") from error

    def numbers(self, name: str) -> IntArray | FloatArray:
        words = self._words(name)
        if are_whole(words):
            return self.wholes(name)
        return known_numbers(
            self, name, f"write a number, leave the cell empty if it is unknown, or name the column text.{name}"
        )

    def texts(self, name: str) -> NDArray[np.str_]:
        return np.array(self.words[self.names.index(name)], dtype=np.str_)

    def line(self, row: int) -> int | None:
        return self.lines[row]

    def location(self, row: int) -> str:
        return f"line {self.lines[row]}"

    def error(self, row: int, name: str, problem: str, remedy: str) -> InputError:
        return InputError(problem, file=self.path, line=self.lines[row], field=name, remedy=remedy)

    def _words(self, name: str) -> list[str]:
        return [word.strip() for word in self.words[self.names.index(name)]]


def table_of(path: Path, uneven_lines: list[int] | None) -> Source:
    """Open a table: Parquet, or CSV with the delimiter that is most frequent in its header; see `columns_of_csv`."""
    start = beginning(path)
    if is_parquet(start):
        return columns_of_parquet(path)
    return columns_of_csv(path, delimiter_of(start) or ",", uneven_lines)


def delimiter_of(start: bytes) -> str:
    """Return the delimiter of a CSV file with these first bytes: comma, semicolon, tab or bar; empty if it has none."""
    header = _QUOTED.sub("", start.partition(b"\n")[0].decode("latin-1"))
    return max(",;\t|", key=header.count) if any(mark in header for mark in ",;\t|") else ""


def columns_of_csv(path: Path, delimiter: str = ",", uneven_lines: list[int] | None = None) -> Source:
    """Read a CSV file, plain or gzip; raise InputError if it is not a table.

    A row with more or fewer cells than the header is an error, as is a column without a name. If a list `uneven_lines` is
    given, such rows are skipped and their line numbers appended to it, and unnamed columns are named "column 1" and so on.
    """
    reader = csv.reader(io.StringIO(read_text(path), newline=""), delimiter=delimiter, strict=True)
    names: list[str] = []
    header_line, line = 0, 0
    rows: list[list[str]] = []
    lines: list[int] = []
    try:
        for cells in reader:
            begun, line = line + 1, reader.line_num  # a quoted cell may span lines
            if not cells:
                continue
            if not names:
                names, header_line = [cell.strip() for cell in cells], begun
                if uneven_lines is not None:
                    names = [name or f"column {k}" for k, name in enumerate(names, start=1)]
                _check_names(path, names, begun)
                continue
            if len(cells) != len(names):
                if uneven_lines is not None:
                    uneven_lines.append(begun)
                    continue
                problem = f"the row has {format_count(len(cells), 'cell')}, the header {len(names)}"
                raise InputError(problem, file=path, line=begun, remedy="give every row one cell per column")
            rows.append(cells)
            lines.append(begun)
    except csv.Error as error:
        remedy = f"separate cells with '{delimiter}', and quote cells that contain it"
        raise InputError(f"not CSV: {error}", file=path, line=line + 1, remedy=remedy) from error
    if not rows:
        raise InputError("the table contains no jobs", file=path, remedy="give a header and one row per job")
    return _CSV(path, names, header_line, list(zip(*rows, strict=True)), lines)


def csv_text(columns: Mapping[str, NDArray[Any]]) -> str:
    """Format columns as CSV; numbers parse to the same values, and NaN is an empty cell."""
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerow(columns)
    # csv quotes a lone carriage return in text only if it quotes all text
    text = any(column.dtype.kind in "UO" for column in columns.values())
    writer = csv.writer(out, lineterminator="\n", quoting=csv.QUOTE_NONNUMERIC if text else csv.QUOTE_MINIMAL)
    writer.writerows(zip(*(_cells(column) for column in columns.values()), strict=True))
    return out.getvalue()


def _cells(column: NDArray[Any]) -> list[Any]:
    if column.dtype.kind == "f":
        return ["" if np.isnan(value) else value for value in column.astype(np.float64).tolist()]
    cells: list[Any] = column.astype(np.int64).tolist() if column.dtype.kind == "b" else column.tolist()
    return cells


# Parquet


@dataclass(frozen=True)
class _Parquet:
    path: Path
    frame: pl.DataFrame
    counts: Counts
    header_line: int | None = None
    rows: IntArray | None = None  # rows of the file, if some were removed

    def __len__(self) -> int:
        return len(self.frame)

    def filter_rows(self, keep: BoolArray) -> _Parquet:
        rows = np.arange(len(self.frame)) if self.rows is None else self.rows
        return replace(self, frame=self.frame.filter(pl.Series(keep)), rows=rows[keep])

    @property
    def names(self) -> Sequence[str]:
        return self.frame.columns

    def wholes(self, name: str) -> IntArray:
        column = self.frame[name]
        self._refuse(name, column.is_null(), "the cell is empty", "write a whole number")
        if column.dtype.is_integer():
            narrow = column.cast(pl.Int64, strict=False)
            self._refuse(name, narrow.is_null(), "the number is too large", "write a whole number of 64 bits")
            return narrow.to_numpy().astype(np.int64)
        raise self.error(0, name, f"the column is {column.dtype}, not whole numbers", "write it as int64")

    def numbers(self, name: str) -> IntArray | FloatArray:
        column = self.frame[name]
        if column.dtype == pl.Boolean:
            column = column.cast(pl.Int64)
        if column.dtype.is_integer() and not column.null_count():
            return replace(self, frame=column.to_frame()).wholes(name)
        if not (column.dtype.is_numeric() or column.dtype == pl.Null):
            remedy = f"write numbers, or name the column text.{name}"
            raise self.error(0, name, f"the column is {column.dtype}, not numbers", remedy)
        values = column.cast(pl.Float64)
        bad = values.is_not_null() & ~values.is_finite().fill_null(True)
        self._refuse(name, bad, "the value is not a finite number", "write null if it is unknown")
        return values.to_numpy().astype(np.float64)

    def texts(self, name: str) -> NDArray[np.str_]:
        try:
            return np.array(self.frame[name].cast(pl.String).fill_null("").to_list(), dtype=np.str_)
        except pl.exceptions.PolarsError as error:
            problem = f"the column is {self.frame[name].dtype}, which has no text form"
            raise InputError(problem, file=self.path, field=name, remedy="write it as text or as numbers") from error

    def line(self, row: int) -> int | None:
        return None

    def location(self, row: int) -> str:
        return f"row {(row if self.rows is None else int(self.rows[row])) + 1}"

    def error(self, row: int, name: str, problem: str, remedy: str) -> InputError:
        return InputError(f"{self.location(row)}: {problem}", file=self.path, field=name, remedy=remedy)

    def _refuse(self, name: str, bad: pl.Series, problem: str, remedy: str) -> None:
        if bad.any():
            raise self.error(int(bad.arg_max() or 0), name, problem, remedy)


Source = _CSV | _Parquet
"""A table that was read, with access to its columns by name, (n_row,) each.

`wholes` returns whole numbers; `numbers` returns whole numbers if all cells are whole, else float64 with NaN for empty cells;
`texts` returns "" for empty cells. All raise InputError for other cells. `line` and `header_line` are None for a file without
lines, where `location` describes a row. `counts` are the rows by reason, for "excluded" and "repaired"; empty if the file does
not store them.
"""


def known_numbers(
    source: Source, name: str, remedy: str = "write a number, or leave the cell empty if it is unknown"
) -> FloatArray:
    """Return float64 numbers, (n_row,), NaN for empty cells; raise InputError for text, NaN and infinities."""
    words = [word.strip() for word in source.texts(name).tolist()]
    filled = [row for row, word in enumerate(words) if word]
    values = np.full(len(words), np.nan, dtype=np.float64)
    try:
        values[filled] = reals([words[row] for row in filled])
    except NotANumber as error:
        raise source.error(filled[error.position], name, error.problem, remedy) from error
    return values


def columns_of_parquet(path: Path) -> Source:
    """Open a Parquet file; raise InputError for a damaged or empty one."""
    frame, metadata = read_parquet(path)
    try:
        counts = _counts(metadata.get(_KEY, "{}"))
    except ValueError as error:
        raise InputError(f"damaged Parquet file: {error}", file=path, remedy="fetch or write the file again") from error
    if not len(frame):
        raise InputError("the table contains no jobs", file=path, remedy="give one row per job")
    return _Parquet(path, frame, counts)


def _counts(text: str) -> Counts:
    """Parse the counts that `parquet_bytes` wrote; raise ValueError for anything else."""
    content = json.loads(text)
    if not (isinstance(content, dict) and all(isinstance(part, dict) for part in content.values())):
        raise ValueError("its metadata has no table of row counts")
    if not all(type(count) is int for part in content.values() for count in part.values()):
        raise ValueError("row counts in its metadata are not integers")
    return content


def parquet_bytes(columns: Mapping[str, NDArray[Any]], counts: Counts) -> bytes:
    """Serialize columns and counts as Parquet; NaN as null."""
    frame = pl.DataFrame({name: _series(column) for name, column in columns.items()})
    return sealed_parquet(frame, {_KEY: json.dumps(counts, sort_keys=True)})


def _series(column: NDArray[Any]) -> pl.Series:
    if column.dtype.kind == "f":
        return pl.Series(column.astype(np.float64)).fill_nan(None)
    return pl.Series(column.tolist()) if column.dtype.kind in "UO" else pl.Series(column)
