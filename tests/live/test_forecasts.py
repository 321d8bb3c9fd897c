"""Forecast metrics: the latest forecast is published, and an unresponsive cluster does not end the loop."""

from __future__ import annotations

import threading
from datetime import UTC

import numpy as np
from prometheus_client import generate_latest

from poolwise.errors import PoolwiseError
from poolwise.forecasting.answer import ForecastAnswer, JobForecast
from poolwise.live.forecasts import MAX_JOB_SERIES, ForecastMetrics, forecast_periodically


def answer(now: int, waits: list[list[float]]) -> ForecastAnswer:
    jobs = [JobForecast(f"job {k}", np.array(wait), None) for k, wait in enumerate(waits)]
    return ForecastAnswer(now * 10**9, jobs, [], None, "fcfs", [], UTC)


def series(metrics: ForecastMetrics) -> dict[str, float]:
    text = generate_latest(metrics.registry).decode()
    return {name: float(value) for name, value in (line.rsplit(" ", 1) for line in text.splitlines() if line[0] != "#")}


def test_metrics_of_ended_jobs_are_removed() -> None:
    metrics = ForecastMetrics()
    metrics.show(answer(1000, [[0.0, 10.0, 20.0], [5.0, 30.0, np.inf], [np.inf] * 3]), 0.25)
    shown = series(metrics)
    assert shown['poolwise_forecast_start_timestamp_seconds{chance="0.5",job="1"}'] == 1030.0
    assert 'poolwise_forecast_start_timestamp_seconds{chance="0.9",job="1"}' not in shown
    assert shown["poolwise_forecast_jobs"] == 3 and shown["poolwise_forecast_never_jobs"] == 1
    assert shown['poolwise_forecast_wait_seconds{chance="0.5"}'] == 30.0
    assert shown["poolwise_forecast_duration_seconds"] == 0.25
    metrics.show(answer(1060, []), 0.0)
    assert series(metrics) == {
        "poolwise_forecast_jobs": 0.0,
        "poolwise_forecast_never_jobs": 0.0,
        "poolwise_forecast_timestamp_seconds": 1060.0,
        "poolwise_forecast_duration_seconds": 0.0,
    }


def test_long_queue_has_a_limited_number_of_series() -> None:
    metrics = ForecastMetrics()
    metrics.show(answer(0, [[1.0, 2.0, 3.0]] * (MAX_JOB_SERIES + 50)), 0.0)
    assert sum("start_timestamp" in name for name in series(metrics)) == 3 * MAX_JOB_SERIES


def test_unresponsive_cluster_is_read_again() -> None:
    metrics, stop, looked = ForecastMetrics(), threading.Event(), list[int]()

    def look() -> ForecastAnswer:
        looked.append(len(looked))
        if len(looked) == 2:
            raise PoolwiseError("no answer")
        if len(looked) == 4:
            stop.set()
        return answer(len(looked), [])

    forecast_periodically(look, metrics, 0.01, stop)
    assert len(looked) == 4 and series(metrics)["poolwise_forecast_timestamp_seconds"] == 4.0
