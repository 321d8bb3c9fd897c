"""Forecasts for a deep queue: the runtime model and samples of the future, on one core."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from benchmarks.case import Figures, case, seconds
from benchmarks.workloads import LOCAL_MIB
from poolwise.engines import simulate
from poolwise.engines.list_scheduling.loading import load_all
from poolwise.forecasting.backtest import situation_at
from poolwise.forecasting.known_state import KnownState
from poolwise.forecasting.scenarios import RuntimeDistributions, horizon_of, plan, sample_starts
from poolwise.model import Machine, Workload
from poolwise.quantities import SECOND
from poolwise.random import uniform
from poolwise.registry import make
from poolwise.schedulers.list import ListScheduler
from poolwise.traces.generators import generate

ORDERS = ("fcfs", "sjf", "fm")
WAITING = 1_000
KNOWN = 3_000
"""Maximum number of completed jobs in the runtime model."""


def busy_weeks(jobs: int = 12_000) -> Workload:
    """Return jobs of 60 users that arrive four times as fast as 64 nodes can serve them; one in three needs pool memory."""
    load = generate("lublin", jobs=jobs, nodes=64, load=4.0)
    share, amount, user, factor = (uniform(0, f"forecast.{what}", load.id) for what in ("share", "amount", "user", "limit"))
    memory = np.where(share < 2 / 3, LOCAL_MIB, np.ceil(LOCAL_MIB * 4**amount)).astype(np.int64)
    limit = np.ceil(load.duration / SECOND * (1 + 4 * factor) / 900).astype(np.int64) * 900 * SECOND
    attributes = {**load.attributes, "user": (60 * user**2).astype(np.int64)}
    return replace(load, requested=limit, requests={**load.requests, "memory": memory}, attributes=attributes)


def deep_queue(order: str) -> KnownState:
    """Return the state after the last submission at which `WAITING` jobs wait, with the last `KNOWN` completed jobs."""
    how = ListScheduler(make("orders", order), make("backfills", "easy"))
    schedule = simulate(busy_weeks(), Machine.of_racks(4, 16, local=LOCAL_MIB, pool=64 * 16 * 1024), how).schedule
    time = int(np.sort(schedule.start)[-WAITING])
    situation, _ = situation_at(schedule, how, time)
    keep = np.ones(len(situation.jobs), dtype=np.bool_)
    keep[np.flatnonzero(situation.ended)[:-KNOWN]] = False
    row = np.cumsum(keep) - 1
    return replace(
        situation,
        jobs=situation.jobs.taken(np.flatnonzero(keep)),
        ran=situation.ran[keep],
        ended=situation.ended[keep],
        running=[run._replace(job=int(row[run.job])) for run in situation.running],
        waiting=row[situation.waiting],
    )


@case("forecast", seconds_200=("<=", 2.0), seconds_50=("<=", 0.5))
def forecast() -> Figures:
    """Benchmark 1,000 waiting jobs under FCFS, SJF and FM with EASY: the slowest of the three, with 200 and 50 samples."""
    load_all()
    figures: Figures = {}
    for order in ORDERS:
        situation = deep_queue(order)
        sought = situation.waiting
        learned, distributions = seconds(lambda s=situation: RuntimeDistributions.of(s), 3)
        mean = plan(distributions, sought, distributions.means())
        horizon = horizon_of(float((mean.max() - situation.now) / SECOND))
        figures[f"known_{order}"] = learned
        for samples in (200, 50):
            took, _ = seconds(lambda k=distributions, s=sought, n=samples, h=horizon: sample_starts(k, s, n, 0, h), 3)
            figures[f"{order}_{samples}"] = took
    slowest = {f"seconds_{n}": max(figures[f"known_{order}"] + figures[f"{order}_{n}"] for order in ORDERS) for n in (200, 50)}
    return {**slowest, **figures, "waiting": float(len(sought)), "at_work": float(len(situation.running))}
