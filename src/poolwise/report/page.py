"""The HTML page that all reports share: one file without network access, readable at laptop width, light and dark."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from jinja2 import Environment, PackageLoader, StrictUndefined

from poolwise.atomic import write_whole
from poolwise.exhibits.figure import Figure
from poolwise.report.figures import svg
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
    head : tables to read before the figures
    sections : shown side by side below the answer
    notes : what a reader must know beside the numbers
    after : sections below the tables
    links : text -> file beside the page, such as all rows as CSV
    """

    title: str
    lead: str
    first: Sequence[str] = ()
    because: Sequence[str] = ()
    head: Sequence[PageTable] = ()
    sections: Sequence[PageSection] = ()
    notes: Sequence[str] = ()
    figures: Sequence[Figure] = ()
    tables: Sequence[PageTable] = ()
    after: Sequence[PageSection] = ()
    links: Mapping[str, str] = field(default_factory=dict)
    provenance: Mapping[str, str] = field(default_factory=dict)


def render(page: Page) -> str:
    """Make the HTML. Apart from the provenance block, the same results give the same bytes."""
    environment = Environment(
        loader=PackageLoader("poolwise.report"), autoescape=True, undefined=StrictUndefined, trim_blocks=True
    )
    drawn = [(shown, svg(shown)) for shown in page.figures]
    return environment.get_template("page.html.j2").render(page=page, figures=drawn, style=style_sheet())


def write_page(page: Page, path: Path) -> None:
    """Write the page; the file appears whole or not at all."""
    write_whole(path, render(page).encode())
