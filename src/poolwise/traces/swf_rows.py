"""Rows of the Standard Workload Format as they are in the file.

Source: Chapin et al. 1999, "Benchmarks and standards for the evaluation of parallel job schedulers"; version 2.2 of the
Parallel Workloads Archive.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from poolwise.arrays import BoolArray, FloatArray, IntArray, frozen
from poolwise.errors import InputError
from poolwise.traces.numbers import NotANumber, number_text, reals
from poolwise.traces.text import read_text, write_text

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
"""Fields in which logs write fractions of seconds and of KB; the others count or name things."""

_EXACT = 2.0**53
_BLOCK = 20_000  # lines taken apart at once: bounds the memory that their words need


@dataclass(frozen=True, eq=False)
class SwfRows:
    """A log: its header and its rows, unknown values -1.

    Attributes
    ----------
    path : where it was read
    comments : header lines without the ";"
    line : (n_row,) line of the file, from 1
    values : (n_row, 18) float64, exact since larger numbers than 2**53 are refused; columns as in `FIELDS`
    """

    path: Path
    comments: tuple[str, ...]
    line: IntArray
    values: FloatArray

    def __post_init__(self) -> None:
        frozen(self.line)
        frozen(self.values)

    def __len__(self) -> int:
        return len(self.line)

    @property
    def processors(self) -> FloatArray:
        """(n_row,) the larger of allocated and requested processors."""
        return np.maximum(self.values[:, ALLOCATED], self.values[:, REQUESTED_PROCESSORS])

    def refuse(self, bad: BoolArray, field: int, problem: str, remedy: str) -> None:
        """Raise InputError for the first of the (n_row,) bad rows, if there is one; `problem` may name {value}."""
        if bad.any():
            row = int(np.argmax(bad))
            said = problem.format(value=number_text(float(self.values[row, field])))
            raise InputError(said, file=self.path, line=int(self.line[row]), field=FIELDS[field], remedy=remedy)


def read_rows(path: Path, extra_columns: int = 0) -> SwfRows:
    """Read a log; each row must have 18 fields and exactly `extra_columns` more, which are left out.

    Raises InputError with the file, the line and the name of the field.
    """
    if extra_columns < 0:
        raise InputError(f"{extra_columns} columns cannot be left out", field="extra_columns", remedy="give 0 or more")
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
        raise InputError("the trace holds no jobs", file=path, remedy="give a file with rows of 18 numbers")
    blocks = [
        _take_apart(path, numbers[low : low + _BLOCK], rows[low : low + _BLOCK], extra_columns)
        for low in range(0, len(rows), _BLOCK)
    ]
    log = SwfRows(path, tuple(comments), np.array(numbers, dtype=np.int64), np.concatenate(blocks))
    _check(log)
    return log


def _take_apart(path: Path, numbers: list[int], rows: list[str], extra_columns: int) -> FloatArray:
    """(n_row, 18) numbers of some rows."""
    expected = len(FIELDS) + extra_columns
    words: list[str] = []
    for number, row in zip(numbers, rows, strict=True):
        fields = row.split()
        if len(fields) != expected:
            raise _wrong_width(path, number, len(fields), extra_columns)
        words.extend(fields[: len(FIELDS)] if extra_columns else fields)
    try:
        return reals(words).reshape(-1, len(FIELDS))
    except NotANumber as error:
        position, field = divmod(error.position, len(FIELDS))
        raise InputError(
            f"{error.problem} (field {field + 1})",
            file=path,
            line=numbers[position],
            field=FIELDS[field],
            remedy="write a number, -1 where it is unknown",
        ) from error


def _wrong_width(path: Path, line: int, found: int, extra_columns: int) -> InputError:
    more = found - len(FIELDS)
    expected = f"18 fields and {extra_columns} extra columns" if extra_columns else "18 fields"
    if more < 0:
        remedy = "complete the row: unknown values are written -1"
    elif more:
        remedy = (
            f"if every row has {more} columns of its own, leave them out with extra_columns={more} (--extra-columns {more})"
        )
    else:
        remedy = "read it without extra_columns (--extra-columns 0)"
    return InputError(f"the row has {found} fields, expected {expected}", file=path, line=line, remedy=remedy)


def _check(log: SwfRows) -> None:
    """Refuse what no reading of the fields allows."""
    values = log.values
    for field in range(len(FIELDS)):
        column = values[:, field]
        log.refuse(np.abs(column) > _EXACT, field, "{value} is too large", "correct the row")
        if field not in _FRACTIONS:
            log.refuse(column != np.floor(column), field, "{value} is not a whole number", "correct the row")
    submit = values[:, SUBMIT]
    negative = (submit < 0) & (submit != -1)
    log.refuse(negative, SUBMIT, "submit time {value} is negative", "write -1 where it is unknown, correct or remove the row")
    order = np.argsort(values[:, JOB], kind="stable")
    twice = np.flatnonzero(values[order[1:], JOB] == values[order[:-1], JOB])
    if len(twice):
        first, second = (int(log.line[order[k]]) for k in (twice[0], twice[0] + 1))
        raise InputError(
            f"job {number_text(float(values[order[twice[0]], JOB]))} is already in line {first}",
            file=log.path,
            line=second,
            field=FIELDS[JOB],
            remedy="renumber the jobs, or keep one row of each",
        )


def write_swf_rows(log: SwfRows, path: Path) -> None:
    """Write a log, gzip if the name ends in ".gz", whole or not at all."""
    write_text(path, "".join(_lines(log)))


def _lines(log: SwfRows) -> Iterable[str]:
    yield from (f";{comment}\n" for comment in log.comments)
    yield from (" ".join(map(number_text, row)) + "\n" for row in log.values.tolist())
