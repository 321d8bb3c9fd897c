"""The reproduction of DRMaestro: the smallest scenario for real, and every claim answered."""

import math
from dataclasses import replace

import numpy as np
import pytest

from poolwise import catalog
from poolwise.compare.published import SWITCH, compare, read_claims
from poolwise.performance.device_profiles import read_device_profiles
from poolwise.reproductions import drmaestro
from poolwise.reproductions.drmaestro.cells import (
    POINTS,
    POLICIES,
    SCENARIOS,
    DrMaestroCase,
    gpus_in_use,
    measure_case,
    measure_rounds,
    run_case,
)
from poolwise.reproductions.drmaestro.changes import CHANGES
from poolwise.reproductions.drmaestro.claims import FOUR_TIMES, DrMaestroResults, switches
from poolwise.trials import Local

SMALLEST = SCENARIOS[0]


@pytest.mark.long
def test_disaggregation_reaches_the_gpus_that_the_warm_up_jobs_cut_off():
    found = {policy: measure_case(DrMaestroCase(SMALLEST, policy, 0)) for policy in POLICIES}
    assert found["firmament"]["most_used_before"] == 0.5
    assert found["drmaestro"]["most_used_before"] == found["network_aware"]["most_used_before"] == 1.0
    assert 1.3 < found["firmament"]["makespan_s"] / found["drmaestro"]["makespan_s"] < 1.8
    assert found["firmament"]["execution_s"] < found["drmaestro"]["execution_s"]


def test_with_the_warm_up_on_every_machine_both_see_the_same_gpus():
    spread = replace(SMALLEST, spread=True)
    ours, theirs = (measure_case(DrMaestroCase(spread, policy, 0))["makespan_s"] for policy in POLICIES[:2])
    assert ours == pytest.approx(theirs, rel=0.01)


def test_timing_a_run_does_not_change_it():
    case = DrMaestroCase(SMALLEST, "drmaestro", 1)
    rounds = measure_rounds(case)
    assert len(rounds["total_s"]) == len(rounds["solver_s"])
    assert rounds["solved"] > 0
    assert all(0 <= solver <= total for solver, total in zip(rounds["solver_s"], rounds["total_s"], strict=True))
    schedule = run_case(case)
    time, used = gpus_in_use(schedule)
    assert (used[0] >= 0) and used[-1] == 0 and used.max() == 16
    held = float((np.diff(time) * used[:-1]).sum())
    work = (schedule.end - schedule.start)[schedule.workload.request("gpu")[schedule.job] > 0].sum() / 1e9
    assert held == pytest.approx(work)


def test_changes_leave_what_was_published():
    known = read_device_profiles("catalog:rodinia")
    for name, change in CHANGES.items():
        for kind in ("nw", "hotspot"):
            assert change.apply(known[kind]).sensitivity == pytest.approx(known[kind].sensitivity), name
    assert CHANGES["half the stretch under load"].apply(known["srad"]).sensitivity == pytest.approx(
        known["srad"].sensitivity / 2
    )
    changed = [change for change in CHANGES.values() if change.warm_up == 1 and change.every_s == 0]
    assert all(any(change.apply(p) != p for p in known.values()) for change in changed)


@pytest.mark.parametrize("name", ["FULL", "QUICK"])
def test_every_claim_is_answered_and_nothing_else(tmp_path, monkeypatch, name):
    def pretend(cases, run, folder, jobs, progress):
        """Metrics that differ from case to case; what they are does not matter here."""
        names = ("makespan_s", "violations", "violations_queueing", "execution_s", "most_used_before")
        times = {"total_s": [0.1, 0.2], "solver_s": [0.01, 0.02], "solved": 3, "solving": 2}
        lists = {"grid_s": list(range(POINTS)), "used": [1] * POINTS, "normalised": [2.0, 1.0], "beyond": [6, 5, 4, 3, 2, 1]}
        return {case: {**dict.fromkeys(names, 1.0 + k % 7), **lists, **times} for k, case in enumerate(dict.fromkeys(cases))}

    monkeypatch.setattr(drmaestro, "measure_all", pretend)
    monkeypatch.setattr(drmaestro, "QUICK", getattr(drmaestro, name))
    found = drmaestro.DRMaestro().run(tmp_path, quick=True, executor=Local(1))
    rows = compare(read_claims(catalog.find("reproductions", "drmaestro.csv")), found.measured)
    missing = [row.claim.key for row in rows if row.holds == "not_measured"]
    assert (not missing) == (name == "FULL")
    named = [row.claim for row in rows if row.claim.shown_by.startswith(SWITCH)]
    assert named and all(claim.key in found.switches[claim.shown_by.removeprefix(SWITCH)] for claim in named)
    assert {figure.name for figure in found.figures} >= {"gpus_4x128", "gpus_128x4096", "normalised_128x4096", "rounds_16x512"}
    for figure in found.figures:
        for line in figure.series.values():
            assert all(math.isfinite(value) for value in line)
    assert [len(found.tables), len(found.explanation)] == ([3, 2] if name == "FULL" else [1, 1])


def test_a_plan_up_to_some_machines_leaves_the_larger_ones_out():
    small = drmaestro.FULL.up_to(16)
    assert {case.scenario.machines for case in small.cases()} == {4, 16}
    assert {case for case in drmaestro.FULL.cases() if case.scenario.machines <= 16} == set(small.cases())
    assert {case.scenario.machines for case in small.timings()} == {4, 16}
    assert "Settings of more than 16 machines were left out." in small.said()[0]
    assert "left out" not in drmaestro.FULL.said()[0]


def test_goals_four_times_as_long_count_the_fourth_multiple():
    cases = {
        DrMaestroCase(SMALLEST, policy, seed): {
            "makespan_s": 1.0,
            "violations": 0,
            "violations_queueing": 0,
            "beyond": [9, 9, 9, count + seed, 9, 9],
        }
        for policy, count in zip(POLICIES, (60, 40, 30), strict=True)
        for seed in range(2)
    }
    found = switches(DrMaestroResults(cases, {}))[FOUR_TIMES]
    less = ("Table 3", str(SMALLEST), "violations of DRMaestro less network-aware; submission to end longer than the goal")
    times = ("Table 3", str(SMALLEST), "violations of Firmament / network-aware; submission to end longer than the goal")
    assert found[less].value == 10.0
    assert found[times].value == pytest.approx((60 / 30 + 61 / 31) / 2)
