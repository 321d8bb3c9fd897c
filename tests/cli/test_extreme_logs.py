"""Logs of one job, of no job that fits, and of blank lines: every answer is a sentence."""

from pathlib import Path

import pytest

from poolwise.cli.app import run
from tests.helpers.small_study import jobs, write

PLAN = """\
version = 1
machine = "machine.toml"

[workload]
trace = "jobs.csv"

[measure]
warm_up = 0

[plan]
kind = "pools"

[[plan.size]]
key = "machine.pool.memory.memory"
values = ["8 GiB", "32 GiB"]
price = "1 $/GiB"

[[plan.target]]
metric = "mean_bounded_slowdown"
at_most = 8.0

[plan.certainty]
over = "nothing"
"""


def call(capsys: pytest.CaptureFixture[str], *words: object) -> tuple[int, str, str]:
    """Return exit code, stdout and stderr of a command."""
    code = run([str(word) for word in words])
    return code, *capsys.readouterr()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write(tmp_path)
    (tmp_path / "plan.toml").write_text(PLAN)
    return tmp_path


def test_study_of_one_job_has_no_intervals(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "jobs.csv").write_text(jobs(1))
    words = ("run", folder / "study.toml", "--out", folder / "out", "--jobs", 1, "--set", "measure.warm_up=0")
    code, out, err = call(capsys, *words)
    assert code == 0 and "warning" not in err
    assert "too few jobs for intervals" in out and "One job gives no intervals." in out and "[-, -]" not in out


def test_plan_for_one_job_counts_in_the_singular(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "jobs.csv").write_text(jobs(1))
    code, out, err = call(capsys, "plan", folder / "plan.toml", "--out", folder / "out", "--jobs", 1)
    text = " ".join(out.split())
    assert code == 0 and "without a warm-up" in text
    assert "1 candidate misses the targets because some jobs" in " ".join(err.split())
    assert "Choose 32 GiB of pool memory in each rack for 64 $." in text and "Cost of the sized parts 64 $" in text


def test_log_of_jobs_that_never_fit(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "jobs.csv").write_text("id,submit_ns,nodes,duration_ns,memory_mib\n1,0,100,1000000000,0\n2,9,99,1000000000,0\n")
    code, out, _ = call(capsys, "simulate", folder / "jobs.csv", "--machine", folder / "machine.toml")
    assert code == 0 and "2 of 2 jobs can never run" in out and "Load 0" not in out
    assert "No job is measured" in out and "shows 1 more metric." in out
    code, _, err = call(capsys, "plan", folder / "plan.toml", "--out", folder / "out", "--jobs", 1)
    assert code == 2 and "no job finishes on the largest candidate after the warm-up" in err


def test_file_of_blank_lines_is_empty(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "jobs.csv").write_text("\n\n")
    code, _, err = call(capsys, "simulate", folder / "jobs.csv", "--machine", folder / "machine.toml")
    assert code == 2 and "the file is empty" in err


def test_pools_have_no_effect_if_no_job_needs_them(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = (f"{k},{k * 10**9},1,1000000000,100" for k in range(1, 13))
    (folder / "jobs.csv").write_text("\n".join(("id,submit_ns,nodes,duration_ns,memory_mib", *rows)) + "\n")
    code, _, err = call(capsys, "run", folder / "study.toml", "--out", folder / "out", "--jobs", 1)
    assert code == 0 and "No job needs remote memory (32 GiB), so pools have no effect." in " ".join(err.split())
