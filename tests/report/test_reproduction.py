"""The report of a reproduction: every claim in the table, those that do not hold under their reasons, files whole."""

import csv
import math
from pathlib import Path

import pytest

from poolwise.compare.published import Claim, ClaimRow, Measured
from poolwise.exhibits.figure import Bars
from poolwise.exhibits.table import Table
from poolwise.report import write_reproduction
from poolwise.report.page import render
from poolwise.report.reproduction import reproduction_page
from poolwise.reproductions.reproduction import Reproduced, ReproductionResult


def claim(metric: str, published: float, reason: str = "") -> Claim:
    return Claim("Figure 1", "here", metric, "s", published, "exact", 0.5, reason=reason)


DONE = Reproduced(
    "paper",
    "A system",
    "Somebody: A paper",
    [
        ClaimRow(claim("holds", 1.0), Measured(1.2)),
        ClaimRow(claim("does not hold", 1.0, "the trace is another"), Measured(3.0)),
        ClaimRow(claim("nor does this", 1.0, "the trace is another"), Measured(4.0)),
        ClaimRow(claim("has no reason", 1.0), Measured(5.0)),
        ClaimRow(claim("was not measured", 1.0), None),
    ],
    ReproductionResult(
        {},
        figures=[Bars("bars", "Bars", groups=["x"], series={"a": [1.0]})],
        notes=["one seed"],
        explanation=["it teaches"],
        tables=[Table("Table I", ["load", "ours"], [["0.5", "7.25 ± 0.5"]], "as printed")],
    ),
    {"poolwise": "0"},
)


def test_verdicts_are_counted_and_reasons_named_once() -> None:
    page = reproduction_page(DONE)
    assert page.lead == "1 of 4 published values and claims hold."
    reasons = page.sections[0].lines
    assert len(reasons) == 2
    assert reasons[0].startswith("The trace is another. 2 of the claims")
    assert reasons[1].startswith("Not explained yet. 1 of the claims")
    html = render(page)
    for row in DONE.rows:
        assert row.claim.metric in html
    assert "it teaches" in html
    assert [table.title for table in page.tables] == ["Table I", "Every claim beside our value"]
    assert "7.25 ± 0.5" in html
    assert "as printed" in html
    assert "one seed" in html


def test_files_are_written_whole(tmp_path: Path) -> None:
    write_reproduction(DONE, tmp_path)
    with (tmp_path / "comparison.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [row["holds"] for row in rows] == ["true", "false", "false", "false", "not_measured"]
    assert math.isclose(float(rows[1]["measured"]), 3.0)
    assert sorted(path.name for path in (tmp_path / "figures").iterdir()) == ["bars.pdf", "bars.png", "bars.svg"]
    assert (tmp_path / "report.html").read_text(encoding="utf-8").startswith("<!doctype html>")


def test_a_table_with_a_ragged_row_is_refused() -> None:
    with pytest.raises(ValueError, match="row 1 of 'Table I' has 1 cells for 2 columns"):
        Table("Table I", ["load", "ours"], [["0.5", "7"], ["0.6"]])
