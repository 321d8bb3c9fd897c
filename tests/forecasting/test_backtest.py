"""Backtests of forecasts on a log: accuracy, reproducibility, and no use of future data."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from poolwise import simulation
from poolwise.engines import simulate
from poolwise.errors import InputError
from poolwise.forecasting.backtest import Backtest, BacktestSettings, situation_at
from poolwise.forecasting.known_state import with_limits
from poolwise.forecasting.scenarios import RuntimeDistributions, sample_starts
from poolwise.model import Machine, Schedule, Workload
from poolwise.quantities import HOUR, SECOND, UNKNOWN
from poolwise.traces import read
from tests.helpers.data import LOGS

FEW = BacktestSettings(instants=16, samples=12, jobs=30)


@pytest.fixture(scope="module")
def log() -> Workload:
    return with_limits(read(LOGS / "hpc2n-2002.swf.gz", Machine.flat(128), keep_requests=True))[0]


def test_requests_are_kept_as_submitted(log: Workload) -> None:
    assert (log.requested < log.duration).mean() > 0.05
    raised = read(LOGS / "hpc2n-2002.swf.gz", Machine.flat(128))
    assert not (raised.requested < raised.duration).any()


@pytest.mark.parametrize("order", ["fcfs", "sjf", "fm"])
def test_forecasts_beat_both_reference_plans(log: Workload, order: str) -> None:
    score = Backtest.of(log, Machine.flat(128), simulation.list_scheduler(order, "easy"), FEW).to_dict()
    assert score["pinball_ratio_plan"] < 0.7
    assert score["pinball_ratio_calibrated"] < 1.05
    assert 0.65 < score["coverage_80"] < 0.95
    assert score["instants"] >= 8 and score["jobs"] > 150
    assert any("policy or on a machine other" in text for text in score["notes"])


def test_same_log_gives_same_scores(log: Workload) -> None:
    few = replace(FEW, instants=8, samples=5)
    scheduler = simulation.list_scheduler("fcfs", "easy")
    once, again = (Backtest.of(log, Machine.flat(128), scheduler, few).to_dict() for _ in range(2))
    assert once == again


def test_forecast_uses_no_future_data(log: Workload) -> None:
    """Runtimes of unfinished jobs and later jobs do not change it."""
    scheduler, machine = simulation.list_scheduler("fm", "easy"), Machine.flat(128)
    schedule = simulate(log, machine, scheduler).schedule
    time = int(log.submit[1500]) + 1
    ended = np.zeros(len(log), dtype=np.bool_)
    ended[schedule.job[schedule.end < time]] = True
    g = np.random.default_rng(3)
    duration = np.where(ended, log.duration, log.duration + 50 * HOUR)
    requested = np.where(log.submit < time, log.requested, g.integers(HOUR, 9 * HOUR, len(log)))
    other = replace(log, duration=duration, requested=requested)
    begun = schedule.start < time
    changed = replace_end(schedule, other, np.where(schedule.end < time, schedule.end, schedule.end + 50 * HOUR))
    assert begun.sum() > 1000
    all_starts = []
    for past in (schedule, changed):
        situation, _ = situation_at(past, scheduler, time)
        assert len(situation.waiting) > 10
        starts, _ = sample_starts(RuntimeDistributions.of(situation), situation.waiting, 12, 5, 24 * HOUR)
        all_starts.append(starts)
    assert np.array_equal(*all_starts)


def replace_end(schedule: Schedule, workload: Workload, end: np.ndarray) -> Schedule:
    return replace(schedule, workload=workload, end=end)


def test_log_without_requests_gets_one_common_limit(log: Workload) -> None:
    none = replace(log, requested=np.full(len(log), UNKNOWN))
    limited, notes = with_limits(none)
    assert len(np.unique(limited.requested)) == 1 and limited.requested[0] >= log.duration.max()
    assert "have no requested time" in notes[0]
    guessed, _ = with_limits(replace(log, requested=log.duration))
    assert len(np.unique(guessed.requested)) == 1


def test_machine_without_a_queue_is_rejected(log: Workload) -> None:
    with pytest.raises(InputError, match="hardly a queue to forecast"):
        Backtest.of(log, Machine.flat(100_000), simulation.list_scheduler("fcfs", "easy"), FEW)


def test_logs_of_any_format_are_read(tmp_path: Path, log: Workload) -> None:
    from poolwise.traces import write_table

    write_table(log, tmp_path / "jobs.csv")
    assert np.array_equal(read(tmp_path / "jobs.csv", Machine.flat(128)).requested, log.requested)
    assert int(log.submit[-1]) > SECOND
