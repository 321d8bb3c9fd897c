"""`poolwise simulate`: one run."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from poolwise.cli.units import Inputs, interval, placement_of, print_summary

if TYPE_CHECKING:
    from poolwise.engine.simulate import Engine
    from poolwise.interfaces import PerformanceModel, Scheduler
    from poolwise.model import Machine, Schedule


class Scope(StrEnum):
    """Which pools a node may use."""

    RACK = "rack"
    SYSTEM = "system"


class EngineName(StrEnum):
    """Which engine runs."""

    AUTO = "auto"
    REFERENCE = "reference"
    COMPILED = "compiled"


def simulate(
    trace: Path = typer.Argument(help="SWF (plain or .gz), a table (CSV, Parquet), or catalog:NAME."),
    machine: Path | None = typer.Option(None, help="MACHINE.toml, or the name of a shipped machine."),
    processors: int | None = typer.Option(None, min=1, help="Instead of a machine: N processors without memory."),
    order: str | None = typer.Option(
        None, help="Queue order: a name from `poolwise list orders`, FILE.py:NAME or MODULE:NAME."
    ),
    backfill: str | None = typer.Option(
        None, help="none, easy, easy_no_extra, conservative, or FILE.py:NAME.", show_default="easy"
    ),
    placement: str | None = typer.Option(
        None, help="Placement policy: a name from `poolwise list placements`, or FILE.py:NAME.", show_default="racks"
    ),
    scope: Scope | None = typer.Option(None, help="A node may use its own rack's pool, or any (system).", show_default="rack"),
    scheduler: str | None = typer.Option(
        None, help="Instead of these four: SCHEDULER.toml, or catalog:NAME (`poolwise list schedulers`)."
    ),
    engine: EngineName = typer.Option(EngineName.AUTO, help="auto takes the fastest engine that can run this."),
    format: str = typer.Option("auto", help="Format of the trace: a name from `poolwise list formats`."),
    seed: int = typer.Option(0, help="Seed of all that is drawn: sensitivities to remote memory, random units, arrivals."),
    json: bool = typer.Option(False, "--json", help="Print exactly one JSON object."),
    schedule: Path | None = typer.Option(
        None, help="Write a row a job as CSV or .parquet: id, submit_ns, start_ns, ..."
    ),
    table: list[str] = typer.Option([], metavar="KIND=FILE", help="Performance table of a kind on shared devices (CSV)."),
    timeline: Path | None = typer.Option(None, help="Write the run as Chrome trace events (JSON) for Perfetto."),
    affinity: Path | None = typer.Option(None, help="vinesim: operations per microsecond, unit types x task types."),
    affinity_kind: str = typer.Option("absolute", help="vinesim: absolute, or relative (factors of the INT column)."),
    prices: Path | None = typer.Option(None, help="vinesim: price of each unit type."),
    power: Path | None = typer.Option(None, help="vinesim: watts, unit types x task types, then idle."),
    types: Path | None = typer.Option(None, help="vinesim: further names of unit types and task types (TOML)."),
    inter_arrival: str | None = typer.Option(
        None, help="vinesim: time between jobs: 7us, exponential(7us), uniform(1us, 13us)."
    ),
    contended: bool = typer.Option(False, "--contended", help="vinesim: transfers share the links, max-min fairly."),
    sample: str | None = typer.Option(None, help="vinesim: interval of the utilisation's time series, such as 10us; -1: none."),
    set_: list[str] = typer.Option([], "--set", metavar="KEY=VALUE", help="vinesim: a setting of the placement."),
) -> None:
    """Run a trace once under one scheduler and say what came of it."""
    from poolwise import api, catalog, traces
    from poolwise.cli.console import warn
    from poolwise.cli.output import print_json, print_run, provenance, write_provenance
    from poolwise.files import check_writable
    from poolwise.timeline import write_timeline

    for path in (schedule, timeline):
        if path is not None:
            check_writable(path)
    if format == "vinesim":
        listing = {"order": order, "backfill": backfill, "scope": scope, "scheduler": scheduler}
        other = {**listing, "processors": processors, "table": table}
        _refuse({name: value for name, value in other.items() if value}, "does not apply to --format vinesim")
        units = Inputs.found(
            trace=trace,
            machine=machine,
            affinity=affinity,
            affinity_kind=affinity_kind,
            prices=prices,
            power=power,
            types=types,
            inter_arrival=inter_arrival,
            contended=contended,
            seed=seed,
        )
        return _dispatch(units, placement or "high", set_, interval(sample), engine.value, json, schedule, timeline)
    own: dict[str, object] = {
        "affinity": affinity,
        "prices": prices,
        "power": power,
        "types": types,
        "inter-arrival": inter_arrival,
    }
    own.update(contended=contended, sample=sample, set=set_)
    _refuse({name: value for name, value in own.items() if value}, "needs --format vinesim")
    truth = _sharing(table) if table else None
    what = chosen_machine(machine, processors)
    chosen, pass_per_event = _chosen_scheduler(scheduler, order, backfill, placement, scope)
    trace = catalog.resolve("traces", trace)
    workload = traces.read(trace, what, format=format)
    run = api.simulate(
        workload,
        what,
        scheduler=chosen,
        truth=truth,
        seed=seed,
        engine_name=engine.value,
        pass_per_event=pass_per_event,
    )
    for note in run.notes:
        warn(note)
    files = [*([_machine_file(machine)] if machine is not None else []), *([_scheduler_file(scheduler)] if scheduler else [])]
    tables = [catalog.resolve("sharing_tables", text.partition("=")[2]) for text in table]
    source = provenance(seed, [trace, *files, *tables])
    if schedule is not None:
        _write_schedule(run.schedule, schedule)
        write_provenance(schedule, source)
    if timeline is not None:
        write_timeline(run.schedule, timeline)
        write_provenance(timeline, source)
    if json:
        print_json({**run.to_dict(), "provenance": source})
    else:
        print_run(run)


def _refuse(options: dict[str, object], why: str) -> None:
    """Raise InputError for the first of these options."""
    from poolwise.errors import InputError

    for name in options:
        raise InputError(f"--{name} {why}", field=f"--{name}", remedy="see `poolwise simulate --help`")


def _dispatch(
    inputs: Inputs,
    placement: str,
    settings: list[str],
    sample: int | None,
    engine: Engine,
    json: bool,
    schedule: Path | None,
    timeline: Path | None,
) -> None:
    """Run tasks on processing units."""
    from poolwise.cli.console import warn
    from poolwise.cli.output import print_json, provenance, write_provenance
    from poolwise.engine import simulate as simulate_engine
    from poolwise.metrics.dispatch import summarise_dispatch
    from poolwise.schedulers.dispatch import Dispatch
    from poolwise.timeline import write_timeline

    scheduler, case = Dispatch(placement_of(placement, settings)), inputs.read()
    result = simulate_engine(
        case.machine, case.workload, scheduler, truth=case.model, estimate=case.estimate, seed=inputs.seed, engine=engine
    )
    record, source = result.schedule, provenance(inputs.seed, inputs.files())
    content = {
        **summarise_dispatch(record, sample),
        "excluded": dict(record.workload.excluded),
        "repaired": dict(record.workload.repaired),
        "waiting": len(record.waiting),
        "passes": record.passes,
        "engine": result.engine,
        "wall_s": result.wall_s,
    }
    for reason, count in record.workload.repaired.items():
        warn(f"{count} tasks: {reason}")
    if schedule is not None:
        _write_schedule(record, schedule)
        write_provenance(schedule, source)
    if timeline is not None:
        write_timeline(record, timeline)
        write_provenance(timeline, source)
    if json:
        print_json({**content, "provenance": source})
    else:
        print_summary(content, f"{record.workload.name} on {record.machine.name}")


def _chosen_scheduler(
    file: str | None, order: str | None, backfill: str | None, placement: str | None, scope: Scope | None
) -> tuple[Scheduler, bool]:
    """Configure what --scheduler names, or what the other options say; whether a pass follows each event."""
    from poolwise import api
    from poolwise.errors import InputError
    from poolwise.studies.cells import scheduler_of
    from poolwise.studies.scheduler_file import load_scheduler

    given = {"order": order, "backfill": backfill, "placement": placement, "scope": scope}
    if (file is None) == (order is None) or (file is not None and any(given.values())):
        twice = next((f"--{name}" for name, value in given.items() if value and file), "")
        problem = f"--scheduler says what {twice} says" if twice else "give either --order or --scheduler"
        raise InputError(
            problem, field="scheduler", remedy="--order NAME, or --scheduler FILE without the options that it replaces"
        )
    if file is not None:
        section = load_scheduler(_scheduler_file(file))
        return scheduler_of(section), section.pass_per_event
    placement = placement or "racks"
    within = (scope or Scope.RACK).value if placement == "racks" else None
    return api.list_scheduler(order or "fcfs", backfill or "easy", placement, within), False


def _scheduler_file(reference: str) -> Path:
    from poolwise import catalog

    return catalog.resolve("schedulers", reference)


def _sharing(tables: list[str]) -> PerformanceModel:
    """Devices shared as performance tables say, KIND=FILE each."""
    from poolwise.errors import InputError
    from poolwise.performance.nvme_sharing import NvmeSharing
    from poolwise.performance.sharing_table import SharingTable

    pairs = [text.partition("=") for text in tables]
    for kind, equals, file in pairs:
        if not (kind and equals and file):
            raise InputError(f"'{kind}{equals}{file}' is not KIND=FILE", field="table", remedy="such as --table fio=fio.csv")
    return NvmeSharing({kind: SharingTable.read(file) for kind, _, file in pairs})


def chosen_machine(path: Path | None, processors: int | None) -> Machine:
    """Load the machine that --machine or --processors names; raises InputError unless it is one of them."""
    from poolwise.errors import InputError
    from poolwise.model import Machine
    from poolwise.studies.machine_file import load_machine

    if (path is None) == (processors is None):
        raise InputError(
            "give either --machine or --processors", field="machine", remedy="--machine MACHINE.toml, or --processors N"
        )
    if processors is not None:
        return Machine.flat(processors)
    assert path is not None
    return load_machine(_machine_file(path))


def _machine_file(path: Path) -> Path:
    """Path of a machine file, or of a shipped machine by its name."""
    from poolwise import catalog

    if path.suffix or path.exists():
        return path
    return catalog.find("machines", str(path).removeprefix(catalog.PREFIX))


def _write_schedule(record: Schedule, path: Path) -> None:
    """One row a job that ran, CSV or Parquet; the placement as `Schedule.placements` writes it."""
    from poolwise.cli.output import write_rows

    ids, submits = record.workload.id.tolist(), record.workload.submit.tolist()
    jobs, starts, ends, finished = record.job.tolist(), record.start.tolist(), record.end.tolist(), record.finished.tolist()
    placements = record.placements()
    order = sorted(range(record.n_run), key=lambda k: (jobs[k], starts[k]))
    rows = [[ids[jobs[k]], submits[jobs[k]], starts[k], ends[k], placements[k]] for k in order if finished[k]]
    write_rows(path, ["id", "submit_ns", "start_ns", "end_ns", "placement"], rows)


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(simulate)
