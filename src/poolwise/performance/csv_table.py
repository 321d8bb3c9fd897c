"""Reader of small CSV tables with a header: files, rows with their line numbers, and numbers in cells."""

from __future__ import annotations

import csv
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TypeVar

from poolwise import catalog
from poolwise.errors import InputError

T = TypeVar("T")


def read_once(kind: str, reference: str | Path, read: Callable[[Path], T], what: str, field: str | None = None) -> T:
    """Read a file, or the shipped file "catalog:NAME" of a kind; read it again only after a modification.

    Raises InputError if the file, named `what` in the message, does not exist.
    """
    path = catalog.resolve(kind, reference)
    if not path.is_file():
        remedy = f'give a CSV file, or "{catalog.PREFIX}NAME"'
        raise InputError(f"{what} not found: {path.name}", file=path, field=field, remedy=remedy)
    content: T = _read(read, path, path.stat().st_mtime_ns)
    return content


@lru_cache(maxsize=64)
def _read(read: Callable[[Path], T], path: Path, modified: int) -> T:
    """Read a file; the time of its last modification is part of the cache key."""
    return read(path)


def table_rows(
    lines: Iterable[str], file: Path, columns: Sequence[str], optional: Sequence[str] = ()
) -> Iterator[tuple[int, dict[str, str]]]:
    """Yield line number and cells of each row; lines that begin with # are comments.

    Raises InputError if the header lacks one of the columns, except the `optional` ones.
    """
    line = 0

    def text() -> Iterator[str]:
        nonlocal line
        for line, content in enumerate(lines, start=1):  # noqa: B007  # read below, after each row
            if not content.startswith("#"):
                yield content

    rows = csv.DictReader(text())
    names = rows.fieldnames or ()
    for name in columns:
        if name not in names and name not in optional:
            remedy = f"columns: {', '.join(columns)}"
            raise InputError(f"no column '{name}'", file=file, line=max(line, 1), field=name, remedy=remedy)
    for row in rows:
        yield line, row


def number(text: str | None, file: Path, line: int, field: str, least: float = -math.inf, most: float = math.inf) -> float:
    """Parse a cell; raise InputError if it is not a finite number from `least` to `most`."""
    try:
        value = float(text or "")
    except ValueError:
        value = math.nan
    if not (math.isfinite(value) and least <= value <= most):
        limits = f" from {least:g} to {most:g}" if most < math.inf else f" of at least {least:g}" if least > -math.inf else ""
        raise InputError(f"'{text or ''}' is not a number{limits}", file=file, line=line, field=field, remedy="correct it")
    return value
