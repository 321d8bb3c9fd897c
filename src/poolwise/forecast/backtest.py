"""How good forecasts would have been on a log: at instants all over it, nothing is known of what comes later."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from poolwise.arrays import FloatArray, IntArray
from poolwise.engines import simulate
from poolwise.forecast.recalibration import LEVELS, Recalibration, chance_within, sample_quantiles
from poolwise.forecast.runtimes import JobFeatures
from poolwise.forecast.scores import brier, covered, pinball
from poolwise.forecast.situation import Situation
from poolwise.forecast.versions import LEAST, MOST, Known, features_of, plan, sample_starts
from poolwise.interfaces import Scheduler
from poolwise.model import InitialRun, Machine, Placement, Schedule, Workload
from poolwise.performance.ideal import Ideal
from poolwise.units import SECOND

ASKED = (0.1, 0.5, 0.9)
"""Levels that are scored."""
HOUR_S = 3600.0


@dataclass(frozen=True)
class BacktestSettings:
    """What is tried.

    Attributes
    ----------
    instants : times at which forecasts are made
    samples : versions of each
    jobs : waiting jobs that are asked for at each time, at most
    first, last : shares of the log's span between which the times lie
    seed : of all draws
    """

    instants: int = 60
    samples: int = 60
    jobs: int = 100
    first: float = 0.2
    last: float = 0.95
    seed: int = 0


class Scored(NamedTuple):
    """One forecast of one job: quantiles at `ASKED` and chance within the hour of each forecaster, and the truth, seconds."""

    now: IntArray
    job: IntArray
    truth: FloatArray
    plan: FloatArray
    calibrated: FloatArray
    forecast: FloatArray
    raw: FloatArray
    calibrated_chance: FloatArray
    chance: FloatArray


def situation_at(schedule: Schedule, scheduler: Scheduler, time: int) -> Situation:
    """What is known of a schedule at a time, just before what happens then."""
    workload = schedule.workload
    n = int(np.searchsorted(workload.submit, time))
    start, end = _times(schedule)
    start, end = start[:n], end[:n]
    ended, begun = end < time, start < time
    ran = np.where(ended, end - start, np.where(begun, time - start, 0))
    runs = np.flatnonzero((schedule.start < time) & (schedule.end >= time)).tolist()
    rejected = np.zeros(n, dtype=np.bool_)
    rejected[[row for row in schedule.rejected if row < n]] = True
    return Situation(
        schedule.machine,
        scheduler,
        Ideal(),
        workload.table.first(n),
        time,
        ran,
        ended,
        [InitialRun(int(schedule.job[k]), int(schedule.start[k]), _placement(schedule, k)) for k in runs],
        np.flatnonzero(~begun & ~rejected),
    )


def _times(schedule: Schedule) -> tuple[IntArray, IntArray]:
    """(n_job,) starts and ends, far in the future for jobs that never started."""
    far = np.full(len(schedule.workload), np.iinfo(np.int64).max // 2)
    start, end = far.copy(), far.copy()
    start[schedule.job], end[schedule.job] = schedule.start, schedule.end
    return start, end


def _placement(schedule: Schedule, run: int) -> Placement:
    return Placement.of([(0, *row) for row in schedule.placement_of(run)])


def forecasts(schedule: Schedule, scheduler: Scheduler, settings: BacktestSettings) -> Iterator[Scored]:
    """Forecast at instants all over a schedule, by three forecasters, each corrected by what it knew of its past."""
    workload = schedule.workload
    features = features_of(workload.table)
    start, _ = _times(schedule)
    ours, theirs = Recalibration(), Recalibration()
    for time in _instants(schedule, settings):
        situation = situation_at(schedule, scheduler, time)
        if not len(situation.waiting):
            continue
        g = np.random.default_rng([settings.seed, time])
        sought = situation.waiting
        if len(sought) > settings.jobs:
            sought = np.sort(g.choice(sought, settings.jobs, replace=False))
        known = Known.of(situation, _first(features, len(situation.jobs)))
        asked = _waits(plan(known, sought, known.requests()), time)
        mean = _waits(plan(known, sought, known.means()), time)
        horizon = int(min(max(1.5 * float(mean.max()) * SECOND, LEAST), MOST))
        raw = sample_quantiles(sample_starts(known, sought, settings.samples, settings.seed, horizon), time)
        point = np.repeat(mean[:, None], len(LEVELS), axis=1)
        better, widened = ours.correct(raw, time, start), theirs.correct(point, time, start)
        ours.remember(time, sought, raw)
        theirs.remember(time, sought, point)
        at = np.searchsorted(LEVELS, ASKED)
        yield Scored(
            np.full(len(sought), time),
            sought,
            _waits(start[sought], time),
            np.repeat(asked[:, None], len(ASKED), axis=1),
            widened[:, at],
            better[:, at],
            raw[:, at],
            chance_within(widened, HOUR_S),
            chance_within(better, HOUR_S),
        )


def _waits(starts: IntArray, now: int) -> FloatArray:
    return (np.minimum(starts, np.iinfo(np.int64).max // 2) - now) / SECOND


def _first(features: JobFeatures, n: int) -> JobFeatures:
    return JobFeatures(features.user[:n], features.nodes[:n], features.request[:n])


def _instants(schedule: Schedule, settings: BacktestSettings) -> list[int]:
    """Times at which jobs are submitted that have to wait, spread evenly over the log."""
    submit = schedule.workload.submit
    span = int(submit[-1] - submit[0])
    edges = submit[0] + np.linspace(settings.first, settings.last, settings.instants + 1) * span
    start, _ = _times(schedule)
    waited = np.flatnonzero(start > submit)
    times = np.unique(submit[waited])
    found = []
    g = np.random.default_rng(settings.seed)
    for low, high in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True):
        here = times[np.searchsorted(times, low) : np.searchsorted(times, high)]
        if len(here):
            found.append(int(here[g.integers(len(here))]) + 1)
    return found


def run_backtest(machine: Machine, workload: Workload, scheduler: Scheduler, settings: BacktestSettings) -> dict[str, float]:
    """Simulate a log, and score forecasts of it."""
    schedule = simulate(machine, workload, scheduler).schedule
    parts = list(forecasts(schedule, scheduler, settings))
    every = Scored(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))
    levels, truth = np.array(ASKED), every.truth
    loss = {
        name: float(pinball(getattr(every, name), levels, truth).mean()) for name in ("plan", "calibrated", "forecast", "raw")
    }
    happened = truth <= HOUR_S
    return {
        "pinball_ratio_plan": loss["forecast"] / loss["plan"],
        "pinball_ratio_calibrated": loss["forecast"] / loss["calibrated"],
        "pinball_ratio_raw": loss["raw"] / loss["calibrated"],
        "coverage_80": float(covered(every.forecast[:, 0], every.forecast[:, 2], truth).mean()),
        "coverage_80_calibrated": float(covered(every.calibrated[:, 0], every.calibrated[:, 2], truth).mean()),
        "coverage_80_raw": float(covered(every.raw[:, 0], every.raw[:, 2], truth).mean()),
        "brier_ratio_1h": float(brier(every.chance, happened).mean() / brier(every.calibrated_chance, happened).mean()),
        "brier_1h": float(brier(every.chance, happened).mean()),
        "within_1h": float(happened.mean()),
        "mean_wait_s": float(truth.mean()),
        "pinball_s": loss["forecast"],
        "instants": len(parts),
        "jobs": len(every.job),
    }
