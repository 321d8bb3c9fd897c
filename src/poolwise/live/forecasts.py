"""Prometheus metrics of start-time forecasts, refreshed at an interval for dashboards and alerts."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from functools import partial

import numpy as np
from prometheus_client import CollectorRegistry, Gauge

from poolwise.errors import PoolwiseError
from poolwise.forecasting.answer import ASKED, ForecastAnswer
from poolwise.live.logs import log_event
from poolwise.quantities import SECOND

MAX_JOB_SERIES = 200  # number of jobs with series of their own: those expected to start first


class ForecastMetrics:
    """The latest forecast, in its own registry."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        gauge = partial(Gauge, registry=self.registry)
        start = "Time by which a job starts with this probability"
        self._start = gauge("poolwise_forecast_start_timestamp_seconds", start, ["job", "chance"])
        median = "Median over all waiting jobs of the time until a job starts with this probability"
        self._wait = gauge("poolwise_forecast_wait_seconds", median, ["chance"])
        self._jobs = gauge("poolwise_forecast_jobs", "Waiting jobs")
        self._never = gauge("poolwise_forecast_never_jobs", "Waiting jobs without a foreseeable start")
        self._seen = gauge("poolwise_forecast_timestamp_seconds", "Time at which the cluster was read")
        self._took = gauge("poolwise_forecast_duration_seconds", "Time needed to compute the forecast")

    def show(self, answer: ForecastAnswer, seconds: float) -> None:
        """Replace the published forecast; `seconds` is the time that it took to compute."""
        now = answer.now / SECOND
        waits = np.array([job.wait_s for job in answer.jobs]).reshape(-1, len(ASKED))
        self._start.clear()
        self._wait.clear()
        for k, chance in enumerate(map(str, ASKED)):
            for job, wait in list(zip(answer.jobs, waits[:, k].tolist(), strict=True))[:MAX_JOB_SERIES]:
                if np.isfinite(wait):
                    self._start.labels(job.name.removeprefix("job "), chance).set(now + wait)
            if len(waits):
                self._wait.labels(chance).set(float(np.median(waits[:, k])))
        self._jobs.set(len(answer.jobs))
        self._never.set(int(np.isinf(waits[:, len(ASKED) // 2]).sum()))
        self._seen.set(now)
        self._took.set(seconds)


def forecast_periodically(
    look: Callable[[], ForecastAnswer], metrics: ForecastMetrics, every: float, stop: threading.Event
) -> None:
    """Publish the forecast that `look` returns at an interval (s) until `stop` is set.

    If the cluster does not respond, the previous forecast stays published; its timestamp shows its age.
    """
    pause = every
    while not stop.wait(pause):
        begun = time.monotonic()
        try:
            answer = look()
        except PoolwiseError as error:
            log_event("controller_unreachable", logging.WARNING, why=str(error))
        else:
            metrics.show(answer, time.monotonic() - begun)
        pause = max(every - (time.monotonic() - begun), 0.0)
