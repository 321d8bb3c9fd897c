"""Rows of Standard Workload Format files, before conversion to a workload.

Source: Chapin et al. 1999, "Benchmarks and standards for the evaluation of parallel job schedulers"; version 2.2 of the
Parallel Workloads Archive.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from poolwise.arrays import BoolArray, FloatArray, IntArray, frozen
from poolwise.errors import InputError
from poolwise.traces.numbers import NotANumber, are_real, number_text, reals
from poolwise.traces.text_files import read_text, write_text
from poolwise.traces.unreadable_rows import UnreadableRows

FIELDS = (
    "Job Number",
    "Submit Time",
    "Wait Time",
    "Run Time",
    "Number of Allocated Processors",
    "Average CPU Time Used",
    "Used Memory",
    "Requested Number of Processors",
    "Requested Time",
    "Requested Memory",
    "Status",
    "User ID",
    "Group ID",
    "Executable Number",
    "Queue Number",
    "Partition Number",
    "Preceding Job Number",
    "Think Time",
)
(
    JOB, SUBMIT, WAIT, RUN, ALLOCATED, CPU, USED_MEMORY, REQUESTED_PROCESSORS, REQUESTED_TIME, REQUESTED_MEMORY,
    STATUS, USER, GROUP, EXECUTABLE, QUEUE, PARTITION, PRECEDING, THINK,
) = range(18)  # fmt: skip

_FRACTIONS = (SUBMIT, WAIT, RUN, CPU, USED_MEMORY, REQUESTED_TIME, REQUESTED_MEMORY, THINK)
"""Fields in which logs may have fractions, of seconds or KB; the other fields are counts and ids."""

_EXACT = 2.0**53
_BLOCK = 20_000  # lines split at once, which bounds the memory for their words


@dataclass(frozen=True, eq=False)
class SwfRows:
    """The header and the parsed rows of a log, unknown values -1.

    Attributes
    ----------
    path : file that was read
    comments : header lines without the ";"
    line : (n_row,) line of the file, from 1
    values : (n_row, 18) float64, exact because numbers above 2**53 are rejected; columns as in `FIELDS`
    whole : lines of all rows of the log, for the masks of unreadable rows in errors; by default those of these rows
    """

    path: Path
    comments: tuple[str, ...]
    line: IntArray
    values: FloatArray
    whole: IntArray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))

    def __post_init__(self) -> None:
        frozen(self.line)
        frozen(self.values)
        if not len(self.whole):
            object.__setattr__(self, "whole", self.line)

    def __len__(self) -> int:
        return len(self.line)

    @property
    def processors(self) -> FloatArray:
        """(n_row,) the larger number of allocated and requested processors."""
        return np.maximum(self.values[:, ALLOCATED], self.values[:, REQUESTED_PROCESSORS])

    def refuse(self, bad: BoolArray, field: int, problem: str, remedy: str) -> None:
        """Raise UnreadableRows if any of the (n_row,) rows is bad; "{value}" in `problem` becomes the first bad value."""
        if bad.any():
            row = int(np.argmax(bad))
            message = problem.format(value=number_text(float(self.values[row, field])))
            raise _unreadable(self.path, self.whole, self.line[bad], message, remedy, FIELDS[field])

    def filter_rows(self, keep: BoolArray) -> SwfRows:
        """Return the rows for which (n_row,) `keep` is true."""
        return replace(self, line=self.line[keep], values=self.values[keep])


@dataclass(frozen=True, eq=False)
class SwfLines:
    """The header and the unparsed rows of a log.

    Attributes
    ----------
    path : file that was read
    comments : header lines without the ";"
    line : (n_row,) line of the file, from 1
    text : (n_row,) text of the line
    """

    path: Path
    comments: tuple[str, ...]
    line: IntArray
    text: list[str]

    def __len__(self) -> int:
        return len(self.text)

    def filter_rows(self, keep: BoolArray) -> SwfLines:
        """Return the rows for which (n_row,) `keep` is true."""
        return replace(self, line=self.line[keep], text=[text for text, kept in zip(self.text, keep, strict=True) if kept])


def read_lines(path: Path) -> SwfLines:
    """Read the lines of a log; raise InputError for a file without rows."""
    comments: list[str] = []
    numbers: list[int] = []
    rows: list[str] = []
    for number, line in enumerate(read_text(path).split("\n"), start=1):
        stripped = line.strip()
        if stripped.startswith(";"):
            comments.append(stripped[1:].rstrip())
        elif stripped:
            numbers.append(number)
            rows.append(stripped)
    if not rows:
        raise InputError("the trace contains no jobs", file=path, remedy="use a file with rows of 18 numbers")
    return SwfLines(path, tuple(comments), np.array(numbers, dtype=np.int64), rows)


def read_rows(path: Path, extra_columns: int = 0) -> SwfRows:
    """Read and parse a log; raise UnreadableRows if any row cannot be read."""
    return parse_rows(read_lines(path), extra_columns)


def parse_rows(lines: SwfLines, extra_columns: int = 0) -> SwfRows:
    """Parse rows; each must have 18 fields and exactly `extra_columns` more, which are ignored.

    Raises UnreadableRows with the file, the line and the name of the field.
    """
    if extra_columns < 0:
        raise InputError(f"extra_columns is {extra_columns}", field="extra_columns", remedy="use 0 or more")
    blocks = [_numbers(lines, low, extra_columns) for low in range(0, len(lines), _BLOCK)]
    log = SwfRows(lines.path, lines.comments, lines.line, np.concatenate(blocks))
    _check(log)
    return log


def _numbers(lines: SwfLines, low: int, extra_columns: int) -> FloatArray:
    """Return (n_row, 18) numbers of at most `_BLOCK` rows, starting at row `low`."""
    expected = len(FIELDS) + extra_columns
    words: list[str] = []
    for row in lines.text[low : low + _BLOCK]:
        fields = row.split()
        if len(fields) != expected:
            raise _wrong_width(lines, extra_columns)
        words.extend(fields[: len(FIELDS)] if extra_columns else fields)
    try:
        return reals(words).reshape(-1, len(FIELDS))
    except NotANumber as error:
        position, field = divmod(error.position, len(FIELDS))
        bad = [low + k for k in range(len(words) // len(FIELDS)) if not are_real(words[18 * k : 18 * k + 18])]
        problem, remedy = f"{error.problem} (field {field + 1})", "write a number, or -1 if it is unknown"
        assert bad[0] == low + position
        raise _unreadable(lines.path, lines.line, lines.line[bad], problem, remedy, FIELDS[field]) from error


def _unreadable(path: Path, whole: IntArray, bad: IntArray, problem: str, remedy: str, field: str | None) -> UnreadableRows:
    """Build the error for the rows in lines `bad`, a subset of the lines `whole`."""
    return UnreadableRows.of(np.isin(whole, bad), problem, file=path, line=int(bad[0]), field=field, remedy=remedy)


def _wrong_width(lines: SwfLines, extra_columns: int) -> UnreadableRows:
    widths = np.array([len(row.split()) for row in lines.text], dtype=np.int64)
    bad = lines.line[widths != len(FIELDS) + extra_columns]
    found = int(widths[lines.line == bad[0]][0])
    more = found - len(FIELDS)
    expected = f"18 fields and {extra_columns} extra columns" if extra_columns else "18 fields"
    if more < 0:
        remedy = "complete the row: unknown values are written -1"
    elif more:
        remedy = f"if every row has {more} additional columns, ignore them with extra_columns={more} (--extra-columns {more})"
    else:
        remedy = "read it without extra_columns (--extra-columns 0)"
    return _unreadable(lines.path, lines.line, bad, f"the row has {found} fields, expected {expected}", remedy, None)


def _check(log: SwfRows) -> None:
    """Raise UnreadableRows for values that are not valid in their field, and for repeated job numbers."""
    values = log.values
    for k in range(len(FIELDS)):
        column = values[:, k]
        log.refuse(np.abs(column) > _EXACT, k, "{value} is too large", "correct the row")
        if k not in _FRACTIONS:
            log.refuse(column != np.floor(column), k, "{value} is not a whole number", "correct the row")
    submit = values[:, SUBMIT]
    negative = (submit < 0) & (submit != -1)
    log.refuse(negative, SUBMIT, "submit time {value} is negative", "write -1 if it is unknown, or correct or remove the row")
    order = np.argsort(values[:, JOB], kind="stable")
    same = values[order[1:], JOB] == values[order[:-1], JOB]
    if same.any():
        k = int(np.argmax(same))
        problem = f"job {number_text(float(values[order[k], JOB]))} is already in line {int(log.line[order[k]])}"
        repeated = log.line[order[1:][same]]  # the first of them is the line in the message
        raise _unreadable(log.path, log.whole, repeated, problem, "renumber the jobs, or keep one row of each", FIELDS[JOB])


def write_swf_rows(log: SwfRows, path: Path) -> None:
    """Write a log atomically, gzip if the name ends in ".gz"."""
    write_text(path, "".join(_lines(log)))


def _lines(log: SwfRows) -> Iterable[str]:
    yield from (f";{comment}\n" for comment in log.comments)
    yield from (" ".join(map(number_text, row)) + "\n" for row in log.values.tolist())
