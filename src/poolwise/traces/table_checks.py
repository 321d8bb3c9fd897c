"""Checks of table columns; a failed check raises InputError with the location of the value."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from poolwise.arrays import BoolArray, IntArray
from poolwise.errors import InputError
from poolwise.model.exclusive import flag
from poolwise.traces.table_columns import Source

_NUMBER = re.compile(r"([0-9]{1,18})$")


def require(source: Source, names: Sequence[str]) -> None:
    """Raise InputError if the table lacks any of the columns."""
    missing = [name for name in names if name not in source.names]
    if missing:
        problem = f"the table lacks {', '.join(missing)}; it has {', '.join(source.names)}"
        remedy = f"the required columns are {', '.join(names)}"
        raise InputError(problem, file=source.path, line=source.header_line, field=missing[0], remedy=remedy)


def refuse(source: Source, name: str, bad: BoolArray, problem: str) -> None:
    """Raise InputError if any of the (n_row,) rows is bad; the message consists of the first bad value and `problem`."""
    if bad.any():
        row = int(np.argmax(bad))
        raise source.error(row, name, f"'{source.texts(name)[row]}' {problem}", "correct or remove the row")


def check_unique(source: Source, ids: IntArray, name: str) -> None:
    """Raise InputError if two rows have the same id; `name` is the column that contains the ids."""
    order = np.argsort(ids, kind="stable")
    twice = np.flatnonzero(ids[order[1:]] == ids[order[:-1]])
    if len(twice):
        first, second = int(order[twice[0]]), int(order[twice[0] + 1])
        problem = f"job {int(ids[first])} is already in {source.location(first)}"
        raise source.error(second, name, problem, "renumber the jobs, or keep one row of each")


def numbered(source: Source, name: str, remedy: str) -> IntArray:
    """Return the numbers at the end of names, (n_row,); raise InputError if one is missing or repeated."""
    matches = [_NUMBER.search(text) for text in source.texts(name).tolist()]
    for row, match in enumerate(matches):
        if match is None:
            raise source.error(row, name, "the name does not end in a number", remedy)
    ids = np.array([int(match[1]) for match in matches if match], dtype=np.int64)
    check_unique(source, ids, name)
    return ids


def exclusive_flags(source: Source, column: str) -> IntArray:
    """Return 1 for exclusive jobs and 0 for others, (n_row,); raise InputError for a cell that is neither true nor false."""
    words = source.texts(column).tolist()
    flags = [flag(word) for word in words]
    if None in flags:
        row = flags.index(None)
        raise source.error(row, column, f"'{words[row].strip()[:40]}' is neither true nor false", "write true or false")
    return np.array(flags, dtype=np.int64)
