"""A study states which few jobs decide the recommended size; its further runs are those of a trace without them."""

import json
from pathlib import Path

import pytest

from poolwise import studies
from poolwise.cli import app
from poolwise.report import leave_out
from poolwise.report.recommendation import answer
from poolwise.report.sweep import Sweep
from poolwise.runner import Local
from tests.helpers.kept_trials import written

STUDY = """\
version = 1
machine = "machine.toml"

[workload]
trace = "jobs.csv"

[measure]
warm_up = 5
baseline = true

[vary]
"scheduler.order" = ["fcfs", "fm"]
"machine.pool.memory.memory" = ["24 GiB", "48 GiB", "96 GiB"]
"""


def write(folder: Path, large: dict[int, int]) -> Path:
    rows = ["id,submit_ns,nodes,duration_ns,memory_mib"]
    for k in range(1, 221):
        memory = large.get(k, (8, 18, 26)[k % 3])
        if memory:
            rows.append(f"{k},{k * 300 * 10**9},1,{(200 + 37 * (k % 11)) * 10**9},{memory * 1024}")
    (folder / "jobs.csv").write_text("\n".join(rows) + "\n")
    (folder / "study.toml").write_text(STUDY)
    return folder / "study.toml"


def size(result: studies.StudyResult) -> str:
    sweep = Sweep.of(result)
    recommendation = answer(result, sweep)
    assert recommendation is not None
    return sweep.labels[recommendation.at]


@pytest.mark.long
def test_decisive_jobs_are_named(folder: Path, commands: None, capsys) -> None:
    result = studies.run(studies.load(write(folder, {50: 90, 120: 80})), folder / "out", 1)
    decisive = leave_out(result, Local(1))
    rest = studies.run(studies.load(write(folder, {50: 0, 120: 0})), folder / "rest", 1)
    assert decisive is not None and decisive.tried and decisive.decide == (50, 120)
    assert size(result) == "96 GiB" and decisive.then == {"machine.pool.memory.memory": size(rest)} != {
        "machine.pool.memory.memory": "96 GiB"
    }
    assert decisive.text == (
        "2 of 220 jobs (jobs 50, 120) request more than 26 GiB of memory per node; without them "
        f"{size(rest)} is enough instead of 96 GiB."
    )
    write(folder, {50: 90, 120: 80})
    cached = written(folder / "out" / "left_out")
    assert leave_out(result, Local(1)) == decisive, "from the cache"
    assert cached == written(folder / "out" / "left_out") and len(cached) == 2 * 6
    assert len(written(folder / "out")) == 6 + 3
    assert app.run(["run", str(folder / "study.toml"), "--out", str(folder / "out"), "--jobs", "1", "--json"]) == 0
    content = json.loads(capsys.readouterr().out)
    assert content["decisive"] == decisive.to_dict() and content["sanity"][0]["machine"] == "24 GiB"
    html = (folder / "out" / "report.html").read_text()
    assert html.index('<p class="lead">') < html.index("Load ") < html.index(decisive.text), "the decision is first"


def test_skipped_check_is_reported(folder: Path, monkeypatch) -> None:
    result = studies.run(studies.load(write(folder, {})), folder / "out", 1)
    assert str(getattr(leave_out(result, Local(1)), "text", "")).startswith(
        "The size does not depend on a few jobs: it is already the smallest"
    )
    many = studies.run(studies.load(write(folder, {50: 90, 120: 90, 121: 90})), folder / "out", 1)
    assert "More than 2 jobs request the most memory per node" in str(getattr(leave_out(many, Local(1)), "text", ""))
    monkeypatch.setattr("poolwise.diagnostics.leave_out.CHEAP", 6 * 220 - 1)
    assert "was not tested: it would repeat at least 6 runs of 220 jobs" in str(getattr(leave_out(many, Local(1)), "text", ""))
    fixed = studies.run(studies.load(folder / "study.toml", {"machine.pool.memory.memory": "96 GiB"}), folder / "out", 1)
    assert leave_out(fixed, Local(1)) is None
