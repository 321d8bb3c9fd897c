"""Deployment plans: every candidate compared with a direct simulation, the search, resuming, errors."""

from pathlib import Path

import numpy as np
import pytest

from poolwise.api import measured
from poolwise.engines import simulate
from poolwise.errors import InputError
from poolwise.optimize.front import front
from poolwise.plans import plan
from poolwise.plans.deployment_file import JobSizeSection, JobsSection
from poolwise.plans.deployment_tasks import draw_jobs
from poolwise.registry import make
from poolwise.schedulers.dispatch import Dispatch
from poolwise.traces import vinesim
from tests.helpers.kept_trials import forget, spoil, written

PLAN = """\
version = 1
title = "a small deployment"

[plan]
kind = "deployment"
affinity = "affinity.txt"
prices = "prices.txt"
power = "power.txt"
inter_arrival = "40us"
placement = ["high", "flat"]
latency = "p99"
seeds = 2

[plan.jobs]
count = 40
operations = 3_000_000
types = { fp-good = 0.5, fp-bad = 0.5 }
size = [{ share = 1.0, least = 2, most = 9 }]

[[plan.unit]]
type = "cpu-intel"
least = 0
most = 6

[[plan.unit]]
type = "gpu"
counts = [0, 1, 2, 4]

[plan.target]
within = 1.5
"""
TABLES = {
    "affinity.txt": "1e5 6e4 6e4\n-- -- --\n1.2e6 1.2e4 1.2e6\n",
    "prices.txt": "1000\n0\n5000\n",
    "power.txt": "200 200 200 60\n0 0 0 0\n300 300 300 50\n",
}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    for name, text in TABLES.items():
        (tmp_path / name).write_text(text)
    (tmp_path / "plan.toml").write_text(PLAN)
    return tmp_path / "plan.toml"


def simulate_directly(task_type, cpus, gpus, policy):
    """Return the means over the seeds of (latency, cost, energy), from a direct simulation."""
    rows = []
    for seed in (0, 1):
        units = [(0, 0, y) for y in range(cpus)] + [(2, 0, cpus + y) for y in range(gpus)]
        tables = task_type.tables
        case = vinesim.VineSimCase.of(
            vinesim.UnitList.of(units), draw_jobs(task_type.section.jobs, tables.types, seed), tables.affinity, "40us",
            prices=tables.prices, power=tables.power, seed=seed,
        )  # fmt: skip
        run = simulate(case.machine, case.workload, Dispatch(make("placements", policy)), truth=case.model, seed=seed)
        metrics = measured(run.schedule, run.engine, run.wall_s).metrics
        rows.append([metrics["p99_job_latency_us"], metrics["purchase_cost"], metrics["energy_j"]])
    return np.mean(rows, axis=0)


def test_every_candidate_matches_a_direct_simulation(file):
    loaded = plan.load_plan(file)
    answer = plan.plan(loaded, file.parent / "out", jobs=1).answer
    task_type, frame = loaded.question.task_type, answer.candidates
    assert len(frame) == len(loaded.question.elements) == 2 * (7 * 4 - 1), "all combinations with at least one unit"
    for row in frame.iter_rows(named=True):
        if row["cpu-intel"] + row["gpu"] in (1, 5):
            expected = simulate_directly(task_type, row["cpu-intel"], row["gpu"], row["placement"])
            assert [row["latency_us"], row["purchase_cost"], row["energy_j"]] == pytest.approx(expected.tolist(), rel=1e-12)
            assert row["purchase_cost"] == 1000 * row["cpu-intel"] + 5000 * row["gpu"]
    points = frame.select("latency_us", "purchase_cost", "energy_j").to_numpy()
    assert frame["front"].to_list() == front(points).tolist()
    keeping = frame.filter(frame["verdict"] == "keeps")
    assert frame["purchase_cost"][answer.chosen] == keeping["purchase_cost"].min()
    fastest = frame["latency_us"].min()
    assert answer.status in ("decided", "undecided") and frame["latency_us"][answer.chosen] <= 1.6 * fastest


def test_search_of_a_large_set_finds_the_exhaustive_choice(file):
    exact = plan.plan(plan.load_plan(file, {"plan.seeds": 1}), file.parent / "out", jobs=1).answer
    settings = {"plan.seeds": 1, "plan.search": {"exhaustive": 1, "sample": 18}}
    searched = plan.plan(plan.load_plan(file, settings), file.parent / "searched", jobs=1).answer
    assert searched.content["search"]["exhaustive"] is False and "may miss" in searched.sections["Method"][0]
    assert searched.content["search"]["measured"] < exact.content["search"]["measured"]
    assert searched.content["chosen"] == exact.content["chosen"]


def test_interrupted_plan_resumes_with_the_same_result(file):
    out = file.parent / "out"
    plan.plan(plan.load_plan(file), out, jobs=1)
    names = ("plan.json", "candidates.csv", "candidates.parquet", "provenance.json")
    kept = {name: (out / name).read_bytes() for name in names}
    before = written(out)
    removed, spoiled, *_ = before
    forget(out, removed)
    spoil(out, spoiled)
    plan.plan(plan.load_plan(file), out, jobs=1)
    assert {name: (out / name).read_bytes() for name in names} == kept
    assert {key for key, number in written(out).items() if number != before[key]} == {removed, spoiled}


def test_budget_and_number_of_units_limit_the_candidates(file):
    question = plan.load_plan(file, {"plan.budget": 7000.0, "plan.units": 3}).question
    section = question.task_type.section
    counts = {tuple(u.numbers()[k] for u, k in zip(section.unit, e, strict=False)) for e in question.elements}
    assert counts == {(3, 0), (2, 1)}
    assert question.left_out["cost above the budget"] == 2, "one CPU and two GPUs, under each policy"


def test_gain_from_a_few_units_is_reported_for_two_unit_types(file):
    settings = {"plan.units": 6, "plan.jobs.types": {"fp-good": 1.0}}
    answer = plan.plan(plan.load_plan(file, settings), file.parent / "out", 1).answer
    gains = answer.content["eighty_twenty"]["high"]
    rows = answer.candidates.filter(answer.candidates["placement"] == "high").sort("gpu")
    latency = rows["latency_us"].to_numpy()
    gain = (latency[0] - latency) / (latency[0] - latency.min())
    first = int(np.argmax(gain >= 0.8))
    assert gains["share_for_80_percent"] == rows["gpu"][first] / 6
    assert gains["gain_of_20_percent"] == pytest.approx(gain[1]), "one of six is less than 20 %, two are more"
    assert [figure.name for figure, _ in answer.charts] == ["few_units", "front_cost", "front_energy"]


def test_units_without_affinity_are_excluded(file):
    question = plan.load_plan(
        file, {"plan.unit": [{"type": "cpu-arm", "counts": [1, 2]}, {"type": "gpu", "counts": [0, 1]}]}
    ).question
    assert {element[1] for element in question.elements} == {1}
    assert question.left_out == {"no unit can run some of the tasks": 4}


def test_generated_jobs_follow_the_shares():
    sizes = [JobSizeSection(share=0.75, least=1, most=4), JobSizeSection(share=0.25, least=100, most=100)]
    section = JobsSection(count=4000, size=sizes, types={"int": 0.2, "fp-bad": 0.8}, operations=7)
    tasks = draw_jobs(section, vinesim.Types(), seed=3)
    jobs, count = np.unique(tasks.column("parent_job_id"), return_counts=True)
    assert len(jobs) == 4000 and set(count.tolist()) == {1, 2, 3, 4, 100}
    assert (count == 100).mean() == pytest.approx(0.25, abs=0.03)
    kinds = tasks.column("task_type")[tasks.first_of_job]
    assert set(kinds.tolist()) == {0, 1} and (kinds == 0).mean() == pytest.approx(0.2, abs=0.03)
    assert np.array_equal(draw_jobs(section, vinesim.Types(), seed=3).table, tasks.table)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"plan.unit": [{"type": "gpuu", "counts": [1]}]}, "did you mean 'gpu'"),
        ({"plan.unit": [{"type": "fpga", "counts": [1]}]}, "'fpga' has no price"),
        ({"plan.unit": [{"type": "gpu", "counts": [1, 1]}]}, "must ascend"),
        ({"plan.unit": [{"type": "gpu"}]}, "either counts, or least and most"),
        ({"plan.unit": [{"type": "gpu", "counts": [0]}]}, "no candidate is left"),
        ({"plan.jobs.types": {"fp-goood": 1.0}}, "did you mean 'fp-good'"),
        ({"plan.jobs.types": {"fp-good": 0.7}}, "sum to 1"),
        ({"plan.placement": ["highh"]}, "highh"),
        ({"plan.placement": ["racks"]}, "does not place single tasks"),
        ({"plan.affinity": "none.txt"}, "no such file"),
        ({"plan.inter_arrival": "7 parsec"}, "inter-arrival time"),
        ({"plan.utility": {"latency_us": 0.0}}, "at least one must be positive"),
        ({"plan.target": {"at_most": 5.0, "within": 2.0}}, "either at_most or within"),
        ({"plan.trace": "affinity.txt"}, "either trace or jobs"),
        ({"machine": "catalog:cerit-racks"}, "cannot have [machine]"),
    ],
)
def test_invalid_plan_is_rejected_before_any_run(file, settings, words):
    with pytest.raises(InputError) as caught:
        plan.load_plan(file, settings)
    assert words in str(caught.value) and "plan.toml" in str(caught.value)
