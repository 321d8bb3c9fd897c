"""Claims of the IRoP reproduction from fake measurements, with expected values computed by hand."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from poolwise.runner import Local
from poolwise_reproductions import catalog, irop
from poolwise_reproductions.cases import Measurer
from poolwise_reproductions.claims_file import read_claims
from poolwise_reproductions.headlines import answer_headlines, read_headlines
from poolwise_reproductions.irop.claims import BY_CORES, finite_mean
from poolwise_reproductions.irop.plan import PRIMARY, SMALL, VARIANTS, Grid
from poolwise_reproductions.irop.runs import HEEP_BY_MODULE, IropCase, MemoryTimeCase
from poolwise_reproductions.irop.variants import describe, verdicts
from poolwise_reproductions.published import SWITCH, compare

SEEDS = 4
GRID = Grid(seeds=SEEDS, small_seeds=SEEDS, draws=SEEDS)
CONSTANT = {
    "irop": {"completion": 3.0, "objective": 10.0, "theta": 1.0, "violations": 0, "cpu_s": 2.0},
    "place": {"completion": 2.5, "objective": 8.0, "theta": 1.0, "violations": 0, "cpu_s": 0.1},
    "heep": {"completion": 5.0, "objective": 11.0, "theta": 1.0, "violations": 0, "cpu_s": 0.1},
    "heep, by module": {"completion": 5.0, "objective": 9.0, "theta": 1.0, "violations": 0, "cpu_s": 0.1},
    "heep, by module, ascending": {"completion": 5.0, "objective": 9.0, "theta": 1.0, "violations": 0, "cpu_s": 0.1},
    "cfm": {"completion": 4.0, "objective": 13.0, "theta": 1.0, "violations": 30, "cpu_s": 0.1},
    "first-fit": {"completion": 4.5, "objective": 12.0, "theta": 1.0, "violations": 45, "cpu_s": 0.1},
    "irop, largest first": {"completion": 3.0, "objective": 9.5, "theta": 1.0, "violations": 0, "cpu_s": 2.0},
    "irop, filled up": {"completion": 2.6, "objective": 9.0, "theta": 1.0, "violations": 0, "cpu_s": 2.0},
    "opt": {"completion": 2.0, "objective": 9.0, "theta": 1.0, "violations": 0, "cpu_s": 1.0},
}


def fake_run(case: IropCase) -> dict[str, Any]:
    """Return constants of a method; energy falls with Delta, theta rises with eta (IRoP) or seed (HEEP), time with size."""
    metrics = {
        **CONSTANT[case.method],
        "status": "optimal",
        "bound": 7.0,
        "energy": 8.0,
        "memory_used": 0.5,
        "cores_used": 0.25,
        "psi": 4.0,
    }
    if case.method == "irop":
        metrics["energy"] = {0.05: 5.0, 0.25: 2.0}.get(case.tolerance or 0.0, 4.0)
        metrics["theta"] = 1 + 6 * case.eta
    if case.method == "place":
        metrics["energy"] = 3.2
    if case.method in ("heep", HEEP_BY_MODULE):
        metrics["theta"] = 150.0 * (1 + case.seed)
    if case.method == "opt":
        metrics["cpu_s"] = (case.workloads / 15) ** 3 * (case.modules / 15) ** 2
    if case.method == "irop" and case.workloads < 150:
        metrics["cpu_s"] = case.workloads / 15 + 0.0 * case.modules
    return metrics


def reproduce(monkeypatch, folder, run=fake_run, grid=GRID):
    """Reproduce with fake runs, and a completion ratio of 6 for CFM by memory times time."""
    by_memory_time = {"completion": 6.0, "local": 0.5}

    def measure(measurer, cases, *_):
        return {case: by_memory_time if isinstance(case, MemoryTimeCase) else run(case) for case in cases}

    monkeypatch.setattr(Measurer, "__call__", measure)
    monkeypatch.setattr(irop, "QUICK", grid)
    return irop.IropReproduction().run(Measurer(folder, Local(1)), quick=True)


@pytest.fixture
def measured(tmp_path, monkeypatch):
    findings = reproduce(monkeypatch, tmp_path)
    return {key: (value.value, value.low, value.high) for key, value in findings.measured.items()}, findings


def values(measured, metric: str) -> set[float]:
    rounded = {round(value, 9) for (_, _, name), (value, _, _) in measured[0].items() if name == metric}
    assert rounded, metric
    return rounded


@pytest.mark.parametrize(
    ("metric", "value"),
    [
        ("mean reduction of the completion ratio against CFM", 25.0),  # 3 instead of 4
        ("minimum reduction of the completion ratio against CFM", 25.0),
        ("maximum reduction of the completion ratio against CFM", 25.0),
        ("mean reduction of the completion ratio against CFM by memory times time", 50.0),  # 3 instead of 6
        ("completion ratio of IRoP minus that of CFM", -1.0),
        ("sum theta at eta 1 minus at eta 0", 6.0),
        ("energy at Delta 0.05 minus at Delta 0.25", 3.0),
        ("mean reduction of energy against HEEP", 75.0),  # 2 instead of 8
        ("minimum reduction of energy against HEEP", 75.0),
        ("maximum reduction of energy against HEEP", 75.0),
        ("mean theta of HEEP", 2.5),  # 1, 2, 3, 4
        ("minimum margin of IRoP's objective to first fit and CFM", 2.0),
        ("completion ratio of CFM minus that of IRoP", 1.0),
        ("slowdown of IRoP above OPT", 20.0),  # 3 instead of 2.5, since place has the lower objective
        ("energy of IRoP above OPT", 25.0),  # 4 instead of 3.2
        ("30 s minus the longest run of IRoP", 28.0),
        ("minimum margin of place to IRoP", 2.0),
        ("minimum margin of place to HEEP", 3.0),
        ("minimum margin of place to CFM", 5.0),
        ("minimum margin of place to first fit", 4.0),
        ("workloads beyond their accepted slowdown under CFM", 20.0),  # 30 of 150
        ("workloads beyond their accepted slowdown under first fit", 30.0),
    ],
)
def test_claim_equals_value_computed_by_hand(measured, metric: str, value: float) -> None:
    assert values(measured, metric) == {value}


def test_growth_is_that_of_opt_over_that_of_irop(measured) -> None:
    """Times grow 8-fold (OPT) and 2-fold (IRoP) with twice the workloads, 4-fold and 1-fold with twice the modules.

    With 2.5 times the workloads they grow by 15.625 and 2.5, with 2.5 times the modules by 6.25 and 1.
    """
    assert values(measured, "growth of OPT's time over growth of IRoP's") == {4.0, 6.25}
    by_condition = {key[1]: value for key, (value, _, _) in measured[0].items() if "growth" in key[2]}
    assert by_condition == {
        "workloads 15 to 30 on 30 modules": 4.0,
        "modules 15 to 30 with 30 workloads": 4.0,
        "workloads 4 to 10 on 30 modules": pytest.approx(6.25),
        "modules 6 to 15 with 10 workloads": pytest.approx(6.25),
    }


def test_interval_follows_students_t(measured) -> None:
    """The theta of HEEP is 1, 2, 3 and 4 over the seeds, so s = sqrt(5 / 3)."""
    half = 3.182446 * math.sqrt(5 / 3) / math.sqrt(4)  # t with 3 degrees of freedom, 2.5 % on each side
    thetas = [interval for key, interval in measured[0].items() if key[2] == "mean theta of HEEP" and key[0] == "Figure 5"]
    assert thetas == [pytest.approx((2.5, 2.5 - half, 2.5 + half))] * 3  # two readings of theta, and the other key of HEEP
    for figure in measured[1].figures:
        for name, (low, high) in getattr(figure, "interval", {}).items():
            assert all(a <= mean <= b for a, mean, b in zip(low, figure.series[name], high, strict=True))


def test_mean_skips_values_that_are_not_finite_and_one_value_has_no_interval() -> None:
    assert math.isnan(finite_mean(np.array([math.nan])).value)
    single = finite_mean(np.array([3.0, math.inf, math.nan]), "why")
    assert (single.value, single.note) == (3.0, "why") and math.isnan(single.low) and math.isnan(single.high)


def test_note_states_the_proven_gap_of_the_optimum(measured) -> None:
    """An objective of 8 over a bound of 7 leaves a gap of 14.3 %."""
    notes = {value.note for key, value in measured[1].measured.items() if "above OPT" in key[2]}
    assert notes == {"the optimum is the better of OPT and place, proven within 14 %"}


def test_growth_is_nan_if_opt_reached_its_time_limit(tmp_path, monkeypatch) -> None:
    def ended(case):
        return fake_run(case) | ({"status": "limit"} if case.method == "opt" and case.workloads < SMALL else {})

    by_claim = reproduce(monkeypatch, tmp_path, ended).measured
    growth = {key[1]: value.value for key, value in by_claim.items() if "growth" in key[2]}
    assert "workloads 15 to 30 on 30 modules" not in growth
    assert growth["modules 15 to 30 with 30 workloads"] == 4.0


def test_heep_by_whole_modules_is_primary_under_relative_slowdown(measured):
    """HEEP by whole modules has an objective of 9 instead of 11, so IRoP with 10 is above it everywhere."""
    metric, half = (
        "objective of IRoP minus that of HEEP",
        "share of eta and Delta where IRoP's objective is below HEEP's, minus one half",
    )
    rows = {key[1:]: value for key, (value, _, _) in measured[0].items() if key[0] == "Figure 6"}
    for theta, by_cores, above, share in (
        ("relative", "", 1.0, -0.5),
        ("relative", BY_CORES, -1.0, 0.5),
        ("printed", "", -1.0, 0.5),
    ):
        assert rows[f"Delta 0.05, eta from 0.7, theta {theta}{by_cores}", metric] == above
        assert rows[f"theta {theta}{by_cores}", half] == share


def test_reductions_of_the_paper_are_taken_over_its_number_of_draws(tmp_path, monkeypatch):
    """Only a seed beyond those of the grid has an IRoP that is slower than CFM, and an energy above HEEP's."""

    def run(case):
        rare = case.method == "irop" and case.seed == SEEDS + 2
        return fake_run(case) | ({"completion": 5.0, "energy": 16.0} if rare else {})

    by_claim = reproduce(monkeypatch, tmp_path, run, replace(GRID, draws=8)).measured
    least = {
        key[1]: value.value
        for key, value in by_claim.items()
        if key[0] == "Figure 4" and key[2] == "minimum reduction of the completion ratio against CFM"
    }
    assert least == {"eta 0, theta relative": -25.0, "eta 0, theta printed": 25.0}
    energy = "Delta above 0.20, eta 1, theta relative", "minimum reduction of energy against HEEP"
    assert by_claim["Figure 5", *energy].value == -100.0


def test_switches_measure_the_claims_that_they_affect(measured):
    """HEEP by whole modules has an objective of 9 instead of 11, so IRoP with 10 is above it everywhere."""
    switches = measured[1].switches
    margin = ("Figure 6", "Delta 0.05, eta from 0.7, theta printed", "objective of IRoP minus that of HEEP")
    assert measured[0][margin][0] == -1.0 and switches["HEEP by whole modules"][margin].value == 1.0
    keys = set(measured[0])
    assert all(set(rows) <= keys and rows for rows in switches.values())


def test_smaller_delta_alone_makes_irop_faster_than_cfm(tmp_path, monkeypatch):
    """The completion ratio of IRoP is 3.5 + 10 Delta, that of CFM 4: the paper's range reaches above it."""

    def run(case):
        return fake_run(case) | ({"completion": 3.5 + 10 * (case.tolerance or 0.0)} if case.method == "irop" else {})

    findings = reproduce(monkeypatch, tmp_path, run)
    key = "Figure 4", "Delta 0.20, eta 0.4, theta relative", "completion ratio of CFM minus that of IRoP"
    assert findings.measured[key].value == pytest.approx(-1.5)
    assert findings.switches["local memory filled up"][key].value == pytest.approx(1.4)  # 2.6 instead of 4
    for name in ("minimum", "mean", "maximum"):
        key = "Figure 4", "eta 0, theta relative", f"{name} reduction of the completion ratio against CFM"
        assert findings.switches["Delta 0.05 alone"][key].value == pytest.approx(0.0)
        assert findings.switches["Delta 0.075 alone"][key].value == pytest.approx(-6.25)  # 4.25 instead of 4


@pytest.mark.parametrize(
    ("by_cores", "distance"), [(1.8, 2.5 + 100 / 9), (1.99, 2.5 - 100 * (1 - 2 / 1.99)), (3.0, 2.5 - 100 / 3)]
)
def test_published_reduction_lies_between_those_of_both_keys(tmp_path, monkeypatch, by_cores, distance):
    """IRoP needs an energy of 2, HEEP by whole modules 8: 75 % less."""

    def run(case):
        return fake_run(case) | ({"energy": by_cores} if case.method == "heep" else {})

    by_claim = reproduce(monkeypatch, tmp_path, run).measured
    metric = "distance of the published mean reduction of energy from those with either sort key of HEEP"
    assert by_claim["Ours", "Delta above 0.20, eta 1, theta relative", metric].value == pytest.approx(distance)


def test_witness_rows_equal_values_computed_by_hand(measured):
    """The completion ratio of IRoP is 3, that of the optimum 2.5, and that of IRoP with its memory filled up 2.6."""
    by_metric = {
        key[2]: value for key, (value, _, _) in measured[0].items() if key[0] == "Ours" and key[1].endswith("relative")
    }
    assert by_metric["slowdown of IRoP above OPT, local memory filled up"] == pytest.approx(4.0)
    assert by_metric["slowdown of IRoP above OPT minus that with local memory filled up"] == pytest.approx(16.0)
    assert by_metric["reduction of energy against HEEP minus that against HEEP by whole modules"] == 0.0
    assert by_metric["energy of IRoP minus that with large workloads rounded first"] == pytest.approx(-300.0)  # 8 instead of 2
    assert by_metric["local memory in use under HEEP minus under IRoP"] == 0.0
    assert by_metric["cores in use under HEEP"] == 25.0


def test_claims_name_exactly_the_measured_switches(measured):
    claims = read_claims(catalog.find("claims", "irop.csv"))
    named = {claim.shown_by.removeprefix(SWITCH) for claim in claims if claim.shown_by.startswith(SWITCH)}
    assert named == set(measured[1].switches)


def answers(monkeypatch, folder, run):
    """Return headline -> answer under fake runs."""
    findings = reproduce(monkeypatch, folder, run)
    rows = compare(read_claims(catalog.find("claims", "irop.csv")), findings.measured, findings.readings, findings.switches)
    headlines = read_headlines(catalog.find("headlines", "irop.csv"))
    return {each.headline.claim: each.answer for each in answer_headlines(headlines, rows)}


@pytest.mark.parametrize(
    ("theta", "energy", "verdict"),
    [(149.0, 7.9, "reproduced"), (151.0, 7.9, "partly"), (149.0, 8.1, "partly"), (151.0, 8.1, "not")],
)
def test_better_than_heep_in_both_needs_slowdown_and_energy(tmp_path, monkeypatch, theta, energy, verdict):
    """HEEP, at Delta 0.25 and by whole modules, has a sum of theta of 150 and an energy of 8; its other key is far worse."""

    def run(case):
        if case.method in ("heep", HEEP_BY_MODULE):
            return fake_run(case) | (
                {"theta": 150.0, "energy": 8.0} if case.method == HEEP_BY_MODULE else {"theta": 999.0, "energy": 99.0}
            )
        return fake_run(case) | ({"theta": theta, "energy": energy} if case.method == "irop" and case.tolerance == 0.2 else {})

    by_headline = answers(monkeypatch, tmp_path, run)
    assert [verdict] == [answer for claim, answer in by_headline.items() if "both" in claim]


@pytest.mark.parametrize(
    ("slower_from", "verdict"), [(0.30, "reproduced"), (0.20, "reproduced"), (0.15, "partly"), (0.05, "not")]
)
def test_generally_better_than_cfm_needs_most_points(tmp_path, monkeypatch, slower_from, verdict):
    """Delta 0.05, 0.10, 0.15 and 0.20 have six points each, and 0.25 has two: 26, of which 14 are more than half."""

    def run(case):
        slower = case.method == "irop" and (case.tolerance or 0.0) >= slower_from
        return fake_run(case) | ({"completion": 5.0} if slower else {})

    by_headline = answers(monkeypatch, tmp_path, run)
    assert [verdict] == [answer for claim, answer in by_headline.items() if "generally" in claim]


def test_theorem_1_is_compared_with_the_energy_of_the_relaxation(measured, tmp_path, monkeypatch):
    """IRoP's energy of 2 to 5 is at most 5/7 of the bound of 7. With psi = 0.5 the claim fails."""
    at = "Theorem 1", "150 x 1200, eta 1, theta relative", "psi minus IRoP's energy over that of its relaxation, minimum"
    assert measured[0][at][0] == pytest.approx(4.0 - 5 / 7)
    small = "Theorem 1", "30 x 30, theta relative", "excess that psi allows minus the larger excess of IRoP over OPT"
    assert measured[0][small][0] == pytest.approx(300.0 - 25.0)  # energy 25 % above OPT, slowdown 20 %
    failing = reproduce(monkeypatch, tmp_path, lambda case: fake_run(case) | {"psi": 0.5}).measured
    rows = {row.claim.key: row for row in compare(read_claims(catalog.find("claims", "irop.csv")), failing)}
    assert rows[at].measured.value == pytest.approx(0.5 - 5 / 7) and rows[at].verdict == "fails"
    assert rows[small].verdict == "fails"


def test_variants_judge_the_claims_by_their_own_runs(tmp_path, monkeypatch):
    """With half of the workloads unknown, IRoP is slower than CFM; the interior point method lowers its energy by a half."""

    def run(case):
        changed = {"completion": 5.0} if case.method == "irop" and case.variant.unknown == 0.5 else {}
        if case.variant.interior_point:
            assert case.method == "irop"
            changed = {"energy": fake_run(case)["energy"] / 2}
        return fake_run(case) | changed

    by_claim = reproduce(monkeypatch, tmp_path, run).measured
    metric = "mean reduction of the completion ratio against CFM"
    for (artifact, condition), value in {
        ("Figure 1", "latency 5 us"): 25.0,
        ("Section II-B", "25 % of the workloads unknown"): 25.0,
        ("Section II-B", "50 % of the workloads unknown"): -25.0,
    }.items():
        assert by_claim[artifact, f"{condition}, eta 0, theta relative", metric].value == value
    size = "interior point method, 150 x 1200, theta relative"
    energy = "reduction of the energy of IRoP against the simplex method"
    assert by_claim["Section IV-B", size, energy].value == pytest.approx(50.0)
    claims = read_claims(catalog.find("claims", "irop.csv"))
    judged = verdicts(claims, by_claim)
    assert set(judged) == {(artifact, name) for artifact, names in VARIANTS.items() for name in names}
    rising = "Figure 1", "latency 5 us, theta relative", "sum theta at eta 1 minus at eta 0"
    assert {verdict[rising] for verdict in judged.values()} == {"holds"}
    assert "hold with remote memory of 5 us" in describe(claims, by_claim)[0]


def test_rows_of_variants_have_the_rules_of_the_claims():
    claims = read_claims(catalog.find("claims", "irop.csv"))
    rules = {
        (claim.condition, claim.metric): (claim.rule, claim.published, claim.tolerance)
        for claim in claims
        if claim.kind == "paper"
    }
    changed = [
        claim for claim in claims for name in VARIANTS.get(claim.artifact, ()) if claim.condition.startswith(f"{name}, ")
    ]
    compared = [claim for claim in changed if PRIMARY in claim.condition and "150 x 1200" not in claim.condition]
    assert len(compared) == 13 * 7 + 2
    for claim in compared:
        expected = rules[claim.condition.split(", ", 1)[1], claim.metric]
        assert (claim.rule, claim.tolerance) == (expected[0], expected[2])
        assert claim.published == expected[1] or math.isnan(claim.published)
