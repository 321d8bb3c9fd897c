"""Repeated forecasts of a cluster, served as metrics until the process is stopped."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from poolwise.cli.live import require_packages

if TYPE_CHECKING:
    from poolwise.cli.live_cluster import ClusterName
    from poolwise.forecasting.answer import ForecastAnswer


def serve_forecasts(
    cluster: ClusterName, forecast: Callable[[], ForecastAnswer], port: int, every: float, seconds: float | None
) -> None:
    """Serve forecasts on a port of this host; invalid options raise before the port is opened."""
    require_packages(cluster.value)
    import threading
    import time

    from poolwise.live.control_loop import stopped_after, stopped_by_signals
    from poolwise.live.endpoints import serve_endpoints
    from poolwise.live.forecasts import ForecastMetrics, forecast_periodically
    from poolwise.live.logs import log_event, log_to

    log_to()
    metrics, stop = ForecastMetrics(), threading.Event()
    start = time.monotonic()
    metrics.show(forecast(), time.monotonic() - start)
    with (
        stopped_by_signals(stop.set),
        stopped_after(seconds, stop.set),
        serve_endpoints(metrics.registry, lambda: "", port) as (host, chosen),
    ):
        log_event("listening", host=host, port=chosen)
        forecast_periodically(forecast, metrics, every, stop)
    log_event("stopped")
