"""The HTML page of all reports: one file without network access, for light and dark screens and for print."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from jinja2 import Environment, PackageLoader, StrictUndefined

from poolwise.atomic_write import write_whole
from poolwise.presentation.figure import Figure
from poolwise.presentation.table import Table
from poolwise.report.embedded_chart import chart_json, chart_svg, library
from poolwise.report.theme import style_sheet


@dataclass(frozen=True)
class TableRow:
    """A row of a table; `mark` is "chosen", "true", "false", "partly" or empty."""

    cells: Sequence[str]
    mark: str = ""


@dataclass(frozen=True)
class PageTable:
    """A table; `text` marks a table whose cells contain sentences and should wrap."""

    title: str
    header: Sequence[str]
    rows: Sequence[TableRow]
    caption: str = ""
    text: bool = False

    @classmethod
    def of(cls, found: Table) -> PageTable:
        """Convert a table of plain data; the row with the answer is bold."""
        rows = [TableRow(row, "chosen" if k == found.chosen else "") for k, row in enumerate(found.rows)]
        return cls(found.title, found.columns, rows, found.note)


@dataclass(frozen=True)
class PageSection:
    """A heading with sentences."""

    title: str
    lines: Sequence[str]


@dataclass(frozen=True)
class Page:
    """A report.

    Attributes
    ----------
    title : subject of the report
    first : sentences to read with the answer: load, jobs that can never run, outliers
    lead : the answer in one line
    because : sentences that support it
    card : summary of the decision, compared with today; None without one
    main : the main chart, drawn wide; None without one
    sections : headings and sentences, in columns below the chart
    notes : remarks on the numbers
    figures : small charts, in rows
    further : heading -> collapsed figures
    tables : collapsed tables
    head : tables above the figures
    after : sections below the tables
    links : text -> file in the folder of the page, such as all rows as CSV
    provenance : name -> version or hash
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
        """All figures, the main one first, each with whether it is drawn wide."""
        small = [*self.figures, *(shown for found in self.further.values() for shown in found)]
        return [*([] if self.main is None else [(self.main, True)]), *((shown, False) for shown in small)]


def render(page: Page) -> str:
    """Render the HTML. Apart from the provenance, equal results give equal bytes."""
    environment = Environment(
        loader=PackageLoader("poolwise.report"), autoescape=True, undefined=StrictUndefined, trim_blocks=True
    )
    return environment.get_template("page.html.j2").render(
        page=page,
        drawn={shown.name: (chart_svg(shown, wide), chart_json(shown, wide)) for shown, wide in page.charts},
        style=style_sheet(),
        library=library() if page.charts else "",
    )


def write_page(page: Page, path: Path) -> None:
    """Write a page atomically."""
    write_whole(path, render(page).encode())
