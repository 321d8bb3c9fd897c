"""Rows of a log that cannot be read: left out, counted and told, or an error at the first of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol, Self, TypeVar

import numpy as np

from poolwise.arrays import BoolArray
from poolwise.errors import InputError

SHOWN = 3
"""Reasons that are told in full; the others are counted."""


class UnreadableRows(InputError):
    """Some rows cannot be read; the message tells of the first.

    Attributes
    ----------
    bad : (n_row,) which rows; None once the error has left the process in which it was raised
    """

    bad: BoolArray | None = None

    @classmethod
    def of(
        cls, bad: BoolArray, message: str, *, file: Path, line: int | None, field: str | None, remedy: str
    ) -> UnreadableRows:
        """Build the error for (n_row,) `bad` rows, where the other arguments tell of the first."""
        error = cls(message, file=file, line=line, field=field, remedy=remedy)
        error.bad = bad
        return error


class LogRows(Protocol):
    """Rows of a log, from which some can be left out."""

    def __len__(self) -> int:
        """Count the rows."""
        ...

    def filter_rows(self, keep: BoolArray) -> Self:
        """Those rows for which (n_row,) `keep` is true."""
        ...


@dataclass
class Skipped:
    """What was left out.

    Attributes
    ----------
    counts : reason -> rows
    notes : sentences that tell of the first rows
    """

    counts: dict[str, int] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    @property
    def rows(self) -> int:
        """Rows in all."""
        return sum(self.counts.values())

    def add(self, error: UnreadableRows) -> None:
        """Count the rows of an error."""
        assert error.bad is not None
        reason = f"cannot be read ({error.field})" if error.field else "cannot be read"
        self.counts[reason] = self.counts.get(reason, 0) + int(error.bad.sum())
        if len(self.notes) < SHOWN:
            place = f"line {error.line}: " if error.line is not None else ""
            named = f"{error.field}: " if error.field else ""
            self.notes.append(f"left out, for instance, {place}{named}{error.message}")


T = TypeVar("T", bound=LogRows)
R = TypeVar("R")


def read_readable(rows: T, read: Callable[[T], R], *, strict: bool) -> tuple[R, Skipped]:
    """Read rows with a function that raises UnreadableRows; it is asked again without them until it raises no more.

    Where `strict` is set the first error stands. So it does where more rows cannot be read than can: then it is not the
    rows that are wrong, but the way in which they are read.
    """
    skipped, whole, first = Skipped(), len(rows), None
    while True:
        try:
            return read(rows), skipped
        except UnreadableRows as error:
            if strict or error.bad is None:
                raise
            first = first or error
            skipped.add(error)
            if 2 * skipped.rows > whole:
                message = f"{first.message}; {skipped.rows:,} of {whole:,} rows cannot be read"
                raise InputError(message, file=first.file, line=first.line, field=first.field, remedy=first.remedy) from error
            rows = rows.filter_rows(np.logical_not(error.bad))
