"""Handling of unreadable log rows: skip, count and report them, or raise an error for the first."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NoReturn, Protocol, Self, TypeVar

import numpy as np

from poolwise.arrays import BoolArray, IntArray
from poolwise.errors import InputError
from poolwise.model import Workload
from poolwise.traces.numbers import NotANumber

MAX_NOTES = 3
"""Number of parse errors that are reported in full; the others are only counted."""


class UnreadableRows(InputError):
    """Some rows cannot be read; the message describes the first.

    `bad` is an (n_row,) mask of these rows; None once the error has been passed to another process.
    """

    bad: BoolArray | None = None

    @classmethod
    def of(
        cls, bad: BoolArray, message: str, *, file: Path, line: int | None, field: str | None, remedy: str
    ) -> UnreadableRows:
        """Build the error for (n_row,) `bad` rows; the other arguments describe the first of them."""
        error = cls(message, file=file, line=line, field=field, remedy=remedy)
        error.bad = bad
        return error


class LogRows(Protocol):
    """Rows of a log, some of which can be removed."""

    def __len__(self) -> int:
        """Return the number of rows."""
        ...

    def filter_rows(self, keep: BoolArray) -> Self:
        """Return the rows for which (n_row,) `keep` is true."""
        ...


@dataclass(frozen=True, eq=False)
class NumberedRows:
    """Rows of a log with line numbers, all rows or a part.

    Attributes
    ----------
    path : file that was read
    line : (n_row,) line of the file, from 1
    whole : lines of all rows of the log, for the masks of unreadable rows in errors; by default those of these rows
    """

    path: Path
    line: IntArray
    whole: IntArray = field(default_factory=lambda: np.zeros(0, dtype=np.int64), kw_only=True)

    def __post_init__(self) -> None:
        if not len(self.whole):
            object.__setattr__(self, "whole", self.line)

    def __len__(self) -> int:
        return len(self.line)

    def fail(self, bad: BoolArray, name: str | None, problem: str, remedy: str) -> NoReturn:
        """Raise UnreadableRows for the (n_row,) bad rows, at the line of the first."""
        line, rows = int(self.line[np.argmax(bad)]), np.isin(self.whole, self.line[bad])
        raise UnreadableRows.of(rows, problem, file=self.path, line=line, field=name, remedy=remedy)


def unreadable(words: list[str], reader: Callable[[list[str]], object]) -> BoolArray:
    """Return an (n_word,) mask of the texts for which a reader raises NotANumber."""

    def fails(word: str) -> bool:
        try:
            reader([word])
        except NotANumber:
            return True
        return False

    return np.array([fails(word) for word in words], dtype=np.bool_)


@dataclass
class SkippedRows:
    """Number of the skipped rows by reason, and one sentence for each of the first parse errors."""

    counts: dict[str, int] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    @property
    def rows(self) -> int:
        """Total number of skipped rows."""
        return sum(self.counts.values())

    def add(self, error: UnreadableRows) -> None:
        """Count the rows of an error."""
        assert error.bad is not None
        reason = f"cannot be read ({error.field})" if error.field else "cannot be read"
        self.counts[reason] = self.counts.get(reason, 0) + int(error.bad.sum())
        if len(self.notes) < MAX_NOTES:
            location = f"line {error.line}: " if error.line is not None else ""
            column = f"{error.field}: " if error.field else ""
            self.notes.append(f"skipped, for example, {location}{column}{error.message}")


T = TypeVar("T", bound=LogRows)


def read_readable(rows: T, read: Callable[[T], Workload], *, strict: bool) -> Workload:
    """Call a function that reads rows, and call it again without the rows for which it raises UnreadableRows.

    Skipped rows are counted as excluded, and notes describe the first. If `strict` is set, the first error propagates. It also
    propagates if more rows are unreadable than readable, because then the options or the format are wrong rather than the rows.
    """
    skipped, total, first = SkippedRows(), len(rows), None
    while True:
        try:
            workload = read(rows)
            return replace(workload, excluded={**skipped.counts, **workload.excluded}, notes=(*workload.notes, *skipped.notes))
        except UnreadableRows as error:
            if strict or error.bad is None:
                raise
            first = first or error
            skipped.add(error)
            if 2 * skipped.rows > total:
                raise _unreadable_log(first, skipped.rows, total) from error
            rows = rows.filter_rows(np.logical_not(error.bad))
        except InputError as error:
            if first is None:
                raise
            raise _unreadable_log(first, skipped.rows, total, f"; of the others: {error.message}") from error


def _unreadable_log(first: UnreadableRows, skipped: int, total: int, others: str = "") -> InputError:
    """Return the error for a log of which too few rows can be read; `others` states why these do not suffice."""
    message = f"{first.message}; {skipped:,} of {total:,} rows cannot be read{others}"
    return InputError(message, file=first.file, line=first.line, field=first.field, remedy=first.remedy)
