"""Rows of Standard Workload Format files, before conversion to a workload.

Source: Chapin et al. 1999, "Benchmarks and standards for the evaluation of parallel job schedulers"; version 2.2 of the
Parallel Workloads Archive.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import compress
from pathlib import Path

import numpy as np

from poolwise.arrays import BoolArray, FloatArray, frozen
from poolwise.errors import InputError
from poolwise.traces.numbers import NotANumber, are_real, number_text, reals
from poolwise.traces.text_files import read_text, write_text
from poolwise.traces.unreadable_rows import NumberedRows

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
"""Fields that may contain fractions of seconds or KB; the other fields are counts and ids."""

_EXACT = 2.0**53
_BLOCK = 20_000  # lines split at once, which bounds the memory for their words


@dataclass(frozen=True, eq=False)
class SwfRows(NumberedRows):
    """The header and the parsed rows of a log, unknown values -1.

    Attributes
    ----------
    comments : header lines without the ";"
    values : (n_row, 18) float64, exact because numbers above 2**53 are rejected; columns as in `FIELDS`
    """

    comments: tuple[str, ...]
    values: FloatArray

    def __post_init__(self) -> None:
        super().__post_init__()
        frozen(self.line)
        frozen(self.values)

    @property
    def processors(self) -> FloatArray:
        """(n_row,) the larger number of allocated and requested processors."""
        return np.maximum(self.values[:, ALLOCATED], self.values[:, REQUESTED_PROCESSORS])

    def refuse(self, bad: BoolArray, field: int, problem: str, remedy: str) -> None:
        """Raise UnreadableRows if any of the (n_row,) rows is bad; "{value}" in `problem` becomes the first bad value."""
        if bad.any():
            row = int(np.argmax(bad))
            message = problem.format(value=number_text(float(self.values[row, field])))
            self.fail(bad, FIELDS[field], message, remedy)

    def filter_rows(self, keep: BoolArray) -> SwfRows:
        """Return the rows for which (n_row,) `keep` is true."""
        return replace(self, line=self.line[keep], values=self.values[keep])


@dataclass(frozen=True, eq=False)
class SwfLines(NumberedRows):
    """The header and the unparsed rows of a log: header lines without the ";", and the text of each row."""

    comments: tuple[str, ...]
    text: list[str]

    def filter_rows(self, keep: BoolArray) -> SwfLines:
        """Return the rows for which `keep`, (n_row,), is true, as if they were all rows of the log."""
        return SwfLines(self.path, self.line[keep], self.comments, list(compress(self.text, keep)))


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
    return SwfLines(path, np.array(numbers, dtype=np.int64), tuple(comments), rows)


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
    log = SwfRows(lines.path, lines.line, lines.comments, np.concatenate(blocks))
    _check(log)
    return log


def _numbers(lines: SwfLines, low: int, extra_columns: int) -> FloatArray:
    """Return the numbers of at most `_BLOCK` rows, starting at row `low`, (n_row, 18)."""
    expected = len(FIELDS) + extra_columns
    words: list[str] = []
    for row in lines.text[low : low + _BLOCK]:
        fields = row.split()
        if len(fields) != expected:
            _refuse_widths(lines, extra_columns)
        words.extend(fields[: len(FIELDS)] if extra_columns else fields)
    try:
        return reals(words).reshape(-1, len(FIELDS))
    except NotANumber as error:
        field, bad = error.position % len(FIELDS), np.zeros(len(lines), dtype=np.bool_)
        rows = range(len(words) // len(FIELDS))
        bad[low : low + len(rows)] = [not are_real(words[18 * k : 18 * k + 18]) for k in rows]
        lines.fail(bad, FIELDS[field], f"{error.problem} (field {field + 1})", "write a number, or -1 if it is unknown")


def _refuse_widths(lines: SwfLines, extra_columns: int) -> None:
    """Raise UnreadableRows for the rows with more or fewer fields than expected."""
    widths = np.array([len(row.split()) for row in lines.text], dtype=np.int64)
    bad = widths != len(FIELDS) + extra_columns
    width = int(widths[bad][0])
    more = width - len(FIELDS)
    expected = f"18 fields and {extra_columns} extra columns" if extra_columns else "18 fields"
    if more < 0:
        remedy = "complete the row: unknown values are written -1"
    elif more:
        remedy = f"if every row has {more} additional columns, ignore them with extra_columns={more} (--extra-columns {more})"
    else:
        remedy = "read it without extra_columns (--extra-columns 0)"
    lines.fail(bad, None, f"the row has {width} fields, expected {expected}", remedy)


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
        before = np.full(len(log), -1)  # row with the same job number
        before[order[1:][same]] = order[:-1][same]
        first = int(before[np.argmax(before >= 0)])
        problem = f"job {number_text(float(values[first, JOB]))} is already in line {int(log.line[first])}"
        log.fail(before >= 0, FIELDS[JOB], problem, "renumber the jobs, or keep one row of each")


def write_swf_rows(log: SwfRows, path: Path) -> None:
    """Write a log atomically, gzip if the name ends in ".gz"."""
    write_text(path, "".join(_lines(log)))


def _lines(log: SwfRows) -> Iterable[str]:
    yield from (f";{comment}\n" for comment in log.comments)
    yield from (" ".join(map(number_text, row)) + "\n" for row in log.values.tolist())
