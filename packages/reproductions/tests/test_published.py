"""Verdicts on claims: every rule with both results, and invalid files."""

import csv
import math
from pathlib import Path

import numpy as np
import pytest

from poolwise import registry
from poolwise.errors import InputError
from poolwise.metrics.intervals import mean_interval
from poolwise_reproductions import catalog
from poolwise_reproductions.claims_file import claims_csv, read_claims
from poolwise_reproductions.criteria import Measured
from poolwise_reproductions.published import COLUMNS, ChangeTexts, Claim, ClaimRow, compare


def row(rule: str, published: float, measured: Measured | None, tolerance: float = 0.0) -> ClaimRow:
    return ClaimRow(Claim("Figure 1", "here", "metric", "s", published, rule, tolerance, reason="because"), measured)


@pytest.mark.parametrize(
    ("rule", "published", "measured", "tolerance", "holds"),
    [
        ("within_ci", 5.0, Measured(4.0, 3.0, 5.0), 0, "true"),
        ("within_ci", 5.1, Measured(4.0, 3.0, 5.0), 0, "false"),
        ("within_ci", 4.0, Measured(4.0), 0, "true"),
        ("within_ci", 4.1, Measured(4.0), 0, "false"),
        ("relative", 10.0, Measured(11.0), 0.1, "true"),
        ("relative", 10.0, Measured(11.1), 0.1, "false"),
        ("relative", -10.0, Measured(-9.0), 0.1, "true"),
        ("exact", 26.0, Measured(26.5), 0.5, "true"),
        ("exact", 26.0, Measured(26.6), 0.5, "false"),
        ("sign", 3.0, Measured(0.1), 0, "true"),
        ("sign", 3.0, Measured(-0.1), 0, "false"),
        ("sign", 3.0, Measured(0.0), 0, "false"),
        ("order", math.nan, Measured(0.1), 0, "true"),
        ("order", math.nan, Measured(0.0), 0, "false"),
        ("order", math.nan, Measured(0.1), 0.2, "false"),
        ("shown", math.nan, Measured(0.1), 0, "shown"),
        ("exact", 1.0, None, 0, "not_measured"),
        ("order", math.nan, Measured(math.nan), 0, "not_measured"),
    ],
)
def test_rules_judge_the_value(rule: str, published: float, measured: Measured | None, tolerance: float, holds: str) -> None:
    assert row(rule, published, measured, tolerance).holds == holds


@pytest.mark.parametrize(
    ("rule", "published", "measured", "tolerance", "verdict"),
    [
        ("relative", 10.0, Measured(10.0, 9.5, 10.5), 0.1, "holds"),
        ("relative", 10.0, Measured(10.0, 8.9, 11.1), 0.1, "undetermined"),  # too wide on both sides
        ("relative", 10.0, Measured(11.5, 10.9, 12.1), 0.1, "undetermined"),
        ("relative", 10.0, Measured(12.0, 11.1, 12.9), 0.1, "fails"),
        ("exact", 2.0, Measured(1.0, 0.5, 1.4), 0.5, "fails"),
        ("order", math.nan, Measured(0.2, 0.1, 0.3), 0, "holds"),
        ("order", math.nan, Measured(0.2, -0.1, 0.5), 0, "undetermined"),
        ("order", math.nan, Measured(-0.2, -0.4, 0.0), 0, "fails"),
        ("order", math.nan, Measured(0.2), 0, "holds"),
        ("sign", -3.0, Measured(-1.0, -2.0, -0.1), 0, "holds"),
        ("sign", -3.0, Measured(1.0, 0.5, 1.5), 0, "fails"),
        ("within_ci", 5.0, Measured(4.0, 3.0, 5.5), 0, "holds"),
        ("within_ci", 5.0, Measured(4.0, 3.0, 4.5), 0, "fails"),
        ("shown", math.nan, Measured(0.1), 0, "shown"),
        ("exact", 1.0, Measured(math.nan), 0, "not measured"),
    ],
)
def test_verdicts_follow_from_the_interval(rule, published, measured, tolerance, verdict) -> None:
    assert row(rule, published, measured, tolerance).verdict == verdict


def test_only_runs_of_this_reproduction_verify_a_reason() -> None:
    witness = Claim("Ablation", "here", "lead", "", math.nan, "order", 0.0, kind="ours")
    claim = Claim(
        "Figure 1", "here", "lead", "", math.nan, "order", 0.0, "", "why", "paper", "verified", " | ".join(witness.key)
    )

    def claim_row(measured: float, lead: float, as_run: float | None = None) -> ClaimRow:
        readings = {} if as_run is None else {"as run": {claim.key: Measured(as_run)}}
        return compare([claim, witness], {claim.key: Measured(measured), witness.key: Measured(lead)}, readings)[0]

    assert (claim_row(-1, 1).basis, claim_row(-1, 1).shown_by) == ("verified", "Ablation | here | lead")
    assert (claim_row(-1, -1).basis, claim_row(-1, -1).shown_by) == ("inferred", "")
    assert (claim_row(-1, -1, 1).basis, claim_row(-1, -1, 1).shown_by) == ("package", "reading: as run")
    assert (claim_row(-1, -1, -1).basis, claim_row(-1, -1, -1).shown_by) == ("inferred", "")
    assert (claim_row(1, 1).basis, claim_row(1, 1).cause) == ("", "")
    cells = dict(zip(COLUMNS, claim_row(-1, -1, 2).cells(), strict=True))
    together = "the differences of the authors' runs together make the claim hold: this value is then 2 instead of -1"
    assert (cells["class"], cells["verdict"], cells["basis"], cells["cause"]) == ("paper", "fails", "package", together)
    assert (cells["as_run"], cells["as_run_verdict"], cells["inferred_verdict"]) == ("2", "holds", "")


def test_switch_verifies_the_claim_that_names_it() -> None:
    def claim_row(shown_by: str, switched: float) -> ClaimRow:
        claim = Claim("Figure 1", "here", "lead", "", 10.0, "relative", 0.1, "", "why", "paper", "verified", shown_by)
        return compare([claim], {claim.key: Measured(5.0)}, switches={"other keys": {claim.key: Measured(switched)}})[0]

    assert claim_row("switch: other keys", 10.5).shown_by == "switch: other keys, 10.5"
    assert claim_row("switch: other keys", 10.5).basis == "verified"
    assert claim_row("switch: other keys", 12.0).basis == "inferred"
    assert claim_row("switch: no such", 10.5).basis == "inferred"
    assert claim_row("", 10.5).basis == "inferred"


CHANGES = ChangeTexts(
    {"gaps": "bursts[: {switched}]", "draw": "one draw"}, {"both": "equal gaps and one draw", "as run": "all six"}
)


@pytest.mark.parametrize(
    ("turning", "named", "basis", "shown_by", "cause"),
    [
        (("draw", "gaps", "both"), "", "verified", "switch: gaps, 10", "bursts: 10"),
        (("draw", "gaps"), "switch: draw", "verified", "switch: draw, 10", "why"),
        (("draw",), "", "verified", "switch: draw, 10", "one draw"),
        (
            ("both", "as run"),
            "",
            "package",
            "switch: both, 10",
            "equal gaps and one draw together do: this value is then 10 instead of 5",
        ),
        (("both",), "switch: both", "package", "switch: both, 10", "why"),
        (("as run",), "switch: gaps", "package", "reading: as run", "all six together do: this value is then 10 instead of 5"),
        ((), "switch: gaps", "inferred", "", "why"),
        ((), "", "inferred", "", "why"),
    ],
)
def test_a_single_change_verifies_and_several_are_a_package(turning, named, basis, shown_by, cause) -> None:
    """The claim holds at 10 and fails at 5; the first change in the order of the texts is shown unless the file names one."""
    claim = Claim("Figure 1", "here", "lead", "", 10.0, "relative", 0.1, "", "why", "paper", "inferred", named)
    runs = {name: {claim.key: Measured(10.0 if name in turning else 5.0)} for name in ("draw", "gaps", "both", "as run")}
    readings = {"as run": runs.pop("as run")}
    row = compare([claim], {claim.key: Measured(5.0)}, readings, runs, CHANGES)[0]
    assert (row.basis, row.shown_by) == (basis, shown_by)
    before = "none of 2 changes alone makes the claim hold, but " if basis == "package" and cause != "why" else ""
    assert row.cause == before + cause
    held = compare([claim], {claim.key: Measured(10.0)}, readings, runs, CHANGES)[0]
    assert (held.basis, held.shown_by, held.cause) == ("", "", "")


@pytest.mark.parametrize(("basis", "shown_by"), [("verified", "Ablation | here | lead"), ("package", "switch: gaps, 10")])
def test_a_row_that_the_file_names_comes_before_a_change_unless_it_changes_several_things(basis, shown_by) -> None:
    witness = Claim("Ablation", "here", "lead", "", math.nan, "order", 0.0, kind="ours")
    name = " | ".join(witness.key)
    claim = Claim("Figure 1", "here", "lead", "", 10.0, "relative", 0.1, "", "why", "paper", basis, name)
    measured, gaps = {claim.key: Measured(5.0), witness.key: Measured(1.0)}, {"gaps": {claim.key: Measured(10.0)}}
    row = compare([claim, witness], measured, None, gaps, CHANGES)[0]
    assert (row.basis, row.shown_by, row.cause) == ("verified", shown_by, "why" if basis == "verified" else "bursts: 10")
    assert compare([claim, witness], measured, None, None, CHANGES)[0].basis == basis


def test_prediction_interval_contains_a_new_draw() -> None:
    """For normal draws, the interval from 20 contains the 21st in 19 of 20 cases; the interval of the mean does not."""
    draws = np.random.default_rng(0).normal(3.0, 2.0, size=(4000, 21))
    inside = []
    for values in draws:
        interval = mean_interval(values[:20])
        low, high = Measured(interval.mean, interval.low, interval.high, runs=20).prediction_interval
        inside.append(low <= values[20] <= high)
    assert 0.94 < np.mean(inside) < 0.96


@pytest.mark.parametrize(
    ("rule", "published", "tolerance", "runs", "explained"),
    [
        ("exact", 20.0, 1.0, 20, True),  # 10 +- 2; one run: 10 +- 9.2
        ("exact", 20.3, 1.0, 20, False),
        ("exact", 20.0, 1.0, 0, False),  # unknown number of runs
        ("exact", 14.0, 0.1, 4, False),  # too few runs
        ("exact", 14.0, 0.1, 20, True),  # within the scatter
        ("relative", 30.0, 0.4, 20, True),
        ("relative", 33.0, 0.4, 20, False),
        ("order", math.nan, 15.0, 20, True),
        ("order", math.nan, 19.5, 20, False),
    ],
)
def test_scatter_of_single_runs_explains_a_claim_of_one_run(rule, published, tolerance, runs, explained) -> None:
    claim = Claim("Table 1", "here", "missed", "%", published, rule, tolerance, "", "why", "paper", "scatter", "one run")
    claim_row = ClaimRow(claim, Measured(10.0, 8.0, 12.0, runs=runs))
    assert claim_row.verdict == "fails"
    assert claim_row.basis == ("scatter" if explained else "inferred")
    assert claim_row.shown_by == ("one run, 10 (0.8348 to 19.17)" if explained else "")


def test_note_of_a_failed_row_begins_with_the_reason() -> None:
    assert row("exact", 1.0, Measured(2.0, note="one seed")).note == "because; one seed"
    assert row("exact", 2.0, Measured(2.0, note="one seed")).note == "one seed"


def test_measurement_without_a_claim_is_rejected() -> None:
    with pytest.raises(KeyError):
        compare([], {("Figure 1", "here", "metric"): Measured(1.0)})


def test_csv_has_all_columns_and_verdicts() -> None:
    text = claims_csv([row("exact", 1.0, None), row("order", math.nan, Measured(1.0))])
    rows = list(csv.DictReader(text.splitlines()))
    assert tuple(rows[0]) == COLUMNS
    assert [r["holds"] for r in rows] == ["not_measured", "true"]


@pytest.mark.parametrize("name", registry.names("reproductions"))
def test_shipped_claims_are_valid(name: str) -> None:
    claims = read_claims(catalog.find("claims", f"{name}.csv"))
    assert claims


def test_claims_file_with_unknown_rule_or_duplicate_row_is_rejected(tmp_path: Path) -> None:
    head = "artifact,condition,metric,unit,published,rule,tolerance,note,reason,class,basis,shown_by\n"
    path = tmp_path / "claims.csv"
    for body in (
        "a,b,c,s,1,exat,0,,\n",
        "a,b,c,s,1,exact,0,,\na,b,c,s,2,exact,0,,\n",
        "a,b,c,s,x,exact,0,,\n",
        "a,b,c,s,,exact,0,,\n",
        "a,b,c,s,1,exact,0,,,our,,\n",
        "a,b,c,s,1,exact,0,,why,paper,guessed,\n",
        "a,b,c,s,1,exact,0,,why,paper,verified,x | y | z\n",
    ):
        path.write_text(head + body, encoding="utf-8")
        with pytest.raises(InputError):
            read_claims(path)


def test_claim_of_the_paper_without_a_quotation_is_refused_if_the_file_has_quotations(tmp_path):
    header = "artifact,condition,metric,unit,published,rule,tolerance,class,place,quotation"
    ours, paper = "Figure 1,a,wait,s,1,exact,0,ours,,", "Figure 1,b,wait,s,1,exact,0,paper,section 1,"
    path = tmp_path / "claims.csv"
    path.write_text(f"{header}\n{ours}\n{paper}\n")
    with pytest.raises(InputError) as error:
        read_claims(path)
    assert (error.value.line, error.value.field) == (3, "quotation")
    path.write_text(f"{header}\n{ours}\n{paper}it waits\n")
    assert [claim.quotation for claim in read_claims(path)] == ["", "it waits"]
