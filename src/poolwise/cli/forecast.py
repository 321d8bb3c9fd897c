"""`poolwise forecast`: when waiting jobs will start, what would change it, and how good such forecasts are on a log."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from poolwise.cli.examples import examples
from poolwise.cli.live_cluster import ClusterName, see

if TYPE_CHECKING:
    from poolwise.forecasting.answer import ForecastAnswer
    from poolwise.forecasting.backtest import Backtest
    from poolwise.interfaces import Scheduler
    from poolwise.model import Machine, MachineState, Workload


@dataclass(frozen=True)
class PolicyOptions:
    """Which scheduler decides: a file, or its parts by name. What is None was not given."""

    scheduler: str | None
    order: str | None
    backfill: str | None
    placement: str | None

    def make(self, machine: Machine, known: str = "") -> tuple[Scheduler, str]:
        """Make the scheduler, and say in a few words which it is; `known` is the one that a state names."""
        from poolwise import api
        from poolwise.cli.live import named_scheduler
        from poolwise.errors import InputError

        parts = (self.order, self.backfill, self.placement)
        if self.scheduler is not None and any(parts):
            remedy = "give --scheduler FILE alone, or --order, --backfill and --placement"
            raise InputError("--scheduler says what the other options say", field="--scheduler", remedy=remedy)
        named = self.scheduler or ("" if any(parts) else known)
        if named:
            return named_scheduler(named), named
        default = "racks" if "nodes" in machine.resources else "first_fit"
        order, backfill, placement = self.order or "fcfs", self.backfill or "easy", self.placement or default
        return api.list_scheduler(order, backfill, placement), f"{order} with {backfill}"


def forecast(
    state: Path | None = typer.Argument(None, help="State directory, as `poolwise snapshot ... --out` writes it."),
    live: ClusterName | None = typer.Option(None, help="Instead of a state: a cluster, as it is now."),
    partition: str | None = typer.Option(None, help="With --live: the partition; the cluster's default if not given."),
    job: list[str] = typer.Option([], help="Only this waiting job, by id or name; may be given several times."),
    new: str | None = typer.Option(
        None, metavar="nodes=2,memory=64GiB,time=4h", help="A job that is not yet submitted: nodes, memory, cores, time, user."
    ),
    by: str | None = typer.Option(None, metavar="WHEN", help='Chance to start by then: "tomorrow 08:00", "18:00", 6h, ISO.'),
    history: Path | None = typer.Option(None, help="Log of jobs that ended before: runtimes and arrivals are learned from it."),
    recalibrate: Path | None = typer.Option(None, help="What `--backtest LOG --json` printed: corrects the quantiles."),
    backtest: Path | None = typer.Option(None, help="Instead of a state: a log on which forecasts are tried."),
    processors: int | None = typer.Option(None, min=1, max=2**40, help="With --backtest: N processors without memory."),
    machine: str | None = typer.Option(None, help="With --backtest: MACHINE.toml, or the name of a shipped machine."),
    scheduler: str | None = typer.Option(None, help="SCHEDULER.toml or catalog:NAME, instead of the one that the state names."),
    order: str | None = typer.Option(None, help="Queue order, as in `poolwise simulate`.", show_default="fcfs"),
    backfill: str | None = typer.Option(None, help="Backfilling, as in `poolwise simulate`.", show_default="easy"),
    placement: str | None = typer.Option(None, help="Placement policy, as in `poolwise simulate`."),
    format: str = typer.Option("auto", help="Format of the log."),
    map_: str | None = typer.Option(None, "--map", metavar="FIELD=COLUMN:UNIT,...", help="Columns of any table."),
    extra_columns: int | None = typer.Option(None, min=0, help="Columns beyond the 18th of an SWF log."),
    samples: int | None = typer.Option(None, min=2, help="Versions of what may come.", show_default="200; 60 with --backtest"),
    instants: int = typer.Option(60, min=5, help="With --backtest: times at which forecasts are made."),
    timezone: str = typer.Option("UTC", help="Zone in which times are read and written: Europe/Berlin."),
    changes: bool = typer.Option(True, help="Say what would change the start of a single job."),
    figure: Path | None = typer.Option(None, help="Folder for a figure of the forecast (PNG, SVG, PDF)."),
    report: Path | None = typer.Option(None, help="Write the answer as an HTML page."),
    port: int | None = typer.Option(
        None, min=0, max=65535, help="With --live: forecast again and again, and serve it as /metrics on this port of the host."
    ),
    every: float = typer.Option(60.0, min=0.1, help="With --port: seconds between forecasts."),
    seconds: float | None = typer.Option(None, min=0.0, help="With --port: end after so many seconds; else run until stopped."),
    seed: int = typer.Option(0, min=0, help="Seed of all that is drawn."),
    json: bool = typer.Option(False, "--json", help="Print exactly one JSON object."),
) -> None:
    """Forecast when waiting jobs start, as a distribution: replays of many versions of what may come."""
    from poolwise.errors import InputError

    policy = PolicyOptions(scheduler, order, backfill, placement)
    given: dict[str, Any] = {"map": map_, "extra_columns": extra_columns}
    options = {name: value for name, value in given.items() if value is not None}
    if sum(one is not None for one in (state, live, backtest)) != 1:
        raise InputError(
            "give one of a state directory, --live and --backtest LOG", field="STATE", remedy="poolwise forecast STATE"
        )
    if backtest is not None:
        _backtest(backtest, machine, processors, policy, format, options, instants, samples or 60, seed, json)
        return
    if machine is not None or processors is not None:
        raise InputError("a state has its machine", field="--machine", remedy="leave it out")

    def look() -> ForecastAnswer:
        seen = _seen(state, live, partition)
        return _answer(
            seen, job, new, by, history, recalibrate, policy, format, options, samples or 200, timezone, changes, seed
        )

    if port is not None:
        if live is None:
            raise InputError("only a cluster can be forecast again and again", field="--port", remedy="give --live slurm")
        from poolwise.cli.forecast_metrics import serve_forecasts

        serve_forecasts(live, look, port, every, seconds)
        return
    found = look()
    if figure is not None:
        from poolwise.report.figures import save

        figure.mkdir(parents=True, exist_ok=True)
        save(found.figure(), figure)
    from poolwise.cli.output import print_json, print_sentences, provenance

    source = provenance(seed, [])
    if report is not None:
        from poolwise.report.forecast import forecast_page
        from poolwise.report.page import write_page

        write_page(forecast_page(found, source), report)
    if json:
        print_json({**found.to_dict(), "provenance": source})
        return

    print_sentences(found.sentences())


def _seen(folder: Path | None, live: ClusterName | None, partition: str | None) -> MachineState:
    """Read a state directory, or a cluster once."""
    if live is not None:
        from poolwise.live.platform import LiveView

        return LiveView.of(see(live, partition)).state(f"{live.value} {partition or ''}".strip(), "")
    from poolwise.files.state import read_state

    assert folder is not None
    return read_state(folder)


def _log(path: Path, machine: Machine, format: str, options: dict[str, Any]) -> Workload:
    """Read a log with requests as users wrote them, where its format can."""
    from dataclasses import fields, is_dataclass

    from poolwise import catalog, traces

    chosen = traces.choose_format(catalog.resolve("traces", path), format, **options)
    keeps = is_dataclass(chosen) and any(one.name == "keep_requests" for one in fields(chosen))
    return traces.read(path, machine, format, **options, **({"keep_requests": True} if keeps else {}))


def _backtest(
    path: Path,
    machine: str | None,
    processors: int | None,
    policy: PolicyOptions,
    format: str,
    options: dict[str, Any],
    instants: int,
    samples: int,
    seed: int,
    json: bool,
) -> None:
    from dataclasses import replace

    from poolwise import catalog
    from poolwise.cli.output import print_json, provenance
    from poolwise.errors import InputError
    from poolwise.forecasting.backtest import Backtest, BacktestSettings
    from poolwise.forecasting.limits import with_limits
    from poolwise.model import Machine
    from poolwise.studies import load_machine

    if (machine is None) == (processors is None):
        remedy = "--machine MACHINE.toml, or --processors N"
        raise InputError("give either --machine or --processors", field="machine", remedy=remedy)
    where = Machine.flat(processors) if processors is not None else load_machine(catalog.machine(str(machine)))
    workload, said = with_limits(_log(path, where, format, options))
    deciding, name = policy.make(where)
    found = Backtest.of(where, workload, deciding, BacktestSettings(instants=instants, samples=samples, seed=seed))
    found = replace(found, notes=(*workload.notes, *said, *found.notes))
    counts = {"excluded": dict(workload.excluded), "repaired": dict(workload.repaired)}
    content = {"log": workload.name, "machine": where.name, "policy": name, **found.to_dict(), **counts}
    if json:
        print_json({**content, "provenance": provenance(seed, [catalog.resolve("traces", path)])})
    else:
        _print_backtest(content, found)


def _print_backtest(content: dict[str, Any], found: Backtest) -> None:
    from poolwise.cli.console import note
    from poolwise.cli.output import print_sentences

    def shown(name: str, percent: bool = False) -> str:
        value, between = content[name], content["intervals_90"][name]
        if value is None:
            return "not defined"
        text = f"{100 * value:.0f} %" if percent else f"{value:.2f}"
        low, high = between or (value, value)
        return f"{text} ({100 * low:.0f} to {100 * high:.0f} %)" if percent else f"{text} ({low:.2f} to {high:.2f})"

    print_sentences(
        [
            f"{content['log']} on {content['machine']} under {content['policy']}: {content['jobs']:,} forecasts of waiting "
            f"jobs at {content['instants']} times, in brackets intervals of 90 % over blocks of time",
            f"  pinball loss beside what squeue --start would say: {shown('pinball_ratio_plan')}",
            f"  beside one replay with mean runtimes, widened by past errors: {shown('pinball_ratio_calibrated')}",
            f"  starts inside the interval of 80 %: {shown('coverage_80', percent=True)}",
            f"  Brier score of 'within the hour' beside that replay: {shown('brier_ratio_1h')}",
        ]
    )
    for reason, count in (*content["excluded"].items(), *content["repaired"].items()):
        note(f"{count:,} rows: {reason}")
    for said in found.notes:
        note(said)


def _answer(
    state: MachineState,
    jobs: list[str],
    new: str | None,
    by: str | None,
    history: Path | None,
    recalibrate: Path | None,
    policy: PolicyOptions,
    format: str,
    options: dict[str, Any],
    samples: int,
    timezone: str,
    changes: bool,
    seed: int,
) -> ForecastAnswer:
    """Forecast for a state."""
    from poolwise import api
    from poolwise.forecasting.answer import forecast_answer
    from poolwise.forecasting.known_state import situation_of
    from poolwise.forecasting.limits import with_limits
    from poolwise.forecasting.question import ForecastQuestion, corrections_in, new_job, read_instant, rows_named, zone

    local = zone(timezone)
    past = None if history is None else with_limits(_log(history, state.machine, format, options))[0]
    deciding, name = policy.make(state.machine, state.scheduler)
    situation = situation_of(state, deciding, api.default_model(state.machine, seed), past)
    if new is not None:
        situation, row = new_job(situation, new)
        sought = [row]
    else:
        sought = rows_named(situation, jobs)
    corrections = None if recalibrate is None else corrections_in(recalibrate)
    until = None if by is None else read_instant(by, situation, local)
    question = ForecastQuestion(sought, until, samples, seed, changes and len(sought) == 1, corrections)
    return forecast_answer(situation, question, name, local, "the new job" if new is not None else None)


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(epilog=examples("poolwise forecast --backtest catalog:cerit-2013.swf.gz --processors 1536 --order fcfs"))(
        forecast
    )
