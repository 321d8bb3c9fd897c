"""`poolwise simulate`: one run."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from poolwise.cli.one_run import ScopeChoice
from poolwise.cli.units import interval, print_summary

if TYPE_CHECKING:
    from poolwise.cli.one_run import OneRun
    from poolwise.engines.simulate import Engine
    from poolwise.model import Schedule


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
    scope: ScopeChoice | None = typer.Option(
        None, help="A node may use its own rack's pool, or any (system).", show_default="rack"
    ),
    scheduler: str | None = typer.Option(
        None, help="Instead of these four: SCHEDULER.toml, or catalog:NAME (`poolwise list schedulers`)."
    ),
    engine: EngineName = typer.Option(EngineName.AUTO, help="auto takes the fastest engine that can run this."),
    format: str = typer.Option("auto", help="Format of the trace: a name from `poolwise list formats`."),
    seed: int = typer.Option(0, help="Seed of all that is drawn: sensitivities to remote memory, random units, arrivals."),
    json: bool = typer.Option(False, "--json", help="Print exactly one JSON object."),
    schedule: Path | None = typer.Option(
        None, help="Write a row for each job as CSV or .parquet: id, submit_ns, start_ns, ..."
    ),
    table: list[str] = typer.Option([], metavar="KIND=FILE", help="Performance table of a kind on shared devices (CSV)."),
    timeline: Path | None = typer.Option(None, help="Write the run as Chrome trace events (JSON) for Perfetto."),
    affinity: Path | None = typer.Option(None, help="vinesim: operations per microsecond, unit types x task types."),
    affinity_kind: str = typer.Option("absolute", help="vinesim: absolute, or relative (factors of the INT column)."),
    prices: Path | None = typer.Option(None, help="vinesim: price of each unit type."),
    power: Path | None = typer.Option(None, help="vinesim: watts, unit types x task types, then idle."),
    types: Path | None = typer.Option(None, help="vinesim: names of further unit types and task types (TOML)."),
    inter_arrival: str | None = typer.Option(
        None, help="vinesim: time between jobs: 7us, exponential(7us), uniform(1us, 13us)."
    ),
    contended: bool = typer.Option(False, "--contended", help="vinesim: transfers share the links, max-min fairly."),
    sample: str | None = typer.Option(None, help="vinesim: interval of the utilisation's time series, such as 10us; -1: none."),
    set_: list[str] = typer.Option([], "--set", metavar="KEY=VALUE", help="vinesim: a setting of the placement."),
) -> None:
    """Run a trace once under one scheduler and print its metrics."""
    given = dict(locals())  # `explain` reads the same from a recorded command
    from poolwise import api
    from poolwise.atomic import check_writable
    from poolwise.cli.console import warn
    from poolwise.cli.one_run import set_up
    from poolwise.cli.output import print_json, print_run, provenance, write_provenance
    from poolwise.report.timeline import write_timeline

    for path in (schedule, timeline):
        if path is not None:
            check_writable(path)
    what = set_up(given)
    if format == "vinesim":
        return _dispatch(what, interval(sample), engine.value, json, schedule, timeline)
    run = api.simulate(
        what.workload,
        what.machine,
        scheduler=what.scheduler,
        truth=what.truth,
        seed=seed,
        engine_name=engine.value,
        pass_per_event=what.pass_per_event,
    )
    for note in run.notes:
        warn(note)
    source = provenance(seed, what.files)
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


def _dispatch(
    what: OneRun,
    sample: int | None,
    engine: Engine,
    json: bool,
    schedule: Path | None,
    timeline: Path | None,
) -> None:
    """Run tasks on processing units."""
    from poolwise.cli.console import warn
    from poolwise.cli.output import print_json, provenance, write_provenance
    from poolwise.engines import simulate as simulate_engine
    from poolwise.metrics.dispatch import summarise_dispatch
    from poolwise.report.timeline import write_timeline

    result = simulate_engine(
        what.machine, what.workload, what.scheduler, truth=what.truth, estimate=what.estimate, seed=what.seed, engine=engine
    )
    record, source = result.schedule, provenance(what.seed, what.files)
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


def _write_schedule(record: Schedule, path: Path) -> None:
    """Write a row for each job that ran, CSV or Parquet; the placement as `Schedule.placements` writes it."""
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
