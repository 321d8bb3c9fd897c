"""The HTML page that all reports share: one file without network access, light, dark and on paper."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from jinja2 import Environment, PackageLoader, StrictUndefined

from poolwise.atomic_write import write_whole
from poolwise.presentation.figure import Figure
from poolwise.presentation.table import Table
from poolwise.report.embedded_chart import library, picture, specification
from poolwise.report.theme import style_sheet


@dataclass(frozen=True)
class TableRow:
    """A row of a table; `mark` is "chosen", "true", "false", "partly" or empty."""

    cells: Sequence[str]
    mark: str = ""


@dataclass(frozen=True)
class PageTable:
    """A table; `text` for one whose cells are words and should wrap."""

    title: str
    header: Sequence[str]
    rows: Sequence[TableRow]
    caption: str = ""
    text: bool = False

    @classmethod
    def of(cls, found: Table) -> PageTable:
        """Show a table of plain data, the row of its answer in bold."""
        rows = [TableRow(row, "chosen" if k == found.chosen else "") for k, row in enumerate(found.rows)]
        return cls(found.title, found.columns, rows, found.note)


@dataclass(frozen=True)
class PageSection:
    """A heading with sentences under it."""

    title: str
    lines: Sequence[str]


@dataclass(frozen=True)
class Page:
    """A report.

    Attributes
    ----------
    title : what this is about
    first : sentences to read before the answer: load, jobs that can never run, outliers
    lead : the answer in one line, and `because` the sentences that support it
    card : the decision at a glance, with what runs today beside it; None where there is none
    main : the chart that carries the answer, shown large; None where there is none
    sections : shown side by side below it
    notes : what a reader must know beside the numbers
    figures : shown small, in rows
    further : heading -> figures behind it, which opens
    tables : behind headings that open
    head : tables to read before the figures
    after : sections below the tables
    links : text -> file beside the page, such as all rows as CSV
    """

    title: str
    lead: str
    first: Sequence[str] = ()
    because: Sequence[str] = ()
    card: PageTable | None = None
    main: Figure | None = None
    head: Sequence[PageTable] = ()
    sections: Sequence[PageSection] = ()
    notes: Sequence[str] = ()
    figures: Sequence[Figure] = ()
    further: Mapping[str, Sequence[Figure]] = field(default_factory=dict)
    tables: Sequence[PageTable] = ()
    after: Sequence[PageSection] = ()
    links: Mapping[str, str] = field(default_factory=dict)
    provenance: Mapping[str, str] = field(default_factory=dict)

    @property
    def charts(self) -> list[tuple[Figure, bool]]:
        """All figures, the main one first, and whether it is drawn wide."""
        small = [*self.figures, *(shown for found in self.further.values() for shown in found)]
        return [*([] if self.main is None else [(self.main, True)]), *((shown, False) for shown in small)]


def render(page: Page) -> str:
    """Make the HTML. Apart from the provenance block, the same results give the same bytes."""
    environment = Environment(
        loader=PackageLoader("poolwise.report"), autoescape=True, undefined=StrictUndefined, trim_blocks=True
    )
    return environment.get_template("page.html.j2").render(
        page=page,
        drawn={shown.name: (picture(shown, wide), specification(shown, wide)) for shown, wide in page.charts},
        style=style_sheet(),
        library=library() if page.charts else "",
    )


def write_page(page: Page, path: Path) -> None:
    """Write a page; the file appears whole or not at all."""
    write_whole(path, render(page).encode())
