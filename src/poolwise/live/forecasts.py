"""Forecasts of a cluster as metrics, made again and again: when each waiting job starts, for dashboards and alerts."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable

import numpy as np
from prometheus_client import CollectorRegistry, Gauge

from poolwise.errors import PoolwiseError
from poolwise.forecasting.answer import ASKED, ForecastAnswer
from poolwise.live.logs import say
from poolwise.units import SECOND

MOST = 200
"""Jobs that have series of their own, those that start first."""


class ForecastMetrics:
    """The last forecast, in a registry of its own.

    Attributes
    ----------
    registry : what `endpoints.serving` shows
    """

    def __init__(self) -> None:
        self.registry = at = CollectorRegistry()
        of_job, of_all = ["job", "chance"], ["chance"]
        self._start = Gauge(
            "poolwise_forecast_start_timestamp_seconds", "Before when a job starts with a chance", of_job, registry=at
        )
        self._wait = Gauge(
            "poolwise_forecast_wait_seconds",
            "Until a job starts with a chance, the median of all that wait",
            of_all,
            registry=at,
        )
        self._jobs = Gauge("poolwise_forecast_jobs", "Jobs that wait", registry=at)
        self._never = Gauge("poolwise_forecast_never_jobs", "Jobs that will not start as far as can be foreseen", registry=at)
        self._seen = Gauge("poolwise_forecast_timestamp_seconds", "When the cluster was seen", registry=at)
        self._took = Gauge("poolwise_forecast_duration_seconds", "How long the forecast took", registry=at)

    def show(self, answer: ForecastAnswer, seconds: float) -> None:
        """Show a forecast in place of the last one; `seconds` is how long it took."""
        now = answer.now / SECOND
        waits = np.array([job.wait_s for job in answer.jobs]).reshape(-1, len(ASKED))
        self._start.clear()
        self._wait.clear()
        for k, chance in enumerate(map(str, ASKED)):
            for job, wait in list(zip(answer.jobs, waits[:, k].tolist(), strict=True))[:MOST]:
                if np.isfinite(wait):
                    self._start.labels(job.name.removeprefix("job "), chance).set(now + wait)
            if len(waits):
                self._wait.labels(chance).set(float(np.median(waits[:, k])))
        self._jobs.set(len(answer.jobs))
        self._never.set(int(np.isinf(waits[:, len(ASKED) // 2]).sum()))
        self._seen.set(now)
        self._took.set(seconds)


def forecast_again_and_again(
    look: Callable[[], ForecastAnswer], metrics: ForecastMetrics, every: float, stop: threading.Event
) -> None:
    """Look at a cluster every so many seconds and show its forecast, until `stop` is set.

    A cluster that does not answer is looked at again: the last forecast stays, and its time says how old it is.
    """
    pause = every
    while not stop.wait(pause):
        begun = time.monotonic()
        try:
            answer = look()
        except PoolwiseError as error:
            say("silent", logging.WARNING, why=str(error))
        else:
            metrics.show(answer, time.monotonic() - begun)
        pause = max(every - (time.monotonic() - begun), 0.0)
