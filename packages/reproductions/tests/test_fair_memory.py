"""Reproduction of Fair Memory: every published value is a claim, and every measurement belongs to one."""

import csv
import math
import re
from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from poolwise.errors import UnknownNameError
from poolwise.files.factory import models_of
from poolwise.performance.remote_memory import sld_factor
from poolwise.presentation.figure_data import figure_csv
from poolwise.studies.cells import Cell, GeneratorSource
from poolwise.studies.study import load
from poolwise.traces.generators import generate
from poolwise_reproductions import catalog
from poolwise_reproductions.cases import Measurer
from poolwise_reproductions.causes import faults
from poolwise_reproductions.claims_file import read_claims
from poolwise_reproductions.criteria import Measured
from poolwise_reproductions.fair_memory import (
    OURS,
    PAPER,
    FairMemory,
    changes,
    claims,
    figures,
    measured,
    missing,
    plan,
    runs,
    traces,
)
from poolwise_reproductions.fair_memory.readings import ALL_SWITCHES, COMBINED, SPEC, ablations, switched
from poolwise_reproductions.fair_memory.results import FairMemoryResults
from poolwise_reproductions.fair_memory.runs import CDF, LATENCIES, MACHINES, ORDERS, FairMemoryCase
from poolwise_reproductions.fair_memory.traces import TRACES
from poolwise_reproductions.published import READINGS, VALUES, compare
from poolwise_reproductions.reproduction import figures_of, reproduce
from tests.helpers.data import PUBLISHED

CLAIMS = catalog.find("claims", "fair-memory.csv")


def test_every_published_value_is_a_claim() -> None:
    claimed = read_claims(CLAIMS)
    with (PUBLISHED / "fair_memory_claims.csv").open(newline="", encoding="utf-8") as file:
        published = list(csv.DictReader(file))
    assert published
    for row in published:
        machines = ("perlmutter", "juwels") if row["trace"] == "both" else (row["trace"],)
        for value in re.findall(r"[\d.]+", row["value"]):
            matching = [
                c
                for c in claimed
                if c.published == float(value) and (any(m in c.condition for m in machines) or c.condition.endswith(" ns"))
            ]
            assert matching, row


@pytest.fixture(scope="module")
def results() -> FairMemoryResults:
    """Runs of a few hundred jobs on both machines and scopes, at the sizes of a quick run, and on one other trace."""
    patch, whole = pytest.MonkeyPatch(), FairMemoryCase.cell

    def small(case: FairMemoryCase) -> Cell:
        cell = replace(whole(case), warm_up=100)
        generated = isinstance(cell.workload, GeneratorSource)
        return (
            replace(cell, workload=replace(cell.workload, settings=f'{{"jobs":400,"seed":{case.seed}}}')) if generated else cell
        )

    patch.setattr(FairMemoryCase, "cell", small)
    patch.setattr(traces, "generate", lambda name, **settings: generate(name, **{**settings, "jobs": 400}))
    try:
        trace = next(iter(TRACES))
        other = [FairMemoryCase("perlmutter", 0, order, 8, plan.READ[1], trace=trace) for order in ORDERS]
        return FairMemoryResults({case: case.measure() for case in (*plan.QUICK.cases(), *other)}, 1, "perlmutter")
    finally:
        patch.undo()
        runs.baseline_outcomes.cache_clear()


def test_every_measurement_belongs_to_a_claim(results: FairMemoryResults) -> None:
    combined = {ALL_SWITCHES: measured(PAPER, results, COMBINED)}
    rows = compare(read_claims(CLAIMS), measured([*PAPER, *OURS], results), {}, combined)
    judged = [row for row in rows if row.verdict in ("holds", "fails")]
    assert len(judged) > 60
    assert {row.claim.kind for row in judged} == {"paper", "input", "ours"}
    assert claims.explain(results)


@pytest.mark.long
def test_figures_of_the_paper_are_drawn(results: FairMemoryResults) -> None:
    ablated = {label: measured(PAPER, results, reading) for label, reading in ablations().items()}
    drawn = [*figures_of([*PAPER, *OURS], results), figures.ablation(read_claims(CLAIMS), ablated)]
    names = [figure.name for figure in drawn]
    assert len(set(names)) == len(names)
    shown = {figure.artifact for figure in drawn}
    assert {f"Figure {number}" for number in range(5, 13)} | {"Sensitivity"} <= shown and "ablation" in names
    assert all("nan" not in figure_csv(figure) and figure_csv(figure).count("\n") > 4 for figure in drawn)


@pytest.mark.parametrize("number", [7, 8, 9, 10, 11, 12])
def test_runs_of_a_single_figure_measure_its_rows(results: FairMemoryResults, number: int) -> None:
    figure = f"Figure {number}"
    parts = [paper_part for paper_part in PAPER if paper_part.concerns(figure)]
    needed = {case for part in parts for case in part.cases(plan.QUICK)}
    assert 0 < len(needed) < len(plan.QUICK.cases())
    part = replace(results, measurements={case: run for case, run in results.measurements.items() if case in needed})
    whole, alone = (
        {key: value for key, value in measured(parts, measurements).items() if key[0] == figure}
        for measurements in (results, part)
    )
    assert whole.keys() == alone.keys() and whole
    assert [whole[key].value for key in whole] == [alone[key].value for key in whole]


@pytest.mark.parametrize("figure", ["8", "9", "11", "12", "Parity"])
def test_single_figure_measures_only_claimed_rows(results: FairMemoryResults, tmp_path, monkeypatch, figure: str) -> None:
    monkeypatch.setattr(Measurer, "__call__", lambda measurer, cases: {case: results.measurements[case] for case in cases})
    done = reproduce("fair-memory", FairMemory(), tmp_path, quick=True, jobs=1, figure=figure)
    assert done.rows and all(row.claim.artifact in (f"Figure {figure}", figure) for row in done.rows)


def test_readings_differ_only_in_the_three_switches(results: FairMemoryResults) -> None:
    for reading, metric, order, where in (
        (switched(["F1 as printed"]), "mean_bounded_slowdown", "f1", {"order": "f1_as_printed", "backfill": "easy"}),
        (switched(["fairness against 512 GB"]), "plain_discrimination_s", "fm", {"order": "fm", "backfill": "easy"}),
        (COMBINED, "plain_discrimination_s", "f1", {"order": "f1_as_printed", "backfill": "nodes only, no extra"}),
    ):
        expected = results.measurements[FairMemoryCase("perlmutter", 0, size_tb=16, **where)][metric]
        assert results.under(reading)(metric.removeprefix("plain_"), order, 16).tolist() == [expected]
    first, *others, last = ablations().values()
    assert (first, last) == (SPEC, COMBINED)
    assert len({first, *others, last}) == 8


@pytest.mark.parametrize("machine", MACHINES)
def test_study_file_has_the_cells_of_the_papers_orders(machine: str) -> None:
    """`poolwise run` of the file simulates the cells of Figure 7, and their baselines are those of the reproduction."""
    study = load(catalog.find("studies", f"fair-memory-{machine}.toml"))
    planned = [
        case
        for case in plan.FULL.pools()
        if (case.machine, case.backfill, case.curve) == (machine, "easy", "quantile") and case.order in ORDERS
    ]
    assert {case.cell().key for case in planned} == {cell.key for cell in study.cells} and len(planned) == len(study.cells)
    assert {case.without_backfill().cell().key for case in planned} == {cell.key for cell in study.baselines}
    without = [case for case in plan.FULL.cases() if case.machine == machine and not case.size_tb]
    keys = {case.cell().key for case in without if case.backfill == "easy"}
    assert len(keys) == 20 and keys <= {cell.key for cell in study.memory_baselines}


@pytest.mark.parametrize("name", TRACES)
def test_other_traces_keep_published_properties(name: str) -> None:
    """Nodes and runtimes are those of the generated jobs; the weighted mean memory is met where `meets` claims it."""
    means = []
    for seed in range(4):
        drawn, other = generate("perlmutter_like", seed=seed), TRACES[name].workload("perlmutter_like", seed)
        for column in ("nodes", "memory"):
            if not (column == "memory" and TRACES[name].share is not None):
                assert np.array_equal(np.sort(drawn.request(column)), np.sort(other.request(column)))
        assert np.array_equal(np.sort(drawn.duration), np.sort(other.duration))
        work = other.request("nodes") * other.duration.astype(np.float64)
        means.append(float((work * other.request("memory")).sum() / work.sum()) / 1024)
    assert (abs(np.mean(means) - 140) < 15) == TRACES[name].meets


def test_figure_of_inputs_needs_no_run(tmp_path) -> None:
    done = reproduce("fair-memory", FairMemory(), tmp_path, jobs=1, figure="5")
    assert [figure.name for figure in done.findings.figures] == ["figure5"]
    assert {row.verdict for row in done.rows} == {"holds"}
    assert {row.claim.artifact for row in done.rows} == {"Figure 5"}
    with pytest.raises(UnknownNameError):
        reproduce("fair-memory", FairMemory(), tmp_path, jobs=1, figure="99")


def test_no_claim_rests_on_the_combination_of_switches(results: FairMemoryResults, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(Measurer, "__call__", lambda measurer, cases: {case: results.measurements[case] for case in cases})
    done = reproduce("fair-memory", FairMemory(), tmp_path, quick=True, jobs=1, figure="8")
    assert not done.findings.readings
    nearer = LATENCIES["mix"][0]
    assert set(done.findings.switches) == (set(ablations()) - {"spec"}) | set(changes.CHANGES) | {nearer}
    figure_8 = {claim.key for claim in read_claims(CLAIMS) if claim.artifact == "Figure 8" and claim.rule == "order"}
    assert figure_8 <= set(done.findings.switches[ALL_SWITCHES])
    packages = {
        ALL_SWITCHES,
        *(name for name in (*ablations(), *changes.CHANGES) if name.startswith("all but") or " and " in name),
    }
    assert set(changes.TEXTS.packages) - set(READINGS) == packages
    assert set(changes.TEXTS.alone) == {nearer, *(name for name in ablations() if name.startswith("only"))}
    assert [faults(text, VALUES) for text in changes.TEXTS.alone.values()] == [[]] * 4


def test_the_scope_system_has_the_latency_that_the_paper_prints_unless_the_cause_is_switched() -> None:
    metrics = ("all_p999_bounded_slowdown", "all_mean_bounded_slowdown")
    values, cdf = {"mix": 1.05, "all": 1.5}, {CDF: [0.5, 1.0]}
    runs = {FairMemoryCase("juwels", 0, "fm", size): dict.fromkeys(metrics, 1.0) | cdf for size in (0, 6, 12)}
    for latency, size in product(("mix", "all"), (6, 12)):
        case = FairMemoryCase("juwels", 0, "fm", size, scope="system", latency=latency)
        runs[case] = dict.fromkeys(metrics, values[latency]) | cdf
    results = FairMemoryResults(runs, 1, "juwels")
    key = "Figure 9", "juwels, 12 TB", "mean bounded slowdown: system over rack"
    measured = {key: value for key, value in claims.figure_9(results) if not math.isnan(value.value)}
    row = next(row for row in compare(read_claims(CLAIMS), measured, None, changes.near_in_rack(results), changes.TEXTS)
               if row.claim.key == key)  # fmt: skip
    assert (row.measured.value, row.verdict, row.basis) == (1.5, "fails", "verified")
    assert row.shown_by == "switch: 280 ns outside the rack, 1.05" and row.cause.endswith("1.05 instead of 1.5")


@pytest.mark.parametrize(("near", "verdict"), [(4.95, "holds"), (5.0, "holds"), (4.5, "fails"), (5.5, "fails")])
def test_throughput_that_still_changes_at_the_largest_pools_does_not_level_off(near, verdict) -> None:
    """Throughput is 5 at the largest pool, and utilization is constant."""
    values = {
        FairMemoryCase("juwels", seed, "fm", size): {"throughput_per_100s": value, "utilization": 0.9}
        for seed in range(2)
        for size, value in ((22, near), (24, 5.0))
    }
    rows = compare(read_claims(CLAIMS), dict(claims._plateau(FairMemoryResults(values, 2, "juwels"), "fm")))
    judged = {row.claim.metric: row.verdict for row in rows if row.verdict != "not measured"}
    assert judged == {
        "throughput at the second-largest pool over the largest": verdict,
        "utilization at the second-largest pool over the largest": "holds",
    }


def test_parabola_meets_the_published_latencies() -> None:
    assert [claims._parabola(30.0, 50.0, ns) for ns in (0, 180, 280)] == pytest.approx([0.0, 30.0, 50.0])


@pytest.mark.parametrize(("at_190_ns", "at_0_ns"), [(190.0, 0.0), (200.0, -560.0)])
def test_parabola_through_the_printed_value_shows_whether_it_lies_on_a_curve_from_zero(
    at_190_ns: float, at_0_ns: float
) -> None:
    lifted = {180: 180.0, 190: at_190_ns, 280: 280.0}
    assert claims._at_no_latency(lifted) == pytest.approx(at_0_ns, abs=1e-6)


@pytest.mark.parametrize(
    ("latency", "inside", "expected"),
    [("mix", 0.5, 0.5), ("any", 0.5, 1.0), ("all", 0.5, 1.0), ("any", 1.0, 0.0), ("all", 1.0, 1.0)],
)
def test_latency_of_the_system_scope(latency, inside, expected) -> None:
    """Share of the slowdown at 280 ns of a job with a fraction of its remote memory in the pool of its own rack."""
    model = models_of(FairMemoryCase("juwels", 0, "fm", 6, scope="system", latency=latency).cell().performance, 0)[0]
    at = {ns: sld_factor(0.99, ns) for ns in (180, 280)}
    slowdown = model._mixed(sld_factor(0.99, model.near_ns), sld_factor(0.99, model.far_ns), inside)
    assert (slowdown - at[180]) / (at[280] - at[180]) == pytest.approx(expected)


@pytest.mark.parametrize("machine", MACHINES)
def test_generated_traces_meet_the_published_marginals(machine: str) -> None:
    by_key = {("Section III-B", machine, name): Measured(value) for name, value in marginals_of(machine).items()}
    marginals = [claim for claim in read_claims(CLAIMS) if claim.key in by_key]
    assert len(marginals) == len(by_key) == 5
    exact = [claim for claim in marginals if claim.metric != "days of submission"]  # one seed is not the mean over seeds
    assert {claim.criterion.verdict(by_key[claim.key]) for claim in exact} == {"holds"}


def marginals_of(machine: str):
    """Return the marginals of the first seed."""
    return claims.published_marginals(MACHINES[machine].generator, 0)


def test_page_names_marginals_that_are_not_met() -> None:
    all_claims = read_claims(CLAIMS)
    for jobs, words in (
        (13_930.0, "meet 1 of 1"),
        (1.0, "meet 0 of 1 properties of the traces that section III-B prints (not met: "),
    ):
        first, *_ = missing(all_claims, {("Section III-B", "perlmutter", "jobs"): Measured(jobs)})
        assert words in first
    assert missing(all_claims, {}) == []


def test_distance_of_distributions_is_the_greatest_of_the_three_pairs() -> None:
    cdf = {0: [0.5, 1.0], "rack": [0.4, 1.0], "system": [0.1, 0.9]}
    runs_of = {FairMemoryCase("juwels", 0, "fm", 0): {CDF: cdf[0]}} | {
        FairMemoryCase("juwels", 0, "fm", 6): {CDF: cdf["rack"]},
        FairMemoryCase("juwels", 0, "fm", 6, scope="system", latency="all"): {CDF: cdf["system"]},
    }
    assert claims._distance(FairMemoryResults(runs_of, 1, "juwels"), 6) == pytest.approx([0.4])
    assert np.isnan(claims._distance(FairMemoryResults(runs_of, 1, "juwels"), 12)).all()


@pytest.mark.parametrize("name", changes.CHANGES)
def test_change_verifies_a_claim_and_alters_what_its_name_states(name: str) -> None:
    change = changes.CHANGES[name]
    assert any(claim.shown_by == f"switch: {name}" for claim in read_claims(CLAIMS))
    altered = [change.trace != "", change.backfill != "easy", change.last != "started"]
    assert sum(altered) == (2 if " and " in name else 1)
    assert len(change.cases(10)) == len(set(change.cases(10)))
    assert {case.seed for case in change.cases(10)} == set(range(max(10, change.seeds)))


def test_changed_runs_are_viewed_as_those_of_the_specification() -> None:
    """Throughput of FCFS is 4 with the changed window and 5 without; the other orders have 4.5."""
    name = "window to the start of the job submitted last"
    all_claims = read_claims(CLAIMS)
    values = {
        case: {"throughput_per_100s": 4.0 if case.order == "fcfs" else 4.5, "utilization": 0.9, "mean_bounded_slowdown": 2.0}
        | {"all_mean_bounded_slowdown": 2.0}
        for case in changes.CHANGES[name].cases(2)
    }
    rows = changes.verifying(all_claims, FairMemoryResults(values, 2, "perlmutter"))[name]
    key = ("Figure 7", "juwels", "how far FCFS is the last in throughput at the largest pool")
    assert rows[key].value == pytest.approx(0.125) and rows[key].runs == 2
    assert {claim.key for claim in all_claims if claim.shown_by == f"switch: {name}"} == set(rows)


def test_single_changes_of_a_trace() -> None:
    plain = generate("juwels_like", seed=0)
    busy, large = (traces.SINGLE[name].workload("juwels_like", 0) for name in ("load 1.4", "memory 1.3 times"))
    assert busy.submit.max() / plain.submit.max() == pytest.approx(1 / 1.4, rel=1e-4)
    assert np.array_equal(busy.duration, plain.duration)
    factor = large.request("memory") / plain.request("memory")
    assert factor.max() < 1.31 and np.median(factor) == pytest.approx(1.3, rel=1e-3)
    assert large.request("memory").max() <= traces.NODE_MIB


def test_repeated_seeds_extend_those_of_the_full_run() -> None:
    more = plan.FULL.repeated()
    assert {case.seed for case in more} == set(range(plan.FULL.seeds, plan.FULL.repeats))
    assert not plan.QUICK.repeated()
    first = {replace(case, seed=0) for case in more}
    assert first <= {replace(case, seed=0) for case in plan.FULL.cases()}
