"""All reproductions on one page."""

from pathlib import Path

import pytest

from poolwise import registry
from poolwise.compare.published import Claim, ClaimRow, Measured, claims_csv
from poolwise.errors import InputError
from poolwise.report.overview import overview, read_comparison, read_notes

PAGES = Path(__file__).parents[2] / "docs" / "reproductions"


def comparison(tmp_path: Path, *rows: ClaimRow) -> Path:
    path = tmp_path / "comparison.csv"
    path.write_text(claims_csv(rows))
    return path


def test_counts_add_up_and_each_reason_stands_once(tmp_path: Path) -> None:
    claims = [Claim("Figure 1", f"load {k}", "wait", "s", 10.0, "relative", 0.1, reason="arrivals differ") for k in range(3)]
    rows = [ClaimRow(claims[0], Measured(10.5)), ClaimRow(claims[1], Measured(20.0)), ClaimRow(claims[2], Measured(30.0))]
    rows.append(ClaimRow(Claim("Figure 2", "", "wait", "s", 1.0, "shown", 0.0), Measured(2.0)))
    text = overview({"paper": read_comparison(comparison(tmp_path, *rows))}, {"paper": "A paper"})
    assert "| A paper | 4 | 3 | 1 | 2 | 0 | 1 |" in text
    assert text.count("arrivals differ") == 1
    assert "load 1" in text and "load 2" in text and "load 0" not in text


def test_other_files_are_refused(tmp_path: Path) -> None:
    (tmp_path / "comparison.csv").write_text("a,b\n1,2\n")
    with pytest.raises(InputError, match="not a comparison"):
        read_comparison(tmp_path / "comparison.csv")
    with pytest.raises(InputError, match="no such file"):
        read_comparison(tmp_path / "nowhere.csv")


def test_the_page_in_the_documentation_is_made_from_the_comparisons_beside_it() -> None:
    comparisons = {path.stem: read_comparison(path) for path in sorted(PAGES.glob("*.csv"))}
    known = registry.names("reproductions")
    assert set(comparisons) <= set(known)
    titles = {name: registry.find("reproductions", name).title for name in known}
    notes = {path.stem: read_notes(path) for path in PAGES.glob("*.csv")}
    assert all(notes.values())
    assert (PAGES / "index.md").read_text() == overview(comparisons, titles, notes)
