"""Reproduction of IRoP: small cases are solved, and every claim is measured."""

import math
import re

import pytest

from poolwise.performance.profiles import Profile
from poolwise.runner import Local
from poolwise_reproductions import catalog, irop
from poolwise_reproductions.cases import Measurer
from poolwise_reproductions.claims_file import read_claims
from poolwise_reproductions.irop.plan import Grid
from poolwise_reproductions.irop.runs import IropCase, ProblemVariant, least_product
from poolwise_reproductions.published import compare


def test_cases_run_once_and_are_cached(tmp_path):
    cases = [IropCase(m, "relative", 0.5, 0.25, 0, 6, 9, 0.05) for m in ("irop", "place", "heep", "cfm", "first-fit")]
    measure = Measurer(tmp_path, Local(1))
    first = measure(cases)
    modified = {file: file.stat().st_mtime_ns for file in tmp_path.rglob("*.json")}
    assert measure(cases) == first
    assert {file: file.stat().st_mtime_ns for file in tmp_path.rglob("*.json")} == modified
    assert first[cases[1]]["objective"] <= first[cases[0]]["objective"] + 1e-9
    assert all(run["dropped"] == 0 for run in first.values())


@pytest.mark.parametrize(
    ("remote", "slowdown", "expected"),
    [
        ((0.0, 0.75), (0.0, 0.0), 0.25),  # remote memory costs no time
        ((0.0, 0.75), (0.0, 6.0), 1.0),  # T(1/4) = 7: the product is 7/4 there, and larger in between
        ((0.0, 0.5, 0.75), (0.0, 0.5, 6.0), 0.5),  # the product is 3/4 at a half, 7/4 at a quarter
    ],
)
def test_share_minimizes_memory_times_time(remote, slowdown, expected):
    assert least_product(Profile("job", remote, slowdown), 0.25) == pytest.approx(expected)


def test_small_problem_is_a_subset_of_the_papers():
    problem = IropCase("irop", "printed", 0.5, None, 3, 30, 30).problem()
    assert (len(problem.batch), len(problem.modules)) == (30, 30)
    assert problem.groups.count.tolist() == [10, 10, 10]
    whole = IropCase("irop", "printed", 0.5, None, 3).problem()
    assert problem.batch.name == whole.batch.name[:30]


@pytest.mark.parametrize("grid", [irop.QUICK, Grid(seeds=3, small_seeds=2, draws=4)])
def test_measurements_match_the_claims(tmp_path, monkeypatch, grid):
    def fake_measure(measurer, cases, *_):
        """Return metrics that differ between cases; their values do not matter here."""
        return {
            case: {
                **dict.fromkeys(
                    ("theta", "completion", "energy", "objective", "memory_used", "cores_used", "psi"), 1.0 + k % 7
                ),
                "bound": 1.0,
                "violations": k % 5,
                "status": "optimal",
                "cpu_s": 1.0 + k % 3,
            }
            for k, case in enumerate(dict.fromkeys(cases))
        }

    monkeypatch.setattr(Measurer, "__call__", fake_measure)
    monkeypatch.setattr(irop, "QUICK", grid)
    findings = irop.IropReproduction().run(Measurer(tmp_path, Local(1)), quick=True)
    rows = compare(read_claims(catalog.find("claims", "irop.csv")), findings.measured)
    missing = [row.claim.condition for row in rows if row.holds == "not_measured"]
    named = [re.findall(r"(Delta|eta) (\d\.\d+)", words) for words in missing]
    tried = {"Delta": grid.tolerances, "eta": grid.etas}
    assert all(any(float(number) not in tried[name] for name, number in numbers) for numbers in named)
    assert bool(missing) == (len(grid.tolerances) < len(Grid().tolerances))
    assert {figure.name for figure in findings.figures} >= {
        "figure4_printed",
        "figure5_relative",
        "figure6_printed",
        "figure7b",
    }
    for figure in findings.figures:
        assert all(len(line) == len(figure.x) for line in figure.series.values())
        assert all(math.isfinite(v) for line in figure.series.values() for v in line)


def test_slowdown_is_proportional_to_the_latency_of_remote_memory():
    plain, slow = (
        IropCase("irop", "relative", 0.5, None, 3, 30, 30, variant=ProblemVariant(latency_us=us)).problem().batch
        for us in (5.0, 10.0)
    )
    for profile, other in zip(plain.profile, slow.profile, strict=True):
        assert other.slowdown == tuple(2 * s for s in profile.slowdown) and other.remote == profile.remote


def test_unknown_workloads_have_zero_tolerance_and_all_memory_local(tmp_path):
    case = IropCase("irop", "relative", 1.0, 0.25, 0, 8, 30, variant=ProblemVariant(unknown=0.5))
    problem = IropCase("irop", "relative", 1.0, 0.25, 0, variant=ProblemVariant(unknown=0.5)).problem()
    assert (problem.batch.tolerance == 0).sum() == 75
    (record,) = Measurer(tmp_path, Local(1))([case]).values()
    assert record["dropped"] == 0 and record["violations"] == 0
