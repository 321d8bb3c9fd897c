"""Overview page of all reproductions."""

from pathlib import Path

import pytest

from poolwise import registry
from poolwise.errors import InputError
from poolwise_reproductions.claims_file import claims_csv
from poolwise_reproductions.criteria import Measured
from poolwise_reproductions.overview import overview, read_comparison, read_notes
from poolwise_reproductions.published import Claim, ClaimRow

PAGES = Path(__file__).parents[3] / "docs" / "reproductions"


def comparison(tmp_path: Path, *rows: ClaimRow) -> Path:
    path = tmp_path / "comparison.csv"
    path.write_text(claims_csv(rows))
    return path


def test_overview_counts_claims_by_reading_and_lists_each_cause_once(tmp_path: Path) -> None:
    claims = [Claim("Figure 1", f"load {k}", "wait", "s", 10.0, "relative", 0.1, reason="arrivals differ") for k in range(4)]
    rows = [ClaimRow(claims[0], Measured(10.5)), ClaimRow(claims[1], Measured(20.0)), ClaimRow(claims[2], Measured(30.0))]
    rows.append(ClaimRow(claims[3], Measured(30.0), {"as run": Measured(10.0)}))
    rows.append(ClaimRow(Claim("Figure 3", "", "wait", "s", 10.0, "exact", 1.0), Measured(10.0, 8.0, 12.0)))
    claim = Claim("Figure 4", "", "wait", "s", 10.0, "exact", 1.0, reason="one run", shown_by="one run")
    rows.append(ClaimRow(claim, Measured(13.0, 12.0, 14.0, runs=20)))
    rows.append(ClaimRow(Claim("Figure 2", "", "wait", "s", 1.0, "shown", 0.0), Measured(2.0)))
    rows.append(ClaimRow(Claim("Figure 2", "x", "wait", "s", 2.0, "exact", 0.0, kind="input"), Measured(2.0)))
    text = overview({"paper": read_comparison(comparison(tmp_path, *rows))}, {"paper": "A paper"}, pages={"paper": "p.html"})
    # 6 testable: 1 holds, 2 as run, none inferred, 1 undetermined, 4 fail: 1 holds as run (a package), 1 may be scatter
    assert "| [A paper](p.html) | 6 | 1 | 2 |  | 1 | 4 | 0 | 1 | 1 | 0 | 2 |" in text
    assert "**Figure 1, 2 rows, unknown:** arrivals differ" in text
    assert "**Figure 1, 1 row, package:** the differences of the authors' runs together make the claim hold" in text


def test_other_files_are_rejected(tmp_path: Path) -> None:
    (tmp_path / "comparison.csv").write_text("a,b\n1,2\n")
    with pytest.raises(InputError, match="not a comparison"):
        read_comparison(tmp_path / "comparison.csv")
    with pytest.raises(InputError, match="no such file"):
        read_comparison(tmp_path / "nowhere.csv")


def test_documentation_page_matches_its_comparisons() -> None:
    comparisons = {path.stem: read_comparison(path) for path in sorted(PAGES.glob("*.csv"))}
    names = registry.names("reproductions")
    assert set(comparisons) <= set(names)
    titles = {name: registry.find("reproductions", name).title for name in names}
    notes = {path.stem: read_notes(path) for path in PAGES.glob("*.csv")}
    assert all(notes.values())
    pages = {name: f"{name}.html" for name in comparisons if (PAGES / f"{name}.html").is_file()}
    assert (PAGES / "index.md").read_text() == overview(comparisons, titles, notes, pages)


def last_column(rows: list[dict[str, str]]) -> int:
    """Return the last column of the table of independent claims of IRoP."""
    (line,) = [line for line in overview({"irop": rows}, {"irop": "IRoP"}).splitlines() if line.startswith("| IRoP | 1")]
    return int(line.split("|")[-2])


@pytest.mark.parametrize("change", [{"basis": "inferred"}, {"basis": "scatter"}, {"verdict": "not measured", "basis": ""}])
def test_claim_is_explained_only_if_runs_verify_the_causes_of_all_its_rows(change: dict[str, str]) -> None:
    """HEEP's three reductions are one claim, and the cause of each is verified; HEEP's energy at Delta 0.2 is reproduced."""
    rows = read_comparison(PAGES / "irop.csv")

    def changed(metric: str) -> list[dict[str, str]]:
        wanted = "Figure 5", "Delta above 0.20, eta 1, theta relative", metric
        return [row | change if (row["artifact"], row["condition"], row["metric"]) == wanted else row for row in rows]

    assert "## IRoP: 11 of 16 claims reproduced" in overview({"irop": rows}, {"irop": "IRoP"})
    explained = last_column(rows)
    assert last_column(changed("mean reduction of energy against HEEP")) == explained - 1
    assert last_column(changed("no such row")) == explained
