"""Reproduction of DRMaestro: the smallest scenario is simulated, and every claim is measured."""

import math
from dataclasses import replace

import numpy as np
import pytest

from poolwise.engines import simulate
from poolwise.files.factory import models_of, scheduler_of
from poolwise.model import Kind
from poolwise.performance.device_profiles import read_device_profiles
from poolwise.runner import Local
from poolwise.studies.cells import workload_of
from poolwise.traces.generators.device_jobs import WARM_UP
from poolwise_reproductions import catalog, drmaestro
from poolwise_reproductions.cases import Measurer
from poolwise_reproductions.claims_file import read_claims
from poolwise_reproductions.drmaestro.cells import (
    OUR_PHASE,
    POINTS,
    POLICIES,
    SCENARIOS,
    SOLVED_AGAIN,
    VARIANTS,
    DrMaestroCase,
    RoundTimes,
    gpus_in_use,
)
from poolwise_reproductions.drmaestro.changes import CHANGES, FIXED, TWICE_THE_LINKS
from poolwise_reproductions.drmaestro.claims import (
    FOUR,
    FOUR_TIMES,
    THREE_TIMES,
    DrMaestroResults,
    figure_3,
    rounds,
    switches,
    tables,
)
from poolwise_reproductions.drmaestro.experiments import EXPERIMENTS, MOSTLY_ABOVE, middle_kinds
from poolwise_reproductions.published import SWITCH, compare
from poolwise_reproductions.reproduction import reproduce

SMALLEST = SCENARIOS[0]


@pytest.mark.long
def test_disaggregation_uses_gpus_of_machines_without_free_cores():
    by_policy = {policy: DrMaestroCase(SMALLEST, policy, 0).measure() for policy in POLICIES}
    assert by_policy["firmament"]["most_used_before"] == 0.5
    assert by_policy["firmament"]["some_unused_before"] == 1.0 > by_policy["drmaestro"]["some_unused_before"]
    assert by_policy["firmament"]["most_used_after"] == 0.0  # all jobs end before the warm-up does
    assert by_policy["drmaestro"]["most_used_before"] == by_policy["network_aware"]["most_used_before"] == 1.0
    assert 1.3 < by_policy["firmament"]["makespan_s"] / by_policy["drmaestro"]["makespan_s"] < 1.8
    assert by_policy["firmament"]["execution_s"] < by_policy["drmaestro"]["execution_s"]


METRICS = (
    "makespan_s", "violations", "violations_local", "violations_queueing", "execution_s", "most_used_before", "most_used_after",
    "some_unused_before", "over_goal",
)  # fmt: skip


def test_policies_are_equal_if_every_machine_has_free_cores():
    spread = replace(SMALLEST, spread=True)
    firmament, plain = (DrMaestroCase(spread, policy, 0).measure()["makespan_s"] for policy in POLICIES[:2])
    assert firmament == pytest.approx(plain, rel=0.01)


@pytest.mark.long
def test_timing_does_not_change_the_schedule():
    case = DrMaestroCase(SMALLEST, "drmaestro", 1)
    rounds = RoundTimes(case).measure()
    assert len(rounds["total_s"]) == len(rounds["solver_s"])
    assert rounds["solved"] > 0
    assert all(0 <= solver <= total for solver, total in zip(rounds["solver_s"], rounds["total_s"], strict=True))
    schedule = case.simulate()
    time, used = gpus_in_use(schedule)
    assert (used[0] >= 0) and used[-1] == 0 and used.max() == 16
    held = float((np.diff(time) * used[:-1]).sum())
    work = (schedule.end - schedule.start)[schedule.workload.request("gpu")[schedule.job] > 0].sum() / 1e9
    assert held == pytest.approx(work)


def test_changes_keep_published_slowdowns():
    profiles = read_device_profiles("catalog:rodinia")
    for name, change in CHANGES.items():
        for kind in ("nw", "hotspot"):
            assert change.apply(profiles[kind]).sensitivity == pytest.approx(profiles[kind].sensitivity), name
    assert CHANGES["half the stretch under load"].apply(profiles["srad"]).sensitivity == pytest.approx(
        profiles["srad"].sensitivity / 2
    )
    changed = [change for change in CHANGES.values() if change.warm_up == 1 and change.every_s == 0]
    assert all(any(change.apply(p) != p for p in profiles.values()) for change in changed)


@pytest.mark.parametrize("name", ["FULL", "QUICK"])
def test_measurements_match_the_claims(tmp_path, monkeypatch, name):
    def fake_measure(measurer, cases):
        """Return metrics that differ between cases; their values do not matter here."""
        times = {"total_s": [0.1, 0.2], "solver_s": [0.01, 0.02], "solved": 3, "solving": 2}
        lists = {"grid_s": list(range(POINTS)), "used": [1] * POINTS, "normalised": [2.0, 1.0], "beyond": [6, 5, 4, 3, 2, 1]}
        return {case: {**dict.fromkeys(METRICS, 1.0 + k % 7), **lists, **times} for k, case in enumerate(dict.fromkeys(cases))}

    monkeypatch.setattr(Measurer, "__call__", fake_measure)
    monkeypatch.setattr(drmaestro, "QUICK", getattr(drmaestro, name))
    findings = drmaestro.DRMaestro().run(Measurer(tmp_path, Local(1)), quick=True)
    rows = compare(read_claims(catalog.find("claims", "drmaestro.csv")), findings.measured)
    missing = [row.claim.key for row in rows if row.holds == "not_measured"]
    assert (not missing) == (name == "FULL")
    named = [row.claim for row in rows if row.claim.shown_by.startswith(SWITCH)]
    unmeasured = [claim.key for claim in named if claim.key not in findings.switches[claim.shown_by.removeprefix(SWITCH)]]
    assert named and (not unmeasured) == (name == "FULL")
    assert {figure.name for figure in findings.figures} >= {
        "gpus_4x128",
        "gpus_128x4096",
        "normalised_128x4096",
        "rounds_16x512",
    }
    for figure in findings.figures:
        for line in figure.series.values():
            assert all(math.isfinite(value) for value in line)
    assert [len(findings.tables), len(findings.explanation)] == ([3, 2] if name == "FULL" else [1, 1])


@pytest.mark.parametrize(
    ("figure", "cases", "timed"),
    [("4", {(SMALLEST, "")}, set()), ("9", {(SCENARIOS[3], "")}, set()), ("10", {(SCENARIOS[3], "")}, set()),
     ("6", set(), {4}), ("8", set(), {16, 128})],
)  # fmt: skip
def test_single_figure_runs_only_its_own_cases(tmp_path, monkeypatch, figure, cases, timed):
    requested = []

    def fake_measure(measurer, wanted):
        now = list(wanted)
        requested.extend(now)
        lists = {"grid_s": list(range(POINTS)), "used": [1] * POINTS, "normalised": [2.0, 1.0], "beyond": [6, 5, 4, 3, 2, 1]}
        times = {"total_s": [0.1, 0.2], "solver_s": [0.01, 0.02], "solved": 3, "solving": 2}
        return {case: {**dict.fromkeys(METRICS, 1.0), **lists, **times} for case in now}

    monkeypatch.setattr(Measurer, "__call__", fake_measure)
    done = reproduce("drmaestro", drmaestro.DRMaestro(), tmp_path, figure=figure, executor=Local(1))
    rounds = [timed.case for timed in requested if isinstance(timed, RoundTimes)]
    runs = [case for case in requested if isinstance(case, DrMaestroCase)]
    assert {(case.scenario, case.variant) for case in runs} == cases
    assert {case.seed for case in rounds} == ({0} if timed else set())
    assert {case.seed for case in runs} == (set(range(10)) if cases else set())
    assert {case.scenario.machines for case in rounds} == timed
    assert done.findings.figures and {drawn.artifact for drawn in done.findings.figures} == {f"Figure {figure}"}


def planned(plan, figure=""):
    return [case for part in drmaestro.PARTS if part.concerns(figure) for case in part.cases(plan)]


def test_table_needs_all_seeds_and_variants_of_its_settings():
    cases = planned(drmaestro.FULL, "Table 2")
    assert {case.scenario.machines for case in cases} == {4}
    assert {case.variant for case in cases} == {"", OUR_PHASE}
    assert {case.experiment for case in cases} == {"", MOSTLY_ABOVE}
    assert {(str(case.scenario), case.change) for case in cases if case.change} == {("4 machines, 512 jobs", TWICE_THE_LINKS)}
    assert set(cases) < set(planned(drmaestro.FULL))


def scheduler(case):
    return scheduler_of(case.cell().scheduler)


def test_variants_apply_only_to_their_policies():
    assert scheduler(DrMaestroCase(SMALLEST, "network_aware", 0, variant=SOLVED_AGAIN)).solve_again
    assert scheduler(DrMaestroCase(SMALLEST, "drmaestro", 0, variant=OUR_PHASE)).local_first
    plain = scheduler(DrMaestroCase(SMALLEST, "network_aware", 0))
    assert not plain.solve_again and not plain.local_first and plain.at_ends
    assert not scheduler(DrMaestroCase(SMALLEST, "firmament", 0, FIXED)).at_ends
    with pytest.raises(ValueError, match="does not apply to policy"):
        scheduler(DrMaestroCase(SMALLEST, "firmament", 0, variant=OUR_PHASE))
    with pytest.raises(KeyError):
        DrMaestroCase(SMALLEST, "firmament", 0, "no such change").measure()


def test_only_network_aware_arcs_leave_jobs_partly_placed():
    """Without network awareness, solving a round again changes nothing, so `SOLVED_AGAIN` does not apply to that policy."""
    schedules = []
    for again in (False, True):
        cell = DrMaestroCase(SMALLEST, "drmaestro", 0).cell()
        section = cell.scheduler.model_copy(update={"settings": {**cell.scheduler.settings, "solve_again": again}})
        policy, model = scheduler_of(section), models_of(cell.performance, 0)[0]
        schedules.append(simulate(workload_of(cell), cell.machine, policy, model=model, engine="reference").schedule)
    assert scheduler_of(section).solve_again
    for column in ("start", "end", "owner", "amount"):
        assert np.array_equal(*(getattr(schedule, column) for schedule in schedules))


def test_unaffected_policies_are_looked_up_without_the_variant():
    cases = {
        DrMaestroCase(SMALLEST, "firmament", 0): {"makespan_s": 6.0},
        DrMaestroCase(SMALLEST, "drmaestro", 0): {"makespan_s": 4.0},
        DrMaestroCase(SMALLEST, "network_aware", 0): {"makespan_s": 3.0},
        DrMaestroCase(SMALLEST, "network_aware", 0, variant=SOLVED_AGAIN): {"makespan_s": 2.0},
    }
    results = DrMaestroResults(cases, {})
    assert results.ratio(SMALLEST, "firmament", "network_aware", variant=SOLVED_AGAIN).tolist() == [3.0]
    assert results.ratio(SMALLEST, "firmament", "drmaestro", variant=SOLVED_AGAIN).tolist() == [1.5]
    assert results.ratio(SMALLEST, "firmament", "network_aware").tolist() == [2.0]


def test_figures_show_the_papers_first_phase():
    """Runs of a variant do not replace those of the paper's first phase."""
    lists = {"grid_s": [0.0, 1.0], "normalised": [2.0, 1.0], "beyond": [6, 5, 4, 3, 2, 1]}
    rest = dict.fromkeys(METRICS, 1.0)
    cases = {
        DrMaestroCase(SMALLEST, policy, 0, variant=variant): {**rest, **lists, "used": [7, 7] if variant else [3, 3]}
        for variant, phase in VARIANTS.items()
        for policy in phase.policies
    }
    (gpus,) = drmaestro.figures.gpus(DrMaestroResults(cases, {}), SMALLEST)
    assert gpus.name == "gpus_4x128"
    assert {value for line in gpus.series.values() for value in line} == {3}


def test_plan_up_to_a_number_of_machines_omits_larger_scenarios():
    small = drmaestro.FULL.up_to(16)
    assert {case.scenario.machines for case in planned(small)} == {4, 16}
    assert {case for case in planned(drmaestro.FULL) if case.scenario.machines <= 16} == set(planned(small))
    assert {case.scenario.machines for case in small.timings()} == {4, 16}
    assert "Settings with more than 16 machines were not run." in small.describe()[0]
    assert "were not run" not in drmaestro.FULL.describe()[0]


@pytest.mark.parametrize(("switch", "beyond"), [(FOUR_TIMES, 3), (THREE_TIMES, 2)])
def test_switch_with_longer_goals_counts_their_multiple(switch, beyond):
    cases = {
        DrMaestroCase(SMALLEST, policy, seed): {
            "makespan_s": 1.0,
            "violations": 1,
            "violations_local": 1,
            "violations_queueing": 1,
            "beyond": [count + seed if k == beyond else 9 for k in range(6)],
        }
        for policy, count in zip(POLICIES, (60, 40, 30), strict=True)
        for seed in range(2)
    }
    by_claim = switches(DrMaestroResults(cases, {}))[switch]
    less = ("Table 3", str(SMALLEST), "violations of DRMaestro minus network-aware; submission to end longer than the goal")
    times = ("Table 3", str(SMALLEST), "violations of Firmament / network-aware; submission to end longer than the goal")
    assert by_claim[less].value == 10.0
    assert by_claim[times].value == pytest.approx((60 / 30 + 61 / 31) / 2)


@pytest.mark.parametrize(
    ("counts", "plain", "aware", "fewer"),
    [
        ((106, 117, 112), "holds", "holds", "holds"),  # the published counts
        ((71, 99, 112), "fails", "fails", "fails"),
        ((117, 117, 117), "fails", "holds", "fails"),
    ],
)
def test_violations_are_judged_by_the_printed_goal(counts, plain, aware, fewer):
    rest = {"makespan_s": 1.0, "violations": 5, "violations_queueing": 5, "beyond": [6, 5, 4, 3, 2, 1]}
    cases = {
        DrMaestroCase(SMALLEST, policy, seed): {**rest, "violations_local": count}
        for policy, count in zip(POLICIES, counts, strict=True)
        for seed in range(2)
    }
    rows = compare(read_claims(catalog.find("claims", "drmaestro.csv")), dict(tables(DrMaestroResults(cases, {}), FOUR)))
    by_metric = {row.claim.metric: row for row in rows if row.claim.key[:2] == ("Table 3", str(SMALLEST))}
    ratio = "violations of Firmament / {}; execution longer than the mean local time"
    assert by_metric[ratio.format("DRMaestro")].verdict == plain
    assert by_metric[ratio.format("network-aware")].verdict == aware
    assert by_metric["violations of DRMaestro minus network-aware; execution longer than the mean local time"].verdict == fewer
    assert all((row.claim.kind == "paper") == metric.endswith("mean local time") for metric, row in by_metric.items())


def test_printed_slowdown_of_transfers_is_a_difference_of_shares():
    """HotSpot transfers for 0.2 % of the time without load and 1 % with it; the rest of the time is the same."""
    rows = {key[1:]: value.value for key, value in figure_3(DrMaestroResults({}, {}))}
    slowdown = 100 * ((0.01 / 0.99) / (0.002 / 0.998) - 1)
    assert rows["hotspot", "slowdown of the data transfers under full load"] == pytest.approx(slowdown, rel=0.01)
    less = "share of the transfers without load below that under full load"
    assert rows["hotspot", f"{less}, relative"] == pytest.approx(80, abs=0.5)
    assert rows["nw", f"{less}, points"] == pytest.approx(32, abs=0.5)


@pytest.mark.parametrize(("times", "solved", "verdict"), [(2.0, 1, "holds"), (1.2, 2, "fails")])
def test_round_time_is_judged_and_flow_problems_are_not_the_papers(times, solved, verdict):
    def run(seconds, problems):
        return {"total_s": [seconds] * 2, "solver_s": [seconds / 2] * 2, "solved": 2 * problems, "solving": 2}

    of = {"firmament": run(0.1, 1), "drmaestro": run(0.1 * times, solved), "network_aware": run(0.1, 1)}
    timed = {DrMaestroCase(SMALLEST, policy, 0, FIXED): record for policy, record in of.items()}
    results = DrMaestroResults({}, timed)
    rows = compare(read_claims(catalog.find("claims", "drmaestro.csv")), dict(rounds(results)))
    by_metric = {row.claim.metric: row for row in rows if row.claim.key[:2] == ("Figure 6", str(SMALLEST))}
    assert by_metric["mean time of a round, DRMaestro / Firmament"].verdict == verdict
    assert by_metric["flow problems in a round, DRMaestro / Firmament"].claim.kind == "ours"


def test_no_setting_is_held_out():
    rows = [claim for claim in read_claims(catalog.find("claims", "drmaestro.csv")) if claim.artifact == "Prediction"]
    assert len(rows) == len(SCENARIOS) and {claim.kind for claim in rows} == {"input"}
    assert all("not held out" in claim.note for claim in rows if claim.condition != str(SMALLEST))


def test_violations_count_executions_longer_than_the_mean_local_time():
    case = DrMaestroCase(SMALLEST, "firmament", 0)
    schedule = case.simulate()
    work = schedule.workload.attributes["kind"] != WARM_UP
    execution = (schedule.job_end - schedule.job_start)[work] / 1e9
    local = [case.local_s[kind] for kind in schedule.workload.attributes["kind"][work]]
    assert case.measured(schedule)["violations_local"] == int((execution > np.array(local)).sum()) > 0
    assert set(case.local_s) == set(read_device_profiles("catalog:rodinia"))


@pytest.mark.long
def test_experiments_cover_kinds_histograms_sockets_rack_nodes_and_a_third_phase():
    """Each experiment changes what its name states, and every job of the smallest setting runs."""
    for name, experiment in EXPERIMENTS.items():
        case = DrMaestroCase(replace(SMALLEST, jobs=24), "drmaestro", 0, experiment=name)
        schedule = case.simulate()
        machine, measured = schedule.machine, schedule.workload.attributes["kind"] != WARM_UP
        types = [machine.type[owner] for owner in machine.of_kind(Kind.DEVICE)]
        assert types.count("gpu") == 16 and types.count("nvme") == 4 * experiment.nvme
        assert len(machine.of_kind(Kind.NODE)) == 4 * experiment.nodes
        assert machine.capacity[machine.of_kind(Kind.NODE), machine.resource("cores")].sum() == 640
        homeless = [o for o in machine.of_kind(Kind.DEVICE) if machine.home[o] < 0]
        assert len(homeless) == 4 * experiment.rack_gpus
        used = {machine.type[owner] for owner in schedule.owner if machine.kind[owner] == Kind.DEVICE}
        assert used == ({"gpu", "nvme"} if experiment.nvme else {"gpu"})
        plain = DrMaestroCase(replace(SMALLEST, jobs=24), "drmaestro", 0).simulate().workload
        kinds, before = (jobs.attributes["kind"] for jobs in (schedule.workload, plain))
        assert (kinds[measured].tolist() != before[before != WARM_UP].tolist()) == experiment.normal_kinds
        same = np.allclose(schedule.workload.duration[measured], plain.duration[before != WARM_UP], rtol=1e-6)
        assert same == (experiment.times is None and not experiment.normal_kinds)
        assert measured.sum() == 24 and (schedule.workload.request("gpu")[measured] == 1).all()


@pytest.mark.parametrize("name", [name for name, experiment in EXPERIMENTS.items() if experiment.times])
def test_histograms_keep_mean_and_spread(name):
    scores = EXPERIMENTS[name].times.scores((np.arange(100_000) + 0.5) / 100_000)
    assert (scores.mean(), scores.std()) == pytest.approx((0.0, 1.0), abs=1e-3)
    if name == MOSTLY_ABOVE:
        assert (scores > 0).mean() == pytest.approx(106 / 128, abs=1e-4)  # jobs of Firmament in Table 3


def test_normal_draw_prefers_the_middle_of_the_list():
    kinds = middle_kinds(np.array([-9.0, -1.0, -0.01, 0.0, 1.0, 9.0]), 8)
    assert kinds.tolist() == [0, 2, 3, 4, 6, 7]


def test_histogram_is_a_switch_of_the_settings_that_were_run_with_it():
    cases = {
        DrMaestroCase(SMALLEST, policy, 0, experiment=name): {"makespan_s": 2.0 + k, "violations_local": 3 + k, "violations": 1,
                                                              "violations_queueing": 1}
        for k, policy in enumerate(POLICIES) for name in ("", MOSTLY_ABOVE)
    }  # fmt: skip
    by_claim = switches(DrMaestroResults({c: {**m, "beyond": [1] * 6} for c, m in cases.items()}, {}))[MOSTLY_ABOVE]
    assert {key[1] for key in by_claim} == {str(SMALLEST)} and {key[0] for key in by_claim} == {"Table 2", "Table 3"}
    assert (
        by_claim[
            "Table 3", str(SMALLEST), "violations of Firmament / DRMaestro; execution longer than the mean local time"
        ].value
        == 0.75
    )
