"""End-to-end searches: resuming, notes, and errors."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Generator, Mapping
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from distributed import LocalCluster

from poolwise.engines import simulate
from poolwise.errors import InputError
from poolwise.files.factory import models_of, scheduler_of
from poolwise.files.scheduler import load_scheduler
from poolwise.metrics import Outcomes, fairness, slowdown
from poolwise.runner import Local, find_executor
from poolwise.search.answer import OPENINGS, SearchResult, run_search
from poolwise.search.evaluation import evaluate
from poolwise.search.objectives import OBJECTIVES, JobObjectives
from poolwise.search.problem import OrderSearchProblem, load_search
from poolwise.studies.cells import workload_of
from tests.helpers.kept_trials import content as bytes_of
from tests.helpers.kept_trials import spoil, written

SMALL = Path(__file__).parent / "small.toml"


def search(out: Path, *, open_test: bool = False, **set_: Any) -> SearchResult:
    return run_search(load_search(SMALL, set_), out, Local(1), open_test=open_test, report=lambda line: None)


def content(result: SearchResult) -> dict[str, bytes]:
    names = ("search.json", "orders.csv", "candidates.csv", "scheduler.toml")
    return {name: (result.folder / name).read_bytes() for name in names}


def test_repeated_search_gives_the_same_result_without_new_runs(tmp_path: Path) -> None:
    first = search(tmp_path / "a")
    assert len(first.candidates) == 12 and first.chosen is not None and (tmp_path / "a" / "optuna.journal").is_file()
    assert content(search(tmp_path / "b")) == content(first)

    class Refuse(Local):
        def results(self, task_type: Any, tasks: Mapping[str, Any]) -> Generator[Any, None, None]:
            assert not tasks, "it has been evaluated before"
            yield from ()

    again = run_search(load_search(SMALL), tmp_path / "a", Refuse(), open_test=False, report=lambda line: None)
    assert content(again) == content(first)
    assert content(search(tmp_path / "c", **{"budget.seed": 1})) != content(first)


def test_chosen_order_runs_as_a_scheduler(tmp_path: Path) -> None:
    result = search(tmp_path)
    assert result.chosen is not None
    read = load_scheduler(tmp_path / "scheduler.toml")
    assert scheduler_of(read) == scheduler_of(result.chosen.candidate.section)


def test_runner_up_is_the_next_found_order_by_the_first_objective(tmp_path: Path) -> None:
    result = search(tmp_path)
    goal, ranking, written = result.search.objectives.minimize[0], result.ranking, json.loads(content(result)["search.json"])
    others = [order for order in written["orders"] if order["role"] == "found" and order["keeps"]]
    others = [order for order in others if order["name"] != written["chosen"]["name"]]
    assert ranking.runner_up is not None and written["runner_up"]["name"] == ranking.runner_up.candidate.name
    assert written["runner_up"] == min(others, key=lambda order: order["on"]["validation"][goal]["ratio"])
    assert written["undecided"] is None


KILLED_AFTER = 8
"""Number of stored evaluations after which the search is killed."""


@pytest.mark.long
def test_killed_search_resumes_to_the_same_result(tmp_path: Path) -> None:
    whole = search(tmp_path / "whole")
    out = tmp_path / "killed"
    script = (
        "import itertools, os, signal; from pathlib import Path; from poolwise.search.answer import run_search\n"
        "from poolwise.search.problem import load_search; from poolwise.runner import Local, Store\n"
        "write, stored = Store.write, itertools.count(1)\n"
        "def write_until_killed(*record):\n"
        "    write(*record)\n"
        f"    if next(stored) == {KILLED_AFTER}: os.kill(os.getpid(), signal.SIGKILL)\n"
        "Store.write = write_until_killed\n"
        f"run_search(load_search({str(SMALL)!r}), Path({str(out)!r}), Local(1), open_test=False, report=lambda line: None)\n"
    )
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == -signal.SIGKILL
    before = written(out)
    assert len(before) == KILLED_AFTER < len(written(tmp_path / "whole"))
    spoiled, *_ = before
    spoil(out, spoiled)
    again = search(out)
    assert content(again) == content(whole)
    after = written(out)
    assert after.keys() == written(tmp_path / "whole").keys()
    assert {key for key, row in before.items() if after[key] != row} == {spoiled}, "complete evaluations are not repeated"


@pytest.mark.parametrize("where", ["processes", "dask"])
def test_search_on_any_executor_gives_the_same_result(where: str, tmp_path: Path) -> None:
    locally = search(tmp_path / "one")
    with ExitStack() as stack:
        if where == "dask":
            cluster = LocalCluster(n_workers=2, processes=False, dashboard_address="127.0.0.1:0")
            executor = stack.enter_context(find_executor("dask", stack.enter_context(cluster).scheduler_address))
        else:
            executor = Local(2)
        other = run_search(load_search(SMALL), tmp_path / "other", executor, open_test=False, report=lambda line: None)
    assert content(other) == content(locally)
    assert bytes_of(tmp_path / "other") == bytes_of(tmp_path / "one")


def test_test_workloads_are_used_on_demand_and_counted(tmp_path: Path) -> None:
    closed = search(tmp_path)
    assert closed.opened == 0 and not (tmp_path / OPENINGS).exists()
    assert all("test" not in judged.on for judged in closed.judged)
    assert any("have not been used" in note for note in closed.notes)
    once = search(tmp_path, open_test=True)
    assert once.opened == 1 and once.chosen is not None and once.chosen.on["test"]["d10"].workloads == 3
    assert [judged.role for judged in once.judged if "test" in judged.on] == ["found", "known"], "only the chosen one"
    assert not any("times in this folder" in note for note in once.notes)
    twice = search(tmp_path, open_test=True)
    assert twice.opened == 2 and any("used 2 times" in note for note in twice.notes)
    log = [json.loads(line) for line in (tmp_path / OPENINGS).read_text().splitlines()]
    assert [entry["opening"] for entry in log] == [1, 2] and log[0]["chosen"] == dict(once.chosen.candidate.settings)
    assert search(tmp_path).opened == 2, "the count persists"


def test_objectives_match_a_separate_run() -> None:
    """Objectives from prepared arrays equal those of a simulation and of the metrics of studies."""
    problem: OrderSearchProblem = load_search(SMALL)
    cell = problem.splits["train"][0]
    fares = evaluate(replace(cell, scheduler=problem.baseline.section), 10.0)
    model, estimate = models_of(cell.performance, cell.seed)

    def outcomes(section: Any) -> Outcomes:
        how = scheduler_of(section, cell.warm_up)
        return Outcomes.of(simulate(workload_of(cell), cell.machine, how, model=model, estimate=estimate).schedule)

    mine, fcfs = outcomes(problem.baseline.section), outcomes(cell.baseline().scheduler)
    waits = slowdown.wait_s(mine)
    assert fares.bounded_slowdown == pytest.approx(float(np.exp(np.log(slowdown.bounded_slowdown(mine)).mean())), rel=1e-12)
    assert fares.longest_wait == waits.max() > 0 and fares.p99_wait == np.percentile(waits, 99)
    benefit = fairness.waiting_benefit_s(mine, fcfs)
    assert fares.d10 == pytest.approx(fairness.extreme_discrimination(benefit, 10) / 60, rel=1e-12)


def test_notes_warn_about_weak_searches(tmp_path: Path) -> None:
    alone = {"objectives.minimize": ["bounded_slowdown"], "objectives.at_most": {}, "budget.candidates": 4}
    notes = " ".join(search(tmp_path, **alone).notes)
    assert "no constraint bounds the waits" in notes and "are short" in notes
    assert "D10" in " ".join(search(tmp_path).notes)


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        ("space.scheduler.order.x", {"min": 1.0}, "set min and max, or values"),
        ("space.scheduler.order.x", {"min": 2.0, "max": 1.0}, "min must be less than max"),
        ("space.scheduler.order.x", {"min": 0.0, "max": 1.0, "log": True}, "log requires min > 0"),
        ("space.machine", {"min": 0.0, "max": 1.0}, "only scheduler settings can be searched"),
        ("objectives.minimize", ["slowness"], "slowness"),
        ("objectives.baseline", "missing.toml", "no such file: missing.toml"),
        ("splits.test.0.seeds.values", [5, 2], "is also in the train split"),
    ],
)
def test_invalid_search_fails_before_any_run(path: str, value: object, message: str, tmp_path: Path) -> None:
    with pytest.raises(InputError) as error:
        if path.startswith("space."):
            text = SMALL.read_text()
            written = ", ".join(f"{k} = {str(v).lower()}" for k, v in value.items())  # type: ignore[attr-defined]
            file = tmp_path / "wrong.toml"
            file.write_text(text.replace("[space]\n", f'[space]\n"{path.removeprefix("space.")}" = {{ {written} }}\n'))
            load_search(file)
        else:
            load_search(SMALL, {path: value})
    assert message in str(error.value)
    assert ".toml" in str(error.value)


def test_unknown_setting_is_reported_with_its_line(tmp_path: Path) -> None:
    file = tmp_path / "wrong.toml"
    file.write_text(SMALL.read_text().replace("rise.runtime", "rise.runtimes"))
    with pytest.raises(InputError, match=r"wrong\.toml, line 10, .*runtimes"):
        load_search(file)


def test_every_objective_has_a_name() -> None:
    assert JobObjectives._fields == OBJECTIVES
