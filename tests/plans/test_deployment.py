"""Deployment plans: every candidate compared with a direct simulation, the search, resuming, errors."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from poolwise.engines import simulate
from poolwise.errors import InputError
from poolwise.optimize.front import front
from poolwise.plans import plan
from poolwise.plans.deployment_answer import MeasuredDeployments, _because
from poolwise.registry import make
from poolwise.schedulers.dispatch import Dispatch
from poolwise.simulation import measured
from poolwise.traces import vinesim
from poolwise.traces.generators.unit_jobs import UnitJobs
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
size = [{ share = 1.0, min = 2, max = 9 }]

[[plan.unit]]
type = "cpu-intel"
min = 0
max = 6

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


def simulate_directly(folder, cpus, gpus, policy):
    """Return the means over the seeds of (latency, cost, energy), from a direct simulation."""
    affinity = vinesim.read_affinity(folder / "affinity.txt")
    prices, power = vinesim.read_prices(folder / "prices.txt"), vinesim.read_power(folder / "power.txt", columns=3)
    kind = [{"type": name, "share": 0.5} for name in ("fp-good", "fp-bad")]
    jobs = UnitJobs(40, 0, 3_000_000, kind, [{"share": 1.0, "min": 2, "max": 9}])
    rows = []
    for seed in (0, 1):
        units = [(0, 0, y) for y in range(cpus)] + [(2, 0, cpus + y) for y in range(gpus)]
        case = vinesim.VineSimCase.of(
            vinesim.UnitList.of(units),
            replace(jobs, seed=seed).tasks(),
            affinity,
            "40us",
            prices=prices,
            power=power,
            seed=seed,
        )
        run = simulate(case.workload, case.machine, Dispatch(make("placements", policy)), model=case.model, seed=seed)
        metrics = measured(run.schedule, run.engine, run.wall_s).metrics
        rows.append([metrics["p99_job_latency_us"], metrics["purchase_cost"], metrics["energy_j"]])
    return np.mean(rows, axis=0)


def test_every_candidate_matches_a_direct_simulation(file):
    loaded = plan.load_plan(file)
    answer = plan.plan(loaded, file.parent / "out", jobs=1).answer
    frame = answer.candidates
    assert len(frame) == len(loaded.problem.elements) == 2 * (7 * 4 - 1), "all combinations with at least one unit"
    for row in frame.iter_rows(named=True):
        if row["cpu-intel"] + row["gpu"] in (1, 5):
            expected = simulate_directly(file.parent, row["cpu-intel"], row["gpu"], row["placement"])
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
    contents = {name: (out / name).read_bytes() for name in names}
    before = written(out)
    removed, spoiled, *_ = before
    forget(out, removed)
    spoil(out, spoiled)
    plan.plan(plan.load_plan(file), out, jobs=1)
    assert {name: (out / name).read_bytes() for name in names} == contents
    assert {key for key, number in written(out).items() if number != before[key]} == {removed, spoiled}


@pytest.mark.parametrize(
    ("utility", "latency", "words"),
    [
        ({"purchase_cost": 1.0}, (140.0, 155.0, 148.0), "Cheaper than the answer by 5,000 $, but slower: "),
        (
            {"purchase_cost": 1.0},
            (90.0, 155.0, 148.0),
            "Cheaper than the answer by 5,000 $, and not distinguishable from it in latency",
        ),
        ({"energy_j": 2.0}, (140.0, 155.0, 148.0), "With a lower 2 x energy j than the answer (6 instead of 8), but slower: "),
        (None, (140.0, 155.0, 148.0), "1 cpu-intel with placement "),
    ],
)
def test_undecided_candidate_is_compared_in_utility_and_latency(file, utility, latency, words):
    """The target is 150 us; the cheaper candidate is near it on each seed, the answer far below."""
    settings = {"plan.seeds": 3, "plan.target": {"at_most": 150.0}, "plan.utility": utility or {"purchase_cost": 1.0}}
    problem = plan.load_plan(file, settings).problem
    runs = {(1, 0, 0): (latency, 1000.0, 3.0), (1, 1, 0): ((100.0, 101.0, 102.0), 6000.0, 4.0)}
    records = {
        element: [{"latency_us": us, "purchase_cost": cost, "energy_j": joules, "utilization": 0.5, "jobs": 40} for us in each]
        for element, (each, cost, joules) in runs.items()
        if utility is not None or element == (1, 0, 0)
    }
    deployments = MeasuredDeployments.of(problem.section, problem.sizes, records)
    sentences = list(_because(deployments, deployments.ranking()))
    undecided = [line for line in sentences if "is not shown to meet or to miss the target with these seeds" in line]
    assert len(undecided) == 1 and undecided[0].startswith(words)


def test_budget_and_number_of_units_limit_the_candidates(file):
    problem = plan.load_plan(file, {"plan.budget": 7000.0, "plan.units": 3}).problem
    counts = {tuple(size.written[k] for size, k in zip(problem.sizes, e, strict=False)) for e in problem.elements}
    assert counts == {(3, 0), (2, 1)}
    assert problem.left_out["cost above the budget"] == 2, "one CPU and two GPUs, under each policy"


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


def test_quantities_without_affinity_are_excluded(file):
    problem = plan.load_plan(
        file, {"plan.unit": [{"type": "cpu-arm", "counts": [1, 2]}, {"type": "gpu", "counts": [0, 1]}]}
    ).problem
    assert {element[1] for element in problem.elements} == {1}
    assert problem.left_out == {"no unit can run some of the tasks": 4}


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"plan.unit": [{"type": "gpuu", "counts": [1]}]}, "did you mean 'gpu'"),
        ({"plan.unit": [{"type": "fpga", "counts": [1]}]}, "'fpga' has no price"),
        ({"plan.unit": [{"type": "gpu", "counts": [1, 1]}]}, "must ascend"),
        ({"plan.unit": [{"type": "gpu"}]}, "either counts, or min and max"),
        ({"plan.unit": [{"type": "gpu", "counts": [0]}]}, "no candidate remains"),
        ({"plan.jobs.types": {"fp-goood": 1.0}}, "did you mean 'fp-good'"),
        ({"plan.jobs.types": {"fp-good": 0.7}}, "sum to 1"),
        ({"plan.placement": ["highh"]}, "highh"),
        ({"plan.placement": ["racks"]}, "does not place single tasks"),
        ({"plan.affinity": "none.txt"}, "no such file"),
        ({"plan.inter_arrival": "7 parsec"}, "inter-arrival time"),
        ({"plan.utility": {"latency_us": 0.0}}, "at least one must be positive"),
        ({"plan.target": {"at_most": 5.0, "within": 2.0}}, "either at_most or within"),
        ({"plan.trace": "affinity.txt"}, "either trace or jobs"),
        ({"machine": "catalog:cerit-racks"}, "unknown key 'machine'"),
    ],
)
def test_invalid_plan_is_rejected_before_any_run(file, settings, words):
    with pytest.raises(InputError) as caught:
        plan.load_plan(file, settings)
    assert words in str(caught.value) and "plan.toml" in str(caught.value)
