"""Contents of a page: the paper's figures and tables, with links to our figures and to the rows that judge them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from markupsafe import Markup

from poolwise.presentation.figure import Figure
from poolwise.presentation.table import Table
from poolwise_reproductions.criteria import ClaimVerdict, Measured
from poolwise_reproductions.papers import PaperItem, PublishedPaper, item_number
from poolwise_reproductions.published import ClaimRow
from poolwise_reproductions.reproduction import about

ROWS = "Rows by figure and table of the paper"
NO_PICTURES = "No mark is read off a picture: only the text of the papers is available to us."
_SHOWN: tuple[ClaimVerdict, ...] = ("holds", "fails", "undetermined", "shown", "not measured")


def items_of(paper: PublishedPaper, rows: Sequence[ClaimRow]) -> list[PaperItem]:
    """Return the figures and tables of a paper, then any other places that its rows name."""
    numbers = {item.number for item in paper.contents}
    others = dict.fromkeys(item_number(row.claim.artifact) for row in _of_paper(rows))
    return [*paper.contents, *(PaperItem(number, "in the text") for number in others if number not in numbers)]


def contents_table(
    paper: PublishedPaper, rows: Sequence[ClaimRow], figures: Sequence[Figure], tables: Sequence[Table]
) -> Table:
    """Return one row per figure and table of the paper; `tables` are the folded tables of the page, in its order."""
    lines = []
    for item in items_of(paper, rows):
        mine = [row for row in _of_paper(rows) if item_number(row.claim.artifact) == item.number]
        count = Counter(row.verdict for row in mine)
        verdicts = ", ".join(f"{count[verdict]} {_verb(verdict, count[verdict])}" for verdict in _SHOWN if count[verdict])
        judged = Markup('<a href="#{}">{}</a>').format(anchor(item.number), verdicts) if mine else "none"
        lines.append([f"{item.number}: {item.shows}", _ours(item, figures, tables, bool(mine)), judged])
    note = f"By the numbers of the paper. {paper.printed} {NO_PICTURES}{paper.read_off and f' {paper.read_off}'}"
    return Table("Figures and tables of the paper", ("paper", "ours", "rows that judge it"), lines, note, text=True)


def _verb(verdict: ClaimVerdict, count: int) -> str:
    """Return a count of rows with its verdict, in agreement: "1 holds", "2 hold"."""
    return verdict.removesuffix("s") if verdict in ("holds", "fails") and count != 1 else verdict


def _ours(item: PaperItem, figures: Sequence[Figure], tables: Sequence[Table], judged: bool) -> str:
    """Return links to our figures and tables of an item, or the reason why there are none."""
    drawn = [f for f in figures if about(item.number, f.artifact) or f.name in item.ours]
    links = [(f"figure-{figure.name}", figure.title) for figure in drawn]
    links += [
        (f"table-{k}", table.title) for k, table in enumerate(tables, start=1) if table.title.partition(":")[0] == item.number
    ]
    if not links:
        without = "no figure; rows only" if judged else "not in this run"
        return f"not reproduced: {item.reason}" if item.reason else without
    return Markup("<br>").join(Markup('<a href="#{}">{}</a>').format(*link) for link in links)


def rows_table(paper: PublishedPaper, rows: Sequence[ClaimRow]) -> Table:
    """Return the rows of the paper and its inputs, ordered by figure and table; the first row of each has an anchor."""
    lines = []
    for item in items_of(paper, rows):
        mine = [row for row in _of_paper(rows) if item_number(row.claim.artifact) == item.number]
        for k, row in enumerate(mine):
            claim = row.claim
            place = Markup('<span id="{}">{}</span>').format(anchor(item.number), claim.artifact) if not k else claim.artifact
            unit = f"{claim.metric} ({claim.unit})" if claim.unit else claim.metric
            published = "" if claim.published != claim.published else f"{claim.published:.6g}"
            lines.append([place, claim.condition, unit, published, _value(row.measured), claim.rule, row.verdict])
    columns = ("paper", "condition", "metric", "published", "ours, with its 95 % interval", "rule", "verdict")
    note = "Claims and inputs of the paper under the specification's reading; the CSV has causes and quotations."
    return Table(ROWS, columns, lines, note, text=True)


def anchor(number: str) -> str:
    """Return the HTML id that marks the rows of a figure or table."""
    return f"rows-{number.lower().replace(' ', '-')}"


def _of_paper(rows: Sequence[ClaimRow]) -> list[ClaimRow]:
    return [row for row in rows if row.claim.kind != "ours"]


def _value(measured: Measured | None) -> str:
    if measured is None or measured.value != measured.value:
        return ""
    low, high = measured.bounds
    return f"{measured.value:.4g}" + ("" if low == high else f" [{low:.4g}, {high:.4g}]")
