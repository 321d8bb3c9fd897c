"""Dispatch plans: every candidate compared with a direct simulation, the choice, resuming, errors."""

from pathlib import Path

import numpy as np
import pytest

from poolwise.engines import simulate
from poolwise.errors import InputError
from poolwise.performance.affinity import Affinity
from poolwise.plans import plan
from poolwise.plans.units import UnitMeasurement
from poolwise.quantities import US
from poolwise.registry import make
from poolwise.schedulers.dispatch import Dispatch
from poolwise.studies.cells import Cell, workload_of
from tests.helpers.kept_trials import forget, spoil, written

PLAN = """\
version = 1
title = "a small mix"

[plan]
kind = "dispatch"
units = { cpu-intel = 2, gpu = 2 }
affinity = "affinity.txt"
power = "power.txt"
order = ["fcfs", "edf", "classes"]
placement = ["high", "flat"]
of = "critical"
seeds = 2

[plan.target]
missed = 40.0
of = ["batch"]

[[plan.stream]]
name = "critical"
jobs = 40
type = "fp-good"
operations = 3_000_000
inter_arrival = "exponential(4us)"
slack = 1.0

[[plan.stream]]
name = "batch"
jobs = 6
type = "fp-good"
operations = 30_000_000
min = 2
max = 9
inter_arrival = "exponential(25us)"
priority = 1
slack = 6.0
"""
TABLES = {
    "affinity.txt": "1e5 6e4 6e4\n-- -- --\n1.2e6 1.2e4 1.2e6\n",
    "power.txt": "200 200 200 60\n0 0 0 0\n300 300 300 50\n",
}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    for name, text in TABLES.items():
        (tmp_path / name).write_text(text)
    (tmp_path / "plan.toml").write_text(PLAN)
    return tmp_path / "plan.toml"


def test_every_candidate_matches_a_direct_simulation(file, tmp_path):
    loaded = plan.load_plan(file)
    seeds = loaded.problem.study.first
    answer = plan.plan(loaded, tmp_path / "out", jobs=1).answer
    rows = {(row["order"], row["placement"]): row for row in answer.content["candidates"]}
    assert len(rows) == 6
    for order in ("fcfs", "edf", "classes"):
        for placement in ("high", "flat"):
            latency, missed = [], []
            for seed in (0, 1):
                workload = workload_of(seeds[seed])
                scheduler = Dispatch(make("placements", placement), make("orders", order))
                run = simulate(
                    workload, seeds[seed].machine, scheduler, model=Affinity(), seed=seed, engine="reference"
                ).schedule
                critical = workload.attributes["stream"] == 0
                latency.append(np.percentile((run.job_end - workload.submit)[critical] / US, 99))
                late = run.job_end[~critical] > workload.attributes["deadline"][~critical]
                missed.append(100 * late.mean())
            row = rows[order, placement]
            assert row["latency_us"] == pytest.approx(np.mean(latency), rel=1e-12)
            assert row["missed_pct"] == pytest.approx(np.mean(missed), rel=1e-12)
            assert row["streams"]["critical"]["p99_us"] == pytest.approx(np.mean(latency), rel=1e-12)
            assert row["energy_j"] > 0 and (row["verdict"] == "keeps") == (row["missed_pct"] <= 40)


def test_answer_is_the_fastest_candidate_that_meets_the_deadlines(file, tmp_path):
    for missed in (40.0, 0.0, 100.0):
        answer = plan.plan(plan.load_plan(file, {"plan.target.missed": missed}), tmp_path / "out", jobs=1).answer
        rows = answer.content["candidates"]
        assert [row["latency_us"] for row in rows] == sorted(row["latency_us"] for row in rows)
        keeping = [row for row in rows if row["missed_pct"] <= missed]
        assert answer.content["chosen"] == (keeping[0] if keeping else None)
        assert answer.status == ("decided" if keeping else "infeasible")
        assert answer.candidates.height == 6 and (answer.chosen is None) == (not keeping)
        assert {figure.name for figure, _ in answer.charts} == {"latency", "missed", "energy", "utilization"}


def test_cached_runs_are_reused_and_damaged_ones_repeated(file, tmp_path, monkeypatch):
    first = plan.plan(plan.load_plan(file), tmp_path / "out", jobs=1)
    loaded = plan.load_plan(file)
    runs: list[Cell] = []
    original = UnitMeasurement.run

    def run(self, task):
        runs.append(task)
        return original(self, task)

    monkeypatch.setattr(UnitMeasurement, "run", run)
    cells = [*written(tmp_path / "out")]
    assert len(cells) == 12
    spoil(tmp_path / "out", cells[0])
    forget(tmp_path / "out", cells[1])
    again = plan.plan(loaded, tmp_path / "out", jobs=1)
    assert len(runs) == 2
    assert again.to_dict() == first.to_dict()


@pytest.mark.parametrize(
    ("old", "new", "field", "words"),
    [
        ('order = ["fcfs", "edf", "classes"]', 'order = ["wfp3"]', "plan.order", "changes with time"),
        ('placement = ["high", "flat"]', 'placement = ["racks"]', "plan.placement", "does not place single tasks"),
        ("gpu = 2 }", "tpu = 2 }", "plan.units", "tpu"),
        ('type = "fp-good"', 'type = "fp"', "plan.stream.critical.type", "fp"),
        ('of = "critical"', 'of = "crit"', "plan", "unknown stream 'crit'"),
        ('"exponential(4us)"', '"often"', "plan.stream.critical.inter_arrival", "often"),
        ('"affinity.txt"', '"a.txt"', "plan.affinity", "no such file"),
        ('"affinity.txt"', '"catalog:a.txt"', "plan.affinity", "a.txt"),
        ("slack = 6.0", "slack = 0.5", "plan.stream.batch.slack", "greater than or equal to 1"),
        ("slack = 6.0", "", "plan", "needs a stream with slack"),
        ("units =", 'deployment = "d.txt"\nunits =', "plan", "either units or a deployment"),
        ("seeds = 2", 'trace = "t.txt"', "plan", "either a trace or streams"),
    ],
)
def test_invalid_plan_error_states_the_field(file, old, new, field, words):
    file.write_text(PLAN.replace(old, new, 1))
    with pytest.raises(InputError) as caught:
        plan.load_plan(file)
    assert words in str(caught.value) and caught.value.field == field
    assert caught.value.file is not None


def test_trace_options_default_to_the_seed_of_the_run(file, tmp_path):
    (tmp_path / "t.txt").write_text("fp-good 0 0 0 3000000 gpu 0\n" * 2 + "fp-good 0 0 0 3000000 gpu 1\n")
    head = PLAN.partition("[plan.target]")[0].replace('of = "critical"\n', "").replace('"edf", "classes"', "")
    file.write_text(f'{head}trace = "t.txt"\noptions = {{ inter_arrival = "exponential(9us)" }}\n')
    arrivals = [workload_of(cell).submit.tolist() for cell in plan.load_plan(file).problem.study.first]
    assert arrivals[0] != arrivals[1]
    file.write_text(f'{head}trace = "t.txt"\noptions = {{ inter_arrival = "exponential(9us)", seed = 1 }}\n')
    assert workload_of(plan.load_plan(file).problem.study.first[0]).submit.tolist() == arrivals[1]


def test_order_that_needs_a_missing_column_is_rejected(file, tmp_path):
    (tmp_path / "t.txt").write_text("fp-good 0 0 0 3000000 gpu 0\n")
    head = PLAN.partition("[plan.target]")[0].replace('of = "critical"\n', "")
    file.write_text(f'{head}trace = "t.txt"\n')
    with pytest.raises(InputError, match="cannot order by deadline: the jobs have no deadlines"):
        plan.plan(plan.load_plan(file), tmp_path / "out", jobs=1)


@pytest.mark.parametrize("name", ["critical-beside-batch", "philly-gavel", "azure-splitwise"])
def test_shipped_plans_are_valid(name):
    assert len(workload_of(plan.load_plan(name).problem.study.first[0])) > 1000
