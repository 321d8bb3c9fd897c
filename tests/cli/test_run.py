import subprocess
import sys

import pytest

from poolwise.cli import app as cli
from tests.helpers.kept_trials import written

SMALL = ["--set", "workload.jobs=300", "--set", "measure.warm_up=50", "--set", 'vary.scheduler.order=["fcfs", "fm"]']
SMALL += ["--set", 'vary.machine.pool.memory.memory=["192 GiB", "1 TiB"]', "--jobs", "1"]


def call(capsys, *words):
    code = cli.run([*map(str, words)])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


@pytest.fixture(scope="module")
def ran(tmp_path_factory):
    """Run a small study and return the folder with its results."""
    out = tmp_path_factory.mktemp("run") / "out"
    assert cli.run(["run", "cerit-pools", "--out", str(out), *SMALL]) == 0
    return out


@pytest.mark.long
def test_files_are_written_and_the_table_goes_to_stdout(ran, capsys):
    for name in ("results.csv", "results.parquet", "provenance.json", "report.html", "cells.sqlite"):
        assert (ran / name).stat().st_size
    assert len(written(ran)) == 4 + 2
    code, out, err = call(capsys, "run", "cerit-pools", "--out", ran, *SMALL)
    assert code == 0
    assert "Resuming: 6 of 6 runs already complete" in err and "[1/" not in err
    assert out.index("Decision") < out.index("Load 0.716: ") < out.index("rejected")
    assert "slowdown" in out and out.partition("rejected")[2].count("192 GiB") == 2 and "report.html" in out


def test_progress_without_a_terminal_is_plain_lines_on_stderr(tmp_path, capsys):
    code, out, err = call(capsys, "run", "cerit-pools", "--out", tmp_path / "o", *SMALL, "--set", "measure.baseline=false")
    assert code == 0
    assert "[1/4] scheduler.order=fcfs machine.pool.memory.memory=192 GiB seed=0 in " in err and " left\n" in err
    assert "[4/4]" in err and "\x1b" not in err + out and "[1/4]" not in out


def test_interrupt_during_the_report_keeps_completed_runs(folder, tmp_path, capsys, monkeypatch):
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("poolwise.report.page.write_report", interrupted)
    code, _, err = call(capsys, "run", folder / "study.toml", "--out", tmp_path / "o", "--jobs", "1")
    assert code == 130 and "completed runs are kept in" in err
    monkeypatch.undo()
    code, _, err = call(capsys, "run", folder / "study.toml", "--out", tmp_path / "o", "--jobs", "1")
    assert code == 0 and "runs already complete" in err and (tmp_path / "o" / "report.html").is_file()


def test_errors_are_raised_before_anything_is_written(tmp_path, capsys):
    out = tmp_path / "out"
    code, _, err = call(capsys, "run", "cerit-pools", "--out", out, "--set", "scheduler.order=fmm")
    assert code == 2 and "did you mean 'fm'" in err and not out.exists()
    code, _, err = call(capsys, "run", "cerit-pools", "--out", out, "--set", "scheduler.order")
    assert code == 2 and "KEY=VALUE" in err and not out.exists()
    code, _, err = call(capsys, "run", "cerit-poools", "--out", out)
    assert code == 2 and "did you mean 'cerit-pools'" in err and not out.exists()


def test_unusable_out_folder_exits_with_2(tmp_path, capsys):
    (tmp_path / "file").write_text("kept")
    code, out, err = call(capsys, "run", "cerit-pools", "--out", tmp_path / "file", *SMALL)
    assert (code, out) == (2, "") and "cannot write results" in err
    assert [path.name for path in tmp_path.iterdir()] == ["file"] and (tmp_path / "file").read_text() == "kept"


def test_the_command_line_starts_without_heavy_imports():
    heavy = {"numpy", "polars", "pydantic", "numba", "rich.progress", "hashlib"}
    code = f"import sys; from poolwise.cli import app; app._discover(); print({heavy!r} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
