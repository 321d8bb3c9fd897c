"""Tables on a terminal: bold headings, right-aligned numbers, no wider than the terminal, line breaks only between words."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator, Sequence
from itertools import zip_longest

from poolwise.cli.console import out, print_line
from poolwise.presentation.table import Table
from poolwise.quantities import format_count

MOST = 40
"""Number of rows that a table shows unless all are requested."""
_GAP = 2
"""Spaces between two columns."""
_NUMBER = r"[-+]?[\d.,]*\d(e[-+]?\d+)?%?"
_QUANTITY = re.compile(rf"-|{_NUMBER}( ({_NUMBER}|[A-Za-z%$/]{{1,7}}))*")
"""A number, an amount with units, or a range of amounts."""
_BETWEEN = re.compile(r"(?<= to) ")


def print_table(table: Table, most: int | None = None, remedy: str = "") -> None:
    """Print a table within the width of the console.

    Wide columns wrap between words. Quantities wrap only as a last resort. If the table still does not fit, it is printed as
    one block of lines per row. Empty columns are left out. If there are more than `most` rows, only the first are printed,
    followed by the `remedy` to see the others.
    """
    filled = [k for k in range(len(table.columns)) if not table.rows or any(row[k] for row in table.rows)]
    columns, *shown = [[row[k] for k in filled] for row in (table.columns, *table.rows[:most])]
    numeric = [_is_numeric(column) for column in zip(*shown, strict=True)] or [False] * len(columns)
    widths = _widths(columns, shown, numeric, out.width)
    if table.title:
        print_line(f"\n{table.title}", style="bold")
    if widths is None:
        _print_blocks(columns, shown, numeric[0])
    else:
        if any(columns):
            _print_row(columns, widths, numeric, "bold")
        for k, row in enumerate(shown):
            _print_row(row, widths, numeric, "bold" if table.mark(k) == "chosen" else None)
    if hidden := len(table.rows) - len(shown):
        print_line(f"{format_count(hidden, 'more row')}: {remedy}", style="dim")
    if table.note:
        print_line(table.note, style="dim")


def _is_numeric(cells: Sequence[str]) -> bool:
    return any(cells) and all(_QUANTITY.fullmatch(cell) for cell in cells if cell)


def _print_row(row: Sequence[str], widths: Sequence[int], numeric: Sequence[bool], style: str | None) -> None:
    """Print one row; its cells wrap at the width of their column."""
    for parts in zip_longest(*(_wrap(cell, width) for cell, width in zip(row, widths, strict=True)), fillvalue=""):
        aligned = (
            part.rjust(width) if right else part.ljust(width) for part, width, right in zip(parts, widths, numeric, strict=True)
        )
        out.print((" " * _GAP).join(aligned).rstrip(), style=style, markup=False, highlight=False, soft_wrap=True)


def _wrap(cell: str, width: int) -> list[str]:
    return textwrap.wrap(cell, max(width, 1), break_long_words=False, break_on_hyphens=False)


def _widths(columns: Sequence[str], rows: Sequence[Sequence[str]], numeric: Sequence[bool], available: int) -> list[int] | None:
    """Choose column widths that sum to at most `available`; None if words would have to be broken."""
    room = available - _GAP * (len(columns) - 1)
    every = [*zip(columns, *rows, strict=True)]
    natural = [max(map(len, texts)) for texts in every]
    words = [max((len(word) for text in texts for word in text.split()), default=0) for texts in every]
    amounts = [max((len(end) for text in texts[1:] for end in _BETWEEN.split(text)), default=0) for texts in every]
    whole = [max(word, amount) if right else word for word, amount, right in zip(words, amounts, numeric, strict=True)]
    for least in (whole, words):
        if sum(least) <= room:
            cap = max(c for c in range(max(natural, default=0) + 1) if sum(_capped(least, natural, c)) <= room)
            return [*_capped(least, natural, cap)]
    return None


def _capped(least: Sequence[int], natural: Sequence[int], cap: int) -> Iterator[int]:
    return (min(full, max(word, cap)) for full, word in zip(natural, least, strict=True))


def _print_blocks(columns: Sequence[str], rows: Sequence[Sequence[str]], numbered: bool) -> None:
    """Print each row as `heading: value` lines under its first cell; a number there follows its heading."""
    for first, *others in rows:
        print_line(f"{columns[0]} {first}".lstrip() if numbered else first)
        for heading, text in zip(columns[1:], others, strict=True):
            if text:
                print_line(f"  {heading}: {text}" if heading else f"  {text}")
