"""Causes show measured values, published values, and quotations with a place; a typed number is an error."""

import math

import pytest

from poolwise.errors import InputError
from poolwise_reproductions import catalog
from poolwise_reproductions.causes import faults, named_rows, parse, pattern, render
from poolwise_reproductions.claims_file import read_claims
from poolwise_reproductions.criteria import Measured
from poolwise_reproductions.published import SEPARATOR, VALUES, Claim, ClaimRow, compare

NAMES = ("drmaestro", "fair-memory", "irop", "nvme-composition", "vinesim")
HEADER = "artifact,condition,metric,unit,published,rule,tolerance,note,reason,class,basis,shown_by\n"


def claim(metric="x", reason="", basis="unknown", shown_by=""):
    return Claim("Figure 1", "all", metric, "", 1.0, "exact", 0.1, reason=reason, basis=basis, shown_by=shown_by)


@pytest.mark.parametrize("name", NAMES)
def test_causes_contain_no_typed_number(name):
    claims = read_claims(catalog.find("claims", f"{name}.csv"))
    rows = {SEPARATOR.join(each.key) for each in claims}
    assert any(each.reason for each in claims)
    for each in claims:
        assert faults(each.reason, VALUES) == [], each.key
        assert set(named_rows(each.reason)) <= rows, each.key


@pytest.mark.parametrize(
    "template",
    [
        "2.6 % are missed",
        "with constant gaps {measured} are missed",
        "[{average} are missed]",
        "the published {=2.5} lies in between",
        "the wait is 90",
    ],
)
def test_cause_with_a_number_of_no_case_is_refused(template, tmp_path):
    assert len(faults(template, VALUES)) == 1
    path = tmp_path / "claims.csv"
    path.write_text(f"{HEADER}Figure 1,all,x,,1,exact,0.1,,{template},paper,inferred,\n")
    with pytest.raises(InputError) as error:
        read_claims(path)
    assert (error.value.line, error.value.field) == (2, "reason")


@pytest.mark.parametrize(
    "template",
    [
        "at load 0.6 and Delta 0.05, equation 6 and section 7.4 apply to S2, F1 and 15to1",
        "[this value is {as run:.1f} instead of {measured}]",
        "the printed {=15,000,000 | section 7.4} is a misprint",
    ],
)
def test_cause_with_settings_values_and_quotations_is_accepted(template):
    assert faults(template, VALUES) == []


def test_cause_shows_values_of_its_row_and_of_others():
    other = "Figure 1 | all | y"
    reason = f"low[: {{measured:.1f}} instead of {{published:.0f}}, {{10 - as run}}, {{measured of {other}}}][, {{switched}}]"
    rows = compare(
        [claim(reason=reason), claim("y")],
        {("Figure 1", "all", "x"): Measured(10.04), ("Figure 1", "all", "y"): Measured(2.5)},
        {"as run": {("Figure 1", "all", "x"): Measured(4.0)}},
    )
    assert rows[0].cause == "low: 10.0 instead of 1, 6, 2.5"
    assert list(named_rows(reason)) == [other] and parse("measured") == ("measured", "", None, ".3g")


def test_clause_without_its_value_is_omitted():
    assert render("low[: {as run} as run], {=0.5 | Table 2}", lambda kind, row: math.nan) == "low, 0.5 (Table 2)"


@pytest.mark.parametrize(("value", "shown"), [(1234.5, "1,234"), (0.01234, "0.0123"), (-2e4, "-20,000")])
def test_values_have_three_digits_and_no_exponent(value, shown):
    assert render("[{measured}]", lambda kind, row: value) == shown


def test_causes_that_differ_in_their_values_share_a_pattern():
    assert pattern("slower by 2.4 times, 20,235 in all") == pattern("slower by 1.35 times, -3e+06 in all")
    assert pattern("slower by 2.4 times") != pattern("faster by 2.4 times")


@pytest.mark.parametrize("measured", [Measured(3.0), Measured(1.0, 0.5, 1.5)])
def test_claim_without_a_known_cause_is_never_verified(measured):
    for reason in ("", "not explained; one run"):
        row = ClaimRow(claim(reason=reason, shown_by="one run"), measured, backed=True)
        assert (row.basis, row.cause) == ("unknown", reason)


def test_reading_under_which_a_claim_holds_is_a_package():
    row = compare([claim()], {claim().key: Measured(3.0)}, {"as run": {claim().key: Measured(1.02)}})[0]
    assert (row.basis, row.shown_by) == ("package", "reading: as run")
    assert (
        row.cause == "the differences of the authors' runs together make the claim hold: this value is then 1.02 instead of 3"
    )


def test_unexplained_claim_with_evidence_is_refused(tmp_path):
    path = tmp_path / "claims.csv"
    path.write_text(f"{HEADER}Figure 1,all,x,,1,exact,0.1,,not explained,paper,verified,one run\n")
    with pytest.raises(InputError, match="not explained"):
        read_claims(path)
