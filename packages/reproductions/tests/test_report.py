"""Report of a reproduction: claims by class, causes of claims that do not hold, and the written files."""

import csv
import math
from pathlib import Path

import pytest

from poolwise.presentation.figure import Bars
from poolwise.presentation.table import Table
from poolwise.report.page import render
from poolwise_reproductions.criteria import Measured
from poolwise_reproductions.headlines import Headline
from poolwise_reproductions.published import Claim, ClaimRow
from poolwise_reproductions.report import reproduction_answer, write_reproduction
from poolwise_reproductions.reproduction import Reproduced, ReproductionResult


def claim(metric: str, published: float, reason: str = "") -> Claim:
    return Claim("Figure 1", "here", metric, "s", published, "exact", 0.5, reason=reason)


DONE = Reproduced(
    "irop",
    "A system",
    "An author: A paper",
    [
        ClaimRow(claim("holds", 1.0), Measured(1.2)),
        ClaimRow(claim("does not hold", 1.0, "the trace is another"), Measured(3.0)),
        ClaimRow(claim("nor does this", 1.0, "the trace is another"), Measured(4.0), {"as run": Measured(1.0)}),
        ClaimRow(claim("has no reason", 1.0), Measured(5.0)),
        ClaimRow(claim("straddles", 1.0), Measured(1.4, 1.0, 1.8)),
        ClaimRow(claim("was not measured", 1.0), None),
    ],
    ReproductionResult(
        {},
        figures=[Bars("bars", "Bars", groups=["x"], series={"a": [1.0]}, artifact="Figure 1")],
        notes=["one seed"],
        explanation=["a finding"],
        tables=[Table("Table I", ["load", "ours"], [["0.5", "7.25 ± 0.5"]], "as printed")],
    ),
    {"poolwise": "0"},
    [Headline("it holds", "abstract", "Figure 1", "here", "*hold*"), Headline("elsewhere", "abstract", "", "", "", "no data")],
    ["Which seed?"],
)

TOGETHER = (
    "the differences of the authors' runs together make the claim hold[: this value is then {as run} instead of {measured}]"
)


def test_page_starts_with_headlines_and_lists_each_cause_once() -> None:
    page = reproduction_answer(DONE)
    assert page.headline == "0 of 1 tested claims are reproduced."
    assert page.title == "A system: 0 of 1 claims reproduced"
    assert page.card is not None
    assert "1 of 5, 2 of 5 as run testable rows of the paper hold; 1 is undetermined." in page.card.rows[1][1]
    contents, headlines, classes, causes = page.head
    assert contents.title == "Figures and tables of the paper"
    assert [row[2] for row in headlines.rows] == ["partly", "cannot be tested"]
    assert headlines.rows[0][3:6] == ["all", "1 of 2", "1 of 2"]
    assert classes.rows[0] == ["claims of the paper", "1", "3", "1", "0", "1", "2"]
    causes_shown = {(row[2], row[3], row[4]) for row in causes.rows}
    assert causes_shown == {
        ("the trace is another", "unknown", ""),
        (TOGETHER, "package", "reading: as run"),
        ("Not explained.", "unknown", ""),
    }
    html = render(page)
    for text in ("a finding", "7.25 ± 0.5", "as printed", "one seed", "Which seed?", "poolwise reproduce irop --figure 1"):
        assert text in html
    assert (
        html.index("Headline claims") < html.rindex(">Figure 1: bars<") < html.rindex(">Table I<") < html.rindex("Which seed?")
    )


def test_reproduction_files_are_written(tmp_path: Path) -> None:
    write_reproduction(DONE, tmp_path)
    with (tmp_path / "comparison.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [row["holds"] for row in rows] == ["true", "false", "false", "false", "true", "not_measured"]
    assert math.isclose(float(rows[1]["measured"]), 3.0)
    assert sorted(path.name for path in (tmp_path / "figures").iterdir()) == ["bars.csv", "bars.pdf", "bars.png", "bars.svg"]
    assert (tmp_path / "report.html").read_text(encoding="utf-8").startswith("<!doctype html>")


def test_table_with_a_ragged_row_is_rejected() -> None:
    with pytest.raises(ValueError, match="row 1 of 'Table I' has 1 cells for 2 columns"):
        Table("Table I", ["load", "ours"], [["0.5", "7"], ["0.6"]])
