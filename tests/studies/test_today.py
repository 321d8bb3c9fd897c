"""Comparison of studies and plans with the configuration in use today."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from poolwise import studies
from poolwise.comparison.compare import compare_with_today, prepend_today
from poolwise.comparison.run_comparison import Comparison
from poolwise.comparison.saved_run import read_runs
from poolwise.comparison.sentences import today_sentences
from poolwise.errors import InputError
from poolwise.plans import plan
from poolwise.report.study import study_answer
from tests.helpers import small_study

NOW = '\n[today]\nname = "our cluster"\nscheduler = "old.toml"\nmachine = "now.toml"\n'


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    small_study.write(tmp_path)
    (tmp_path / "old.toml").write_text('version = 1\norder = "fcfs"\nbackfill = "none"\n')
    (tmp_path / "now.toml").write_text(small_study.MACHINE.replace("32 GiB", "48 GiB").replace('"small"', '"now"'))
    (tmp_path / "study.toml").write_text(small_study.STUDY + NOW)
    return tmp_path


def test_every_cell_is_compared_with_today_on_the_same_jobs(folder: Path) -> None:
    study = studies.load(folder / "study.toml")
    todays = {cell.key: cell for cell in study.today.values()}
    assert len(study.cells) == 4 and len(todays) == 1, "varied machine and scheduler values do not apply to today"
    (now,) = todays.values()
    assert (now.machine.name, now.scheduler.order.name, now.scheduler.backfill.name) == ("now", "fcfs", "none")
    assert now.workload == study.cells[0].workload and now.key in {cell.key for cell in study.runs}
    only = studies.load(folder / "study.toml", {"today": {"scheduler": "old.toml"}})
    assert len({cell.key for cell in only.today.values()}) == 2, "varied pools apply to today"
    assert not studies.load(folder / "study.toml", {"today.name": "x"}).cells[0].parameters.keys() & {"today"}


def test_results_report_and_comparison_include_today(folder: Path) -> None:
    result = studies.run(studies.load(folder / "study.toml"), folder / "out", 1)
    cell = result.cells[-1]
    comparison = compare_with_today(result, [cell])
    assert comparison is not None and comparison.labels[0] == "today=our cluster"
    mine, now = result.outcomes(cell), result.today(cell)
    both = result.population(cell)
    waits = [float(np.mean((o.start - o.submit)[both])) / 1e9 for o in (now, mine)]
    by_name = {d.metric: d for d in comparison.differences}
    assert [by_name["mean_wait_s"].first, by_name["mean_wait_s"].value] == pytest.approx(waits)
    page = study_answer(result)
    assert "Changes compared with our cluster" in page.sections
    runs = prepend_today(read_runs(f"{folder / 'out'}:order=fm,memory=64 GiB"))
    assert Comparison.of(runs).labels[0] == "today=our cluster"
    again = {d.metric: d for d in Comparison.of(runs).differences}
    assert again["mean_wait_s"].first == by_name["mean_wait_s"].first
    assert today_sentences(comparison)[-1].startswith("Measured on the 55 jobs")
    today = json.loads((folder / "out" / "provenance.json").read_text())["today"]
    assert set(today["of"]) == {cell.key for cell in result.cells}


def test_engine_of_todays_run_is_named(folder: Path) -> None:
    result = studies.run(studies.load(folder / "study.toml"), folder / "out", 1)
    (now,) = {cell.key for cell in result.study.today.values()}
    assert dict(result.description())["engine"] == "compiled"
    result = replace(result, facts={**result.facts, now: {**result.facts[now], "engine": "reference"}})
    named = dict(result.description())["engine"]
    assert named.startswith("compiled: 4 of the study") and named.endswith("; reference: 1 of today's configuration")


def test_without_today_nothing_is_compared(folder: Path) -> None:
    (folder / "study.toml").write_text(small_study.STUDY)
    result = studies.run(studies.load(folder / "study.toml"), folder / "out", 1)
    assert compare_with_today(result, result.cells[:1]) is None and result.today(result.cells[0]) is None
    assert len(prepend_today(read_runs(f"{folder / 'out'}:order=fm"))) == 2
    assert "today" not in json.loads((folder / "out" / "provenance.json").read_text())


@pytest.mark.parametrize(
    ("section", "field", "words"),
    [
        ('[today]\nname = "x"', "today", "give machine, scheduler or both"),
        ('[today]\nscheduler = "none.toml"', "today.scheduler", "no such file"),
        ('[today]\nmachine = "catalog:nothing"', "today.machine", "unknown"),
        ('[today]\nmachin = "machine.toml"', "today.machin", "unknown key"),
        ('[today]\nscheduler = { order = "fmm" }', "scheduler.order", "unknown order"),
    ],
)
def test_invalid_today_is_an_error(folder: Path, section: str, field: str, words: str) -> None:
    (folder / "study.toml").write_text(f"{small_study.STUDY}\n{section}\n")
    with pytest.raises(InputError, match=words) as raised:
        studies.load(folder / "study.toml")
    assert raised.value.field is not None and raised.value.field.endswith(field.split(".")[-1])


PLAN = """
[plan]
kind = "pools"
[[plan.size]]
key = "machine.pool.memory.memory"
values = ["24 GiB", "96 GiB"]
price = "5 $/GiB"
[[plan.target]]
metric = "mean_bounded_slowdown"
at_most = 100.0
[plan.certainty]
over = "nothing"
min = 1
"""


def test_plan_compares_its_answer_with_today(folder: Path) -> None:
    """The comparison equals that of a study of both, on the jobs that both finish."""
    study = small_study.STUDY.partition("[vary]")[0]
    (folder / "plan.toml").write_text(study + PLAN + NOW)
    answer = plan.plan(plan.load_plan(folder / "plan.toml"), folder / "out", 1).answer
    assert answer.chosen is not None
    lines = answer.sections["Changes compared with our cluster"]
    (folder / "study.toml").write_text(study + '[vary]\n"machine.pool.memory.memory" = ["24 GiB"]\n' + NOW)
    result = studies.run(studies.load(folder / "study.toml"), folder / "other", 1)
    same = compare_with_today(result, result.cells)
    assert same is not None and lines == today_sentences(same)
    assert answer.content["today"]["differences"] == same.to_dict(0)["differences"]
