"""How claims are judged: every rule both ways, and files that are refused."""

import csv
import math
from pathlib import Path

import pytest

from poolwise import catalog, registry
from poolwise.compare.published import COLUMNS, Claim, ClaimRow, Measured, claims_csv, compare, read_claims
from poolwise.errors import InputError


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
def test_each_rule_judges(rule: str, published: float, measured: Measured | None, tolerance: float, holds: str) -> None:
    assert row(rule, published, measured, tolerance).holds == holds


def test_a_row_that_does_not_hold_gives_its_reason_first() -> None:
    assert row("exact", 1.0, Measured(2.0, note="one seed")).note == "because; one seed"
    assert row("exact", 2.0, Measured(2.0, note="one seed")).note == "one seed"


def test_a_measurement_that_nobody_claimed_is_not_dropped() -> None:
    with pytest.raises(KeyError):
        compare([], {("Figure 1", "here", "metric"): Measured(1.0)})


def test_csv_has_the_columns_and_no_blank_verdict() -> None:
    text = claims_csv([row("exact", 1.0, None), row("order", math.nan, Measured(1.0))])
    rows = list(csv.DictReader(text.splitlines()))
    assert tuple(rows[0]) == COLUMNS
    assert [r["holds"] for r in rows] == ["not_measured", "true"]


@pytest.mark.parametrize("name", registry.names("reproductions"))
def test_shipped_claims_can_be_read(name: str) -> None:
    claims = read_claims(catalog.find("reproductions", f"{name}.csv"))
    assert claims


def test_a_claims_file_with_an_unknown_rule_or_a_row_twice_is_refused(tmp_path: Path) -> None:
    head = "artifact,condition,metric,unit,published,rule,tolerance,note,reason\n"
    path = tmp_path / "claims.csv"
    for body in (
        "a,b,c,s,1,exat,0,,\n",
        "a,b,c,s,1,exact,0,,\na,b,c,s,2,exact,0,,\n",
        "a,b,c,s,x,exact,0,,\n",
        "a,b,c,s,,exact,0,,\n",
    ):
        path.write_text(head + body, encoding="utf-8")
        with pytest.raises(InputError):
            read_claims(path)
