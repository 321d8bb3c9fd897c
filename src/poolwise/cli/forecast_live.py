"""`poolwise forecast live`: the waiting jobs of a cluster, once or continuously as metrics."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer

from poolwise.cli.cluster_options import PartitionOption, PodSchedulerOption
from poolwise.cli.examples import examples
from poolwise.cli.forecast import (
    AnswerOutput,
    LogFormat,
    PolicyOptions,
    QuestionOptions,
    forecast_waiting,
    forecasts,
    show_forecast,
)
from poolwise.cli.live_cluster import ClusterName, read_cluster_state
from poolwise.cli.option_groups import expand
from poolwise.cli.panels import SERVICE

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


@expand
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


@expand
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
    from poolwise.forecasting.answer import ForecastAnswer

    def forecast() -> ForecastAnswer:
        return forecast_waiting(read_cluster_state(cluster, part), question, policy, log)

    if service.port is None:
        show_forecast(forecast(), output, question.seed, [])
        return
    from poolwise.cli.forecast_metrics import serve_forecasts

    serve_forecasts(cluster, forecast, service.port, service.every, service.seconds)


def register(app: typer.Typer) -> None:
    """Register the commands."""
    live.command("slurm", epilog=examples("poolwise forecast live slurm --scheduler catalog:fm-easy --job 4711"))(slurm)
    live.command("kubernetes", epilog=examples("poolwise forecast live kubernetes --port 9818 --every 60"))(kubernetes)
    forecasts.add_typer(live, name="live")
