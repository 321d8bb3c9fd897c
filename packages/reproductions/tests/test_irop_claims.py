"""Claims of the IRoP reproduction from fake measurements, with expected values computed by hand."""

import math
from typing import Any

import numpy as np
import pytest

from poolwise.runner import Local
from poolwise_reproductions import catalog, irop
from poolwise_reproductions.cases import Measurer
from poolwise_reproductions.irop.claims import finite_mean
from poolwise_reproductions.irop.plan import SMALL, Grid
from poolwise_reproductions.irop.runs import IropCase, MemoryTimeCase
from poolwise_reproductions.published import SWITCH, read_claims

SEEDS = 4
GRID = Grid(seeds=SEEDS, small_seeds=SEEDS)
CONSTANT = {
    "irop": {"completion": 3.0, "objective": 10.0, "theta": 1.0, "violations": 0, "cpu_s": 2.0},
    "place": {"completion": 2.5, "objective": 8.0, "theta": 1.0, "violations": 0, "cpu_s": 0.1},
    "heep": {"completion": 5.0, "objective": 11.0, "theta": 1.0, "violations": 0, "cpu_s": 0.1},
    "heep, by module": {"completion": 5.0, "objective": 9.0, "theta": 1.0, "violations": 0, "cpu_s": 0.1},
    "cfm": {"completion": 4.0, "objective": 13.0, "theta": 1.0, "violations": 30, "cpu_s": 0.1},
    "first-fit": {"completion": 4.5, "objective": 12.0, "theta": 1.0, "violations": 45, "cpu_s": 0.1},
    "irop, largest first": {"completion": 3.0, "objective": 9.5, "theta": 1.0, "violations": 0, "cpu_s": 2.0},
    "irop, filled up": {"completion": 2.6, "objective": 9.0, "theta": 1.0, "violations": 0, "cpu_s": 2.0},
    "opt": {"completion": 2.0, "objective": 9.0, "theta": 1.0, "violations": 0, "cpu_s": 1.0},
}


def fake_run(case: IropCase) -> dict[str, Any]:
    """Return constants of a method; energy falls with Delta, theta rises with eta (IRoP) or seed (HEEP), time with size."""
    found = {**CONSTANT[case.method], "status": "optimal", "bound": 7.0, "energy": 8.0, "memory_used": 0.5, "cores_used": 0.25}
    if case.method == "irop":
        found["energy"] = {0.05: 5.0, 0.25: 2.0}.get(case.tolerance or 0.0, 4.0)
        found["theta"] = 1 + 6 * case.eta
    if case.method == "place":
        found["energy"] = 3.2
    if case.method == "heep":
        found["theta"] = 150.0 * (1 + case.seed)
    if case.method == "opt":
        found["cpu_s"] = (case.workloads / 15) ** 3 * (case.modules / 15) ** 2
    if case.method == "irop" and case.workloads < 150:
        found["cpu_s"] = case.workloads / 15 + 0.0 * case.modules
    return found


def reproduce(monkeypatch, folder, run=fake_run):
    """Reproduce with fake runs, and a completion ratio of 6 for CFM by memory times time."""
    by_memory_time = {"completion": 6.0, "local": 0.5}

    def measure(measurer, cases, *_):
        return {case: by_memory_time if isinstance(case, MemoryTimeCase) else run(case) for case in cases}

    monkeypatch.setattr(Measurer, "__call__", measure)
    monkeypatch.setattr(irop, "QUICK", GRID)
    return irop.IropReproduction().run(Measurer(folder, Local(1)), quick=True)


@pytest.fixture
def measured(tmp_path, monkeypatch):
    found = reproduce(monkeypatch, tmp_path)
    return {key: (one.value, one.low, one.high) for key, one in found.measured.items()}, found


def values(measured, metric: str) -> set[float]:
    found = {round(value, 9) for (_, _, name), (value, _, _) in measured[0].items() if name == metric}
    assert found, metric
    return found


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
        ("objective of IRoP minus that of HEEP", -1.0),
        ("share of eta and Delta where IRoP's objective is below HEEP's, minus one half", 0.5),
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
    found = [one for key, one in measured[0].items() if key[2] == "mean theta of HEEP"]
    assert found == [pytest.approx((2.5, 2.5 - half, 2.5 + half))] * 2
    for figure in measured[1].figures:
        for name, (low, high) in getattr(figure, "interval", {}).items():
            assert all(a <= mean <= b for a, mean, b in zip(low, figure.series[name], high, strict=True))


def test_mean_skips_values_that_are_not_finite_and_one_value_has_no_interval() -> None:
    assert math.isnan(finite_mean(np.array([math.nan])).value)
    single = finite_mean(np.array([3.0, math.inf, math.nan]), "why")
    assert (single.value, single.note) == (3.0, "why") and math.isnan(single.low) and math.isnan(single.high)


def test_note_states_the_proven_gap_of_the_optimum(measured) -> None:
    """An objective of 8 over a bound of 7 leaves a gap of 14.3 %."""
    notes = {one.note for key, one in measured[1].measured.items() if "above OPT" in key[2]}
    assert notes == {"the optimum is the better of OPT and place, proven within 14 %"}


def test_growth_is_nan_if_opt_reached_its_time_limit(tmp_path, monkeypatch) -> None:
    def ended(case):
        return fake_run(case) | ({"status": "limit"} if case.method == "opt" and case.workloads < SMALL else {})

    found = reproduce(monkeypatch, tmp_path, ended).measured
    growth = {key[1]: one.value for key, one in found.items() if "growth" in key[2]}
    assert "workloads 15 to 30 on 30 modules" not in growth
    assert growth["modules 15 to 30 with 30 workloads"] == 4.0


def test_switches_measure_the_claims_that_they_affect(measured):
    """HEEP by whole modules has an objective of 9 instead of 11, so IRoP with 10 is above it everywhere."""
    switches = measured[1].switches
    margin = ("Figure 6", "Delta 0.05, eta from 0.7, theta relative", "objective of IRoP minus that of HEEP")
    assert measured[0][margin][0] == -1.0 and switches["HEEP by whole modules"][margin].value == 1.0
    known = set(measured[0])
    assert all(set(found) <= known and found for found in switches.values())


def test_witness_rows_equal_values_computed_by_hand(measured):
    """The completion ratio of IRoP is 3, that of the optimum 2.5, and that of IRoP with its memory filled up 2.6."""
    found = {key[2]: value for key, (value, _, _) in measured[0].items() if key[0] == "Ours" and key[1].endswith("relative")}
    assert found["slowdown of IRoP above OPT, local memory filled up"] == pytest.approx(4.0)
    assert found["slowdown of IRoP above OPT minus that with local memory filled up"] == pytest.approx(16.0)
    assert found["reduction of energy against HEEP minus that against HEEP by whole modules"] == 0.0
    assert found["energy of IRoP minus that with large workloads rounded first"] == pytest.approx(-300.0)  # 8 instead of 2
    assert found["local memory in use under HEEP minus under IRoP"] == 0.0
    assert found["cores in use under HEEP"] == 25.0


def test_claims_name_exactly_the_measured_switches(measured):
    claims = read_claims(catalog.find("claims", "irop.csv"))
    named = {claim.shown_by.removeprefix(SWITCH) for claim in claims if claim.shown_by.startswith(SWITCH)}
    assert named == set(measured[1].switches)
