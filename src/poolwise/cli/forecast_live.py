"""`poolwise forecast live`: the waiting jobs of a cluster, once or continuously as metrics."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from poolwise.cli.examples import command
from poolwise.cli.forecast import (
    AnswerOutput,
    LogFormat,
    PolicyOptions,
    QuestionOptions,
    forecast_waiting,
    forecasts,
    show_forecast,
)
from poolwise.cli.live import require_packages
from poolwise.cli.live_cluster import ClusterName, read_cluster_state
from poolwise.cli.panels import SERVICE
from poolwise.cli.shared_options import PartitionOption, PodSchedulerOption

if TYPE_CHECKING:
    from poolwise.cli.live_cluster import ClusterName
    from poolwise.forecasting.answer import ForecastAnswer

live = typer.Typer(help="Forecast the waiting jobs of a cluster.", no_args_is_help=True)


@dataclass(frozen=True)
class ServiceOptions:
    """Options that serve forecasts as metrics."""

    port: Annotated[
        int | None,
        typer.Option(
            min=0, max=65535, help="Repeat the forecast, and serve it as /metrics on this port.", rich_help_panel=SERVICE
        ),
    ] = None
    every: Annotated[
        float, typer.Option(min=0.1, help="With --port: seconds between two forecasts.", rich_help_panel=SERVICE)
    ] = 60.0
    seconds: Annotated[
        float | None,
        typer.Option(
            min=0.0, help="With --port: stop after this many seconds; otherwise run until stopped.", rich_help_panel=SERVICE
        ),
    ] = None


@command(live, "poolwise forecast live slurm --scheduler catalog:fm-easy --job 4711")
def slurm(
    question: QuestionOptions,
    policy: PolicyOptions,
    log: LogFormat,
    output: AnswerOutput,
    service: ServiceOptions,
    partition: PartitionOption = None,
) -> None:
    """Forecast the waiting jobs of a Slurm partition."""
    _forecast(ClusterName.SLURM, partition, question, policy, log, output, service)


@command(live, "poolwise forecast live kubernetes --port 9818 --every 60")
def kubernetes(
    question: QuestionOptions,
    policy: PolicyOptions,
    log: LogFormat,
    output: AnswerOutput,
    service: ServiceOptions,
    name: PodSchedulerOption = "poolwise",
) -> None:
    """Forecast the waiting pods of the cluster that $KUBECONFIG names."""
    _forecast(ClusterName.KUBERNETES, name, question, policy, log, output, service)


def _forecast(
    cluster: ClusterName,
    part: str | None,
    question: QuestionOptions,
    policy: PolicyOptions,
    log: LogFormat,
    output: AnswerOutput,
    service: ServiceOptions,
) -> None:

    def forecast() -> ForecastAnswer:
        return forecast_waiting(read_cluster_state(cluster, part), question, policy, log)

    if service.port is None:
        show_forecast(forecast(), output, question.seed, [])
        return

    serve_forecasts(cluster, forecast, service.port, service.every, service.seconds)


forecasts.add_typer(live, name="live")


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
