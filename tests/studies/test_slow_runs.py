"""Runs on the reference engine are announced before they start, with the reason, the time and the remedy."""

from pathlib import Path

import pytest

from poolwise import catalog, studies
from poolwise.cli import app as cli
from poolwise.studies import slow_runs
from tests.helpers import small_study

SKIP = small_study.STUDY.replace('order = "fm"', 'order = "fm"\nbackfill = "skip"')
REASON = "backfill Skip has no kernel; supported: classes that state a rule"


def write(folder: Path, study: str = SKIP, jobs: int = 1001) -> Path:
    small_study.write(folder)
    (folder / "jobs.csv").write_text(small_study.jobs(jobs))
    (folder / "study.toml").write_text(study)
    return folder / "study.toml"


@pytest.fixture(autouse=True)
def known_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slow_runs, "_estimated_seconds", lambda cell: 95.0)


def test_runs_are_grouped_by_obstacle(tmp_path: Path) -> None:
    study = studies.load(write(tmp_path))
    (group,) = slow_runs.slow_runs(study.runs)
    assert (group.runs, group.jobs) == (4, 1001)
    assert group.text.startswith(
        f"the reference engine simulates 4 runs of 1,001 jobs each, which takes at least about 1 min 35 s each: {REASON}"
    )


def test_short_logs_and_supported_runs_are_not_announced(tmp_path: Path) -> None:
    assert slow_runs.slow_runs(studies.load(write(tmp_path, jobs=1000)).runs) == []
    assert slow_runs.slow_runs(studies.load(write(tmp_path, small_study.STUDY)).runs) == []


def test_run_says_so_before_it_starts_and_not_when_it_resumes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    file, settings = write(tmp_path), ["--set", 'vary.scheduler.order=["fcfs"]', "--jobs", "1", "--out", str(tmp_path / "out")]
    monkeypatch.setattr(slow_runs, "MANY", 50)
    settings += ["--set", "workload.jobs=60"]
    assert cli.run(["run", str(file), *settings]) == 0
    lines = " ".join(capsys.readouterr().err.split())
    assert lines.startswith(
        f"note: the reference engine simulates 2 runs of 60 jobs each, which takes at least about 1 min 35 s each: {REASON}"
    )
    assert cli.run(["run", str(file), *settings]) == 0
    assert "reference engine" not in capsys.readouterr().err


@pytest.mark.long
def test_validate_and_simulate_say_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = write(tmp_path)
    assert cli.run(["validate", str(file)]) == 0
    assert "slow: the reference engine simulates 4 runs of 1,001 jobs" in " ".join(capsys.readouterr().out.split())
    words = ["simulate", str(tmp_path / "jobs.csv"), "--machine", str(tmp_path / "machine.toml"), "--backfill", "skip"]
    assert cli.run(words) == 0
    printed = " ".join(capsys.readouterr().err.split())
    assert (
        printed.count("the reference engine simulates") == 1
        and "1 run of 1,001 jobs, which takes at least about 1 min 35 s" in printed
    )
    assert cli.run([*words, "--engine", "reference"]) == 0
    assert "reference engine simulates" not in capsys.readouterr().err


PLAN = """[plan]
kind = "pools"
certainty = { over = "nothing", min = 1 }

[[plan.size]]
key = "machine.pool.memory.memory"
values = ["32 GiB", "64 GiB"]
price = "1 $/GiB"

[[plan.target]]
metric = "mean_bounded_slowdown"
at_most = 1000.0
"""


@pytest.mark.parametrize("file", ["plans/cerit-pools", "searches/cerit-order"])
def test_validate_says_so_of_plans_and_searches(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    path = catalog.FOLDER / f"{file}.toml"
    assert cli.run(["validate", str(path), "--set", 'scheduler.backfill="skip"']) == 0
    assert "slow: the reference engine simulates" in " ".join(capsys.readouterr().out.split())


def test_plan_says_so_before_it_starts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(slow_runs, "MANY", 50)
    file = write(tmp_path, SKIP.partition("[vary]")[0] + PLAN, jobs=60)
    assert cli.run(["plan", str(file), "--jobs", "1", "--out", str(tmp_path / "out")]) in (0, 3)
    assert capsys.readouterr().err.startswith("note: the reference engine simulates 1 run of 60 jobs")


def test_sample_is_extrapolated_by_its_growth() -> None:
    assert slow_runs.extrapolate([(50, 1.0)], 500) == 10.0
    assert slow_runs.extrapolate([(50, 0.5), (100, 1.0)], 1000) == pytest.approx(10.0)
    assert slow_runs.extrapolate([(50, 0.25), (100, 1.0)], 1000) == pytest.approx(100.0)
    assert slow_runs.extrapolate([], 1000) == 0.0
