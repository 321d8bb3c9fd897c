"""`poolwise forecast`: when waiting jobs will start. Options and output that its commands share."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from poolwise.cli.app import app
from poolwise.cli.examples import command
from poolwise.cli.live import require_packages
from poolwise.cli.live_cluster import ClusterName, read_cluster_state
from poolwise.cli.output import provenance, show_answer
from poolwise.cli.panels import LOG, OUTPUT, SCHEDULER, SERVICE
from poolwise.cli.shared_options import JsonOption, OnlyOption, PartitionOption, PodSchedulerOption, SeedOption
from poolwise.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from poolwise.forecasting.answer import ForecastAnswer
    from poolwise.interfaces import Scheduler
    from poolwise.model import Machine, MachineState, Workload

forecasts = typer.Typer(
    help="Forecast when waiting jobs will start.\n\nA forecast is a distribution over simulations of possible futures.",
    no_args_is_help=True,
)


def _part(what: str, default: str | bool = True) -> Any:
    text = f"{what}, as in `poolwise simulate`."
    return typer.Option(metavar="NAME", help=text, show_default=default, rich_help_panel=SCHEDULER)


def _scheduler(what: str) -> Any:
    return typer.Option(metavar="FILE", help=f"SCHEDULER.toml or catalog:NAME; {what}.", rich_help_panel=SCHEDULER)


@dataclass(frozen=True)
class PolicyOptions:
    """Options that name the scheduler, by a file or by its parts; an option that was not given is None."""

    scheduler: Annotated[str | None, _scheduler("replaces --order, --backfill and --placement")] = None
    order: Annotated[str | None, _part("Queue order", "fcfs")] = None
    backfill: Annotated[str | None, _part("Backfilling", "easy")] = None
    placement: Annotated[str | None, _part("Placement policy")] = None

    def make(self, machine: Machine) -> tuple[Scheduler, str]:
        """Return the scheduler and a short description."""
        from poolwise.simulation import choose_scheduler

        self.check()
        return choose_scheduler(machine, self.scheduler, self.order, self.backfill, self.placement)

    def check(self) -> None:
        """Raise InputError if both a scheduler file and its parts are given."""
        if self.scheduler is not None and any((self.order, self.backfill, self.placement)):
            remedy = "give --scheduler FILE alone, or --order, --backfill and --placement"
            raise InputError("--scheduler excludes --order, --backfill and --placement", field="--scheduler", remedy=remedy)


@dataclass(frozen=True)
class StatePolicyOptions(PolicyOptions):
    """The same options for commands whose state may name a scheduler, which is then the default."""

    scheduler: Annotated[str | None, _scheduler("defaults to the scheduler of the state")] = None


@dataclass(frozen=True)
class LogFormat:
    """Options that describe the format of a log."""

    format: Annotated[
        str, typer.Option(metavar="NAME", help="Log format: a name from `poolwise list formats`.", rich_help_panel=LOG)
    ] = "auto"
    map: Annotated[
        str | None,
        typer.Option(metavar="FIELD=COLUMN:UNIT,...", help="Column mapping for any other table.", rich_help_panel=LOG),
    ] = None
    extra_columns: Annotated[
        int | None, typer.Option(min=0, help="Number of extra columns after the 18th in an SWF log.", rich_help_panel=LOG)
    ] = None

    only: OnlyOption = field(default_factory=list)

    def read(self, path: Path, machine: Machine) -> Workload:
        """Read a log, with resource requests as users wrote them if the format supports that."""
        from poolwise.forecasting.forecast import read_log

        options: dict[str, Any] = {"map": self.map, "extra_columns": self.extra_columns, "only": dict(self.only)}
        return read_log(path, machine, self.format, **{name: value for name, value in options.items() if value is not None})


@dataclass(frozen=True)
class RequestOptions:
    """Options of the forecast for a state: jobs, deadline, history and sampling."""

    job: Annotated[
        list[str], typer.Option(metavar="JOB", help="Forecast only this waiting job, by id or name; repeatable.")
    ] = field(default_factory=list)
    new: Annotated[
        str | None,
        typer.Option(
            metavar="nodes=2,memory=64GiB,time=4h",
            help="Forecast a job that is not submitted yet: nodes, memory, cores, time, user.",
        ),
    ] = None
    by: Annotated[
        str | None,
        typer.Option(
            metavar="WHEN", help='Report the probability of a start by this time: "tomorrow 08:00", "18:00", 6h, ISO.'
        ),
    ] = None
    timezone: Annotated[str, typer.Option(metavar="ZONE", help="Time zone of input and output, such as Europe/Berlin.")] = "UTC"
    samples: Annotated[int, typer.Option(min=2, help="Number of sampled futures.")] = 200
    seed: SeedOption = 0
    history: Annotated[
        Path | None,
        typer.Option(metavar="LOG", help="Log of finished jobs, to learn run times and arrivals from.", rich_help_panel=LOG),
    ] = None
    recalibrate: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Output of `forecast backtest --json`, to correct the quantiles.", rich_help_panel=OUTPUT
        ),
    ] = None
    changes: Annotated[
        bool, typer.Option(help="List changes that would start a single job earlier.", rich_help_panel=OUTPUT)
    ] = True


@dataclass(frozen=True)
class AnswerOutput:
    """Output options of a forecast for a state."""

    json: JsonOption = False
    figure: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Folder for a figure (PNG, SVG, PDF).", rich_help_panel=OUTPUT)
    ] = None
    report: Annotated[
        Path | None, typer.Option(metavar="FILE.html", help="Write the forecast as an HTML page.", rich_help_panel=OUTPUT)
    ] = None


def forecast_waiting(state: MachineState, request: RequestOptions, policy: PolicyOptions, log: LogFormat) -> ForecastAnswer:
    """Forecast the waiting jobs of a state."""
    from poolwise.forecasting.forecast import forecast

    policy.check()
    return forecast(
        state,
        request.job,
        new=request.new,
        by=request.by,
        history=None if request.history is None else log.read(request.history, state.machine),
        recalibrate=request.recalibrate,
        scheduler=policy.scheduler,
        order=policy.order,
        backfill=policy.backfill,
        placement=policy.placement,
        samples=request.samples,
        timezone=request.timezone,
        changes=request.changes,
        seed=request.seed,
    )


def show_forecast(forecast: ForecastAnswer, output: AnswerOutput, seed: int, inputs: Iterable[Path]) -> None:
    """Print a forecast as text or JSON, and write its figure and page if requested."""
    if output.figure is not None:
        from poolwise.report.figures import save

        output.figure.mkdir(parents=True, exist_ok=True)
        save(forecast.figure(), output.figure)
    answer, source = forecast.answer(), provenance(seed, inputs)
    if output.report is not None:
        from dataclasses import replace

        from poolwise.report.page import write_report

        write_report(replace(answer, provenance=source), output.report)
    content = answer.content if output.json else None
    show_answer(answer, content, source, output.report, answer.tables, "--json lists them, --job selects one")


@command(forecasts, "poolwise forecast state now --new nodes=2,memory=64GiB,time=4h")
def state(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="State directory written by `poolwise snapshot`.")],
    request: RequestOptions,
    policy: StatePolicyOptions,
    log: LogFormat,
    output: AnswerOutput,
) -> None:
    """Forecast the waiting jobs of a saved state."""
    from poolwise.files.state import FILES, read_state

    forecast = forecast_waiting(read_state(folder), request, policy, log)
    inputs = [folder / name for name in FILES if (folder / name).is_file()]
    show_forecast(forecast, output, request.seed, inputs)


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
    every: Annotated[float, typer.Option(min=0.1, help="With --port: seconds between forecasts.", rich_help_panel=SERVICE)] = (
        60.0
    )
    seconds: Annotated[
        float | None,
        typer.Option(
            min=0.0, help="With --port: stop after this many seconds; otherwise run until stopped.", rich_help_panel=SERVICE
        ),
    ] = None


@command(live, "poolwise forecast live slurm --scheduler catalog:fm-easy --job 4711")
def slurm(
    request: RequestOptions,
    policy: StatePolicyOptions,
    log: LogFormat,
    output: AnswerOutput,
    service: ServiceOptions,
    partition: PartitionOption = None,
) -> None:
    """Forecast the waiting jobs of a Slurm partition."""
    _forecast(ClusterName.SLURM, partition, request, policy, log, output, service)


@command(live, "poolwise forecast live kubernetes --port 9818 --every 60")
def kubernetes(
    request: RequestOptions,
    policy: StatePolicyOptions,
    log: LogFormat,
    output: AnswerOutput,
    service: ServiceOptions,
    name: PodSchedulerOption = "poolwise",
) -> None:
    """Forecast the waiting pods of the cluster that $KUBECONFIG names."""
    _forecast(ClusterName.KUBERNETES, name, request, policy, log, output, service)


def _forecast(
    cluster: ClusterName,
    part: str | None,
    request: RequestOptions,
    policy: StatePolicyOptions,
    log: LogFormat,
    output: AnswerOutput,
    service: ServiceOptions,
) -> None:
    def forecast() -> ForecastAnswer:
        return forecast_waiting(read_cluster_state(cluster, part), request, policy, log)

    if service.port is None:
        show_forecast(forecast(), output, request.seed, [])
    else:
        _serve(cluster, forecast, service.port, service)


def _serve(cluster: ClusterName, forecast: Callable[[], ForecastAnswer], port: int, service: ServiceOptions) -> None:
    """Serve forecasts on a port of this host; invalid options raise an error before the port is opened."""
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
        stopped_after(service.seconds, stop.set),
        serve_endpoints(metrics.registry, lambda: "", port),
    ):
        forecast_periodically(forecast, metrics, service.every, stop)
    log_event("stopped")


forecasts.add_typer(live, name="live")
app.add_typer(forecasts, name="forecast")
