"""`poolwise forecast state` and `poolwise forecast backtest`."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from poolwise import simulation
from poolwise.cli.app import _discover, run
from poolwise.engines import simulate
from poolwise.files.state import write_state
from poolwise.forecasting.backtest import situation_at
from poolwise.model import Machine, MachineState
from poolwise.quantities import SECOND
from poolwise.traces import read
from tests.helpers.data import LOGS

LOG = LOGS / "hpc2n-2002.swf.gz"


@pytest.fixture(scope="module", autouse=True)
def commands() -> None:
    _discover()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Save a state in the middle of a log: 8 jobs run, some wait."""
    machine, scheduler = Machine.flat(128), simulation.list_scheduler("fcfs", "easy")
    log = read(LOG, machine, keep_requests=True)
    schedule = simulate(replace(log, attributes={"user": log.attributes["user"]}), machine, scheduler).schedule
    situation, _ = situation_at(schedule, scheduler, int(log.submit[1800]))
    situation.jobs.epoch = 1_800_000_000 * SECOND
    path = tmp_path_factory.mktemp("states") / "now"
    write_state(MachineState(machine, situation.jobs, situation.now, situation.running, situation.waiting, "a test", ""), path)
    return path


def forecast(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert run(["forecast", *words]) == 0
    return capsys.readouterr().out


def test_every_waiting_job_has_a_distribution(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ("state", str(folder), "--history", str(LOG), "--samples", "20", "--by", "tomorrow 08:00", "--json")
    answer = json.loads(forecast(capsys, *words))
    assert len(answer["jobs"]) > 50 and not answer["changes"]
    for job in answer["jobs"]:
        assert 0 <= job["wait_p10_s"] <= job["wait_p50_s"] <= job["wait_p90_s"]
        assert 0 <= job["chance_by"] <= 1
    medians = [job["wait_p50_s"] for job in answer["jobs"]]
    assert medians == sorted(medians)
    assert answer["by"].endswith("08:00:00+00:00")
    assert json.loads(forecast(capsys, *words)) == answer


def test_new_job_is_forecast_with_changes_of_its_start(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ("state", str(folder), "--new", "nodes=8,time=4h,user=3", "--samples", "20", "--by", "12h")
    assert run(["forecast", *words]) == 0
    text, notes = capsys.readouterr()
    assert text.startswith(("The new job starts between ", "The new job starts at "))
    assert "with 4 nodes instead of 8:" in text and "if the queue were served shortest job first:" in text
    assert "No completed jobs are known" in notes and "too narrow on most logs" in notes


def test_change_of_a_job_that_never_starts_has_no_difference(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = forecast(capsys, "state", str(folder), "--new", "nodes=129,time=4h", "--samples", "5")
    assert "The new job is not expected to start" in text
    line = next(line for line in text.splitlines() if "with 1 node instead of 129" in line)
    assert re.search(r": \d{4}-\d\d-\d\d \d\d:\d\d \+0000 at the median$", line)


def test_backtest_widens_a_forecast(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ("backtest", str(LOG), "--processors", "128", "--order", "fcfs", "--instants", "10", "--samples", "8", "--json")
    text = forecast(capsys, *words)
    score = json.loads(text)
    for name in ("pinball_ratio_plan", "pinball_ratio_calibrated", "coverage_80", "brier_ratio_1h"):
        assert 0 < score[name] < 2
    assert score["instants"] > 5 and score["jobs"] > 50
    (tmp_path / "backtest.json").write_text(text)
    question = ("state", str(folder), "--samples", "20", "--json")
    plain = json.loads(forecast(capsys, *question))
    better = json.loads(forecast(capsys, *question, "--recalibrate", str(tmp_path / "backtest.json")))
    width = [np.mean([job["wait_p90_s"] - job["wait_p10_s"] for job in answer["jobs"]]) for answer in (plain, better)]
    assert width[0] < width[1]


def test_figure_is_written(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    forecast(capsys, "state", str(folder), "--samples", "10", "--figure", str(tmp_path))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["forecast.pdf", "forecast.png", "forecast.svg"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--job", "unknown"], "no job unknown is waiting"),
        (["--new", "nodes=2"], "the requested time is missing"),
        (["--new", "nodes=2,time=4"], "the unit is missing"),
        (["--new", "nodes=0,time=4h"], "nodes must be at least 1"),
        (["--new", "nodes=2,nodes=3,time=4h"], "nodes is given twice"),
        (["--new", "nodes=2,time=9999999d"], "time=9999999d is too much"),
        (["--new", "nodes=99999999999999,time=4h"], "nodes=99999999999999 is too much"),
        (["--new", "wheels=2,time=4h"], "unknown part of a new job 'wheels'"),
        (["--by", "soon"], "neither a time nor a duration"),
        (["--by", "2001-01-01T00:00"], "is in the past"),
        (["--timezone", "Mars/Base"], "unknown time zone"),
        (["--recalibrate", "nothing.json"], "not the result of a backtest"),
        (["--processors", "3"], "Did you mean `poolwise forecast backtest`"),
        (["--port", "3"], "Did you mean `poolwise forecast live`"),
        (["--scheduler", "catalog:fm-easy", "--order", "fm"], "--scheduler excludes --order, --backfill and --placement"),
    ],
)
def test_invalid_options_exit_with_2(folder: Path, words: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["forecast", "state", str(folder), "--samples", "2", *words]) == 2
    assert message in " ".join(capsys.readouterr().err.split())
