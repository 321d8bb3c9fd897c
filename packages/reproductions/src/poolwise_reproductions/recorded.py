"""Renew the recorded page of a reproduction from its recorded rows and figures, without repeating its runs."""

from __future__ import annotations

import csv
import json
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from html import unescape
from pathlib import Path
from typing import Any, Literal, cast

from poolwise import registry
from poolwise.presentation.figure import Figure, VegaChart
from poolwise.presentation.table import Table
from poolwise.report.chart_parts import series_style
from poolwise.report.page import write_report
from poolwise_reproductions import catalog
from poolwise_reproductions.contents import ROWS
from poolwise_reproductions.criteria import ClaimRule, ClaimVerdict, Measured
from poolwise_reproductions.figure_scripts import expected
from poolwise_reproductions.headlines import read_headlines
from poolwise_reproductions.overview import read_comparison, read_notes
from poolwise_reproductions.printed import remove_marks
from poolwise_reproductions.published import READINGS, Claim, ClaimClass, ClaimRow, ReasonBasis
from poolwise_reproductions.report import SCRIPTS, reproduction_answer
from poolwise_reproductions.reproduction import Reproduced, ReproductionResult

_FIGURE = re.compile(
    r'<figure data-chart.*? id="figure-(?P<name>[^"]+)">\s*<h(?P<level>\d)>(?P<title>.*?)</h\d>.*?'
    r"<figcaption>(?P<caption>.*?)</figcaption>\s*"
    r'<script type="application/json">(?P<spec>.*?)</script>',
    re.DOTALL,
)
_TABLE = re.compile(r'<details id="table-\d+"><summary><h2>(.*?)</h2></summary>(.*?)</details>', re.DOTALL)
_FINDINGS = re.compile(r"<section><h2>(?:Findings|What the runs teach)</h2><ul>(.*?)</ul></section>", re.DOTALL)
_PROVENANCE = re.compile(r'<tr><th scope="row">([^<]*)</th><td><code>([^<]*)</code></td></tr>')
_NOT_KEPT = (ROWS, SCRIPTS, "A script a figure")
"""Tables that are recomputed for every page."""
_MARKS = re.compile(r" ?(?:Marks: paper \(.*|The text prints no number that has a place in this figure\.)$", re.DOTALL)
"""End of a caption, which is rewritten for every page."""


_DRAWN = (
    "The head, the contents and all rows of this page are those of the recorded CSV. Its figures, findings and other tables "
    "are those of the full run whose hash is in the head, so rows that were measured later may have no figure."
)


@dataclass(frozen=True)
class RecordedRow(ClaimRow):
    """A row of a recorded comparison.csv, with the verdict and the cause that its run computed."""

    record: Mapping[str, str] = field(default_factory=dict)

    @property
    def verdict(self) -> ClaimVerdict:
        """Recorded verdict."""
        return cast(ClaimVerdict, self.record["verdict"])

    def verdict_under(self, reading: str) -> ClaimVerdict:
        """Return the recorded verdict under another reading."""
        return cast(ClaimVerdict, self.record[f"{reading.replace(' ', '_')}_verdict"] or self.record["verdict"])

    @property
    def shown_by(self) -> str:
        """Recorded evidence."""
        return self.record["shown_by"]

    @property
    def basis(self) -> ReasonBasis | Literal[""]:
        """Recorded basis of the cause."""
        return cast(ReasonBasis, self.record["basis"])

    @property
    def cause(self) -> str:
        """Recorded cause."""
        return self.record["cause"]

    @property
    def note(self) -> str:
        """Recorded note."""
        return self.record["note"]


def recorded_rows(path: Path) -> list[RecordedRow]:
    """Read the rows of a recorded comparison.csv."""
    return [_row(cells) for cells in read_comparison(path)]


def _row(cells: Mapping[str, str]) -> RecordedRow:
    claim = Claim(
        cells["artifact"], cells["condition"], cells["metric"], cells["unit"], _number(cells["published"]),
        cast(ClaimRule, cells["rule"]), _number(cells["tolerance"]), kind=cast(ClaimClass, cells["class"]),
        place=cells.get("place", ""), quotation=cells.get("quotation", ""),
    )  # fmt: skip
    measured = _measured(cells, "measured", "ci95_low", "ci95_high")
    names = {reading: reading.replace(" ", "_") for reading in READINGS}
    others = {reading: _measured(cells, name, f"{name}_low", f"{name}_high") for reading, name in names.items()}
    return RecordedRow(
        claim, measured, {reading: value for reading, value in others.items() if value is not None}, record=cells
    )


def _measured(cells: Mapping[str, str], *columns: str) -> Measured | None:
    value, low, high = (_number(cells[column]) for column in columns)
    return None if math.isnan(value) else Measured(value, low, high)


def _number(text: str) -> float:
    return float(text) if text else math.nan


def recorded_figures(name: str, page: str) -> Iterator[tuple[Figure, bool]]:
    """Yield (figure, whether it has no counterpart in the paper) for the figures of a recorded page."""
    with catalog.find("figures", f"{name}.csv").open(newline="", encoding="utf-8") as file:
        commands = {row["figure"]: row["command"] for row in csv.DictReader(file)}
    for match in _FIGURE.finditer(page):
        spec: dict[str, Any] = json.loads(match["spec"].replace('"said"', '"description"'))  # the name in older pages
        for key in ("width", "height", "padding", "background", "config", "description"):
            spec.pop(key, None)
        remove_marks(spec)
        _dash_lines_only(spec)
        _renew_styles(spec)
        artifact = _artifact(match["name"], commands)
        caption = _MARKS.sub("", unescape(match["caption"]))
        columns = spec.get("columns", 0)
        yield (
            VegaChart(match["name"], unescape(match["title"]), caption, artifact=artifact, spec=spec, columns=columns),
            match["level"] == "3",
        )


def _dash_lines_only(spec: dict[str, Any]) -> None:
    """Remove the dashes from points and from legends that show points; older pages have them."""
    for unit in spec.get("concat", [spec]):
        encodings = [layer["encoding"] for layer in unit["layer"] if "strokeDash" in layer.get("encoding", {})]
        if any("shape" in encoding for encoding in encodings):
            for encoding in encodings:
                if "shape" in encoding:
                    del encoding["strokeDash"]
                    continue
                dash = encoding["strokeDash"]
                dash["scale"] = {"domain": [*dash["scale"]["domain"], ""], "range": [*dash["scale"]["range"], [1, 0]]}
                dash["legend"] = None  # a domain of its own keeps it out of the legend of the points


def _renew_styles(spec: dict[str, Any]) -> None:
    """Give each series its dash and shape in this version; in older pages they repeat whenever colors do."""
    for unit in spec.get("concat", [spec]):
        encodings = [layer["encoding"] for layer in unit["layer"] if "color" in layer.get("encoding", {})]
        for encoding in encodings:
            for name in {"strokeDash", "shape"} & set(encoding):
                scale = encoding[name].get("scale", {})
                if encoding[name].get("field") == "series" and "domain" in scale:
                    lines, points = series_style(scale["domain"], legend=False)
                    scale["range"] = {**lines, **points}[name]["scale"]["range"]


def _artifact(name: str, commands: Mapping[str, str]) -> str:
    """Return the paper's figure that one of ours reproduces, found by its command, or by its name if it combines panels."""
    if name in commands:
        option = re.search(r'--figure "?([^"]+)"?$', commands[name])
        number = option[1] if option else ""
        return f"Figure {number}" if re.fullmatch(r"\d+[a-z]?", number) else number
    panels = re.fullmatch(r"figure-(\d+)", name)
    return f"Figure {panels[1]}" if panels else ""


def recorded_tables(page: str) -> list[Table]:
    """Return those folded tables of a recorded page that only a run can compute."""
    tables = []
    for title, body in _TABLE.findall(page):
        if unescape(title) in _NOT_KEPT:
            continue
        head, _, rows = body.partition("<tbody>")
        columns = [_text(cell) for cell in re.findall(r"<th scope=\"col\">.*?</th>|<td></td>", head)]
        cells = [
            [_text(cell) for cell in re.findall(r"<t[hd][^>]*>.*?</t[hd]>", row, re.DOTALL)]
            for row in re.findall(r"<tr[^>]*>(.*?)</tr>", rows, re.DOTALL)
        ]
        caption = re.search(r"<caption>(.*?)</caption>", head, re.DOTALL)
        note = "" if caption is None else _text(caption[1])
        wraps = 'class="text"' in head
        tables.append(Table(unescape(title), columns, cells, "" if note == unescape(title) else note, text=wraps))
    return tables


def _text(markup: str) -> str:
    return unescape(re.sub(r"<[^>]*>", "", markup))


def recorded_reproduction(name: str, folder: Path) -> Reproduced:
    """Return a recorded reproduction: rows and notes of NAME.csv and NAME.txt, figures and findings of NAME.html."""
    page = (folder / f"{name}.html").read_text(encoding="utf-8")
    figures = list(recorded_figures(name, page))
    findings = _FINDINGS.search(page)
    kind = registry.find("reproductions", name)
    result = ReproductionResult(
        {},
        figures=[figure for figure, _ in figures],
        beyond=frozenset(figure.name for figure, beyond in figures if beyond),
        notes=[*read_notes(folder / f"{name}.csv"), _DRAWN],
        tables=recorded_tables(page),
        explanation=[] if findings is None else [_text(line) for line in re.findall(r"<li>(.*?)</li>", findings[1], re.DOTALL)],
    )
    provenance = page[page.index('<details id="provenance">') :]
    return Reproduced(
        name,
        kind.title,
        kind.paper,
        recorded_rows(folder / f"{name}.csv"),
        result,
        {unescape(key): unescape(value) for key, value in _PROVENANCE.findall(provenance)},
        read_headlines(catalog.find("headlines", f"{name}.csv")),
        catalog.find("questions", f"{name}.txt").read_text(encoding="utf-8").splitlines(),
    )


def renew_page(name: str, folder: Path) -> None:
    """Rewrite NAME.html: the head, contents, rows and marks from the recorded rows, and the figures unchanged."""
    done = recorded_reproduction(name, folder)
    answer = reproduction_answer(done, list(expected(name).values()), (f"{name}.csv", f"{name}/figures.csv"))
    write_report(answer, folder / f"{name}.html")


if __name__ == "__main__":
    import sys

    for each in registry.names("reproductions"):
        renew_page(each, Path(sys.argv[1]))
