"""Handling of unreadable log rows: skip, count and report them, or raise an error for the first."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol, Self, TypeVar

import numpy as np

from poolwise.arrays import BoolArray
from poolwise.errors import InputError

MAX_NOTES = 3
"""Number of parse errors that are reported in full; the others are only counted."""


class UnreadableRows(InputError):
    """Some rows cannot be read; the message describes the first.

    Attributes
    ----------
    bad : (n_row,) mask of these rows; None after the error has been passed to another process
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


@dataclass
class SkippedRows:
    """Counts and examples of the skipped rows.

    Attributes
    ----------
    counts : reason -> number of rows
    notes : one sentence for each of the first parse errors
    """

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
R = TypeVar("R")


def read_readable(rows: T, read: Callable[[T], R], *, strict: bool) -> tuple[R, SkippedRows]:
    """Call a function that reads rows, and call it again without the rows for which it raises UnreadableRows.

    If `strict` is set, the first error propagates. It also propagates if more rows are unreadable than readable, because then
    the options or the format are wrong rather than the rows.
    """
    skipped, total, first = SkippedRows(), len(rows), None
    while True:
        try:
            return read(rows), skipped
        except UnreadableRows as error:
            if strict or error.bad is None:
                raise
            first = first or error
            skipped.add(error)
            if 2 * skipped.rows > total:
                message = f"{first.message}; {skipped.rows:,} of {total:,} rows cannot be read"
                raise InputError(message, file=first.file, line=first.line, field=first.field, remedy=first.remedy) from error
            rows = rows.filter_rows(np.logical_not(error.bad))
