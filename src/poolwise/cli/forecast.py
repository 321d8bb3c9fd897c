"""`poolwise forecast`: when waiting jobs will start. Options and output that its commands share."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from poolwise.cli.app import app
from poolwise.cli.console import print_lines
from poolwise.cli.output import print_json, provenance
from poolwise.cli.panels import LOG, OUTPUT, SCHEDULER
from poolwise.cli.shared_options import JsonOption, SeedOption
from poolwise.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from poolwise.forecasting.answer import ForecastAnswer
    from poolwise.interfaces import Scheduler
    from poolwise.model import Machine, MachineState, Workload

forecasts = typer.Typer(
    help="Forecast when waiting jobs will start.\n\nA forecast is a distribution over simulations of possible futures.",
    no_args_is_help=True,
)


@dataclass(frozen=True)
class PolicyOptions:
    """Options that name the scheduler: a file, or its parts; None where an option was not given."""

    scheduler: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="SCHEDULER.toml or catalog:NAME; defaults to the scheduler of the state.",
            rich_help_panel=SCHEDULER,
        ),
    ] = None
    order: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="Queue order, as in `poolwise simulate`.", show_default="fcfs", rich_help_panel=SCHEDULER
        ),
    ] = None
    backfill: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="Backfilling, as in `poolwise simulate`.", show_default="easy", rich_help_panel=SCHEDULER
        ),
    ] = None
    placement: Annotated[
        str | None, typer.Option(metavar="NAME", help="Placement policy, as in `poolwise simulate`.", rich_help_panel=SCHEDULER)
    ] = None

    def make(self, machine: Machine) -> tuple[Scheduler, str]:
        """Return the scheduler and a short description."""
        from poolwise.api import choose_scheduler

        self.check()
        return choose_scheduler(machine, self.scheduler, self.order, self.backfill, self.placement)

    def check(self) -> None:
        """Raise InputError if both a scheduler file and its parts are given."""
        if self.scheduler is not None and any((self.order, self.backfill, self.placement)):
            remedy = "give --scheduler FILE alone, or --order, --backfill and --placement"
            raise InputError("--scheduler excludes --order, --backfill and --placement", field="--scheduler", remedy=remedy)


@dataclass(frozen=True)
class LogFormat:
    """Options that describe the format of a log."""

    format: Annotated[
        str, typer.Option(metavar="NAME", help="Log format: a name from `poolwise list formats`.", rich_help_panel=LOG)
    ] = "auto"
    map: Annotated[
        str | None, typer.Option(metavar="FIELD=COLUMN:UNIT,...", help="Columns of any other table.", rich_help_panel=LOG)
    ] = None
    extra_columns: Annotated[
        int | None, typer.Option(min=0, help="Number of columns after the 18th of an SWF log.", rich_help_panel=LOG)
    ] = None

    def read(self, path: Path, machine: Machine) -> Workload:
        """Read a log; where its format supports it, with resource requests as users wrote them."""
        from poolwise.api.forecasts import read_log

        given: dict[str, Any] = {"map": self.map, "extra_columns": self.extra_columns}
        return read_log(path, machine, self.format, **{name: value for name, value in given.items() if value is not None})


@dataclass(frozen=True)
class QuestionOptions:
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
        str | None, typer.Option(metavar="WHEN", help='Probability of a start by then: "tomorrow 08:00", "18:00", 6h, ISO.')
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
        Path | None, typer.Option(metavar="FILE.html", help="Write the forecast as a page.", rich_help_panel=OUTPUT)
    ] = None


def forecast_waiting(state: MachineState, question: QuestionOptions, policy: PolicyOptions, log: LogFormat) -> ForecastAnswer:
    """Forecast the waiting jobs of a state."""
    from poolwise.api import forecasts

    policy.check()
    return forecasts.forecast(
        state,
        question.job,
        new=question.new,
        by=question.by,
        history=None if question.history is None else log.read(question.history, state.machine),
        recalibrate=question.recalibrate,
        scheduler=policy.scheduler,
        order=policy.order,
        backfill=policy.backfill,
        placement=policy.placement,
        samples=question.samples,
        timezone=question.timezone,
        changes=question.changes,
        seed=question.seed,
    )


def show_forecast(found: ForecastAnswer, output: AnswerOutput, seed: int, inputs: Iterable[Path]) -> None:
    """Print a forecast as text or JSON, and write its figure and page if requested."""
    if output.figure is not None:
        from poolwise.report.figures import save

        output.figure.mkdir(parents=True, exist_ok=True)
        save(found.figure(), output.figure)
    source = provenance(seed, inputs)
    if output.report is not None:
        from dataclasses import replace

        from poolwise.report.page import write_report

        write_report(replace(found.answer(), provenance=source), output.report)
    if output.json:
        print_json(found.to_dict(), source, found.notes)
    else:
        print_lines(found.sentences())


app.add_typer(forecasts, name="forecast")
