"""Tables on a terminal: no wider than the terminal, with line breaks between words only."""

from __future__ import annotations

from rich.table import Column, Table

from poolwise.cli.console import out, print_line

_GAP = 2
"""Spaces between two columns."""


def plain_table(*headings: str | Column, title: str | None = None) -> Table:
    """Return a table without lines or outer padding."""
    return Table(*headings, title=title, box=None, pad_edge=False, title_justify="left")


def print_table(table: Table) -> None:
    """Print a plain table within the width of the console.

    Wide columns wrap between words. Numbers and columns marked `no_wrap` wrap only if nothing else helps. A table that does
    not fit even so is printed as one block of lines per row.
    """
    if table.title:
        print_line(str(table.title), style="italic")
        table.title = None
    widths = _widths(table, out.width)
    if widths is None:
        _print_blocks(table)
        return
    for column, width in zip(table.columns, widths, strict=True):
        column.width, column.ratio, column.no_wrap, column.overflow = width, None, False, "fold"
    out.print(table, highlight=False, soft_wrap=False)


def _widths(table: Table, available: int) -> list[int] | None:
    """Choose column widths that sum to at most `available`; None if words would have to be broken."""
    columns = [[*([str(column.header)] if table.show_header else []), *map(str, column.cells)] for column in table.columns]
    room = available - _GAP * (len(columns) - 1)
    natural = [max((len(line) for text in texts for line in text.split("\n")), default=0) for texts in columns]
    words = [max((len(word) for text in texts for word in text.split()), default=0) for texts in columns]
    cells = [max((len(line) for text in column.cells for line in str(text).split("\n")), default=0) for column in table.columns]
    rigid = [column.no_wrap or column.justify == "right" for column in table.columns]  # their headings may wrap
    whole = [max(word, cell) if fixed else word for word, cell, fixed in zip(words, cells, rigid, strict=True)]
    for least in (whole, words):
        if sum(least) <= room:
            cap = max(c for c in range(max(natural, default=0) + 1) if _total(least, natural, c) <= room)
            return [min(full, max(word, cap)) for full, word in zip(natural, least, strict=True)]
    return None


def _total(least: list[int], natural: list[int], cap: int) -> int:
    return sum(min(full, max(word, cap)) for full, word in zip(natural, least, strict=True))


def _print_blocks(table: Table) -> None:
    """Print each row as `heading: value` lines under its first cell."""
    headings = [" ".join(str(column.header).split()) for column in table.columns]
    for cells in zip(*(column.cells for column in table.columns), strict=True):
        first, *others = map(str, cells)
        print_line(first)
        for heading, text in zip(headings[1:], others, strict=True):
            if text:
                print_line(f"  {heading}: {text}" if heading else f"  {text}")
