"""`poolwise simulate`: one run."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from poolwise.cli.examples import TICKS, examples
from poolwise.cli.run_options import RunOptions, ScopeChoice
from poolwise.cli.run_output import EngineName, OutputOptions, measured, write_schedule
from poolwise.cli.units import check_sample, interval

if TYPE_CHECKING:
    from poolwise.files.component import Component
    from poolwise.studies.cells import Cell


def simulate(
    trace: Path | None = typer.Argument(
        None, help="SWF, sacct, any table (CSV, Parquet; plain or .gz), catalog:NAME, or a folder of `poolwise snapshot`."
    ),
    machine: Path | None = typer.Option(None, help="MACHINE.toml, or the name of a shipped machine."),
    processors: int | None = typer.Option(None, min=1, max=2**40, help="Instead of a machine: N processors without memory."),
    order: str | None = typer.Option(
        None, help="Queue order: a name from `poolwise list orders`, FILE.py:NAME or MODULE:NAME.", show_default="fcfs"
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
    map_: str | None = typer.Option(
        None, "--map", metavar="FIELD=COLUMN:UNIT,...", help="Columns of any table: submit=submit_time:10s, memory=mem_gb:GB."
    ),
    strict: bool = typer.Option(False, "--strict", help="Stop at the first row that cannot be read."),
    closed_loop: bool = typer.Option(
        False, "--closed-loop", help="Submit each job when its predecessor is over and its user has thought (SWF)."
    ),
    seed: int = typer.Option(
        0, min=0, help="Seed of all that is drawn: sensitivities to remote memory, random units, arrivals."
    ),
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
    metric: list[str] = typer.Option(
        [], help="A metric beside those that are registered: FILE.py:NAME or MODULE:NAME; may be given several times."
    ),
    set_: list[str] = typer.Option(
        [],
        "--set",
        metavar="KEY=VALUE",
        help="Replace a value of the run, such as workload.jobs=100; a bare KEY is a setting of the placement.",
    ),
    unsaid: str = typer.Option("1h", help="For a folder of `poolwise snapshot`: how long jobs run that do not say it."),
    run: Path | None = typer.Option(
        None, help="Instead of a trace and what runs on it: a recorded run, FILE.provenance.json of an earlier one."
    ),
) -> None:
    """Run a trace once under one scheduler and print its metrics."""
    from poolwise.cli.from_state import simulate_state
    from poolwise.files.component import Component
    from poolwise.files.state import is_state

    output = OutputOptions(engine, json, schedule, timeline, interval(sample))
    options = RunOptions(
        trace=trace,
        machine=machine,
        processors=processors,
        order=order,
        backfill=backfill,
        placement=placement,
        scope=scope,
        scheduler=scheduler,
        format=format,
        map=map_,
        strict=strict,
        closed_loop=closed_loop,
        seed=seed,
        table=tuple(table),
        affinity=affinity,
        affinity_kind=affinity_kind,
        prices=prices,
        power=power,
        types=types,
        inter_arrival=inter_arrival,
        contended=contended,
        set_=tuple(set_),
    )
    asked = tuple(Component(name=name).beside(Path()) for name in metric)
    if trace is not None and is_state(trace):
        simulate_state(trace, options, unsaid, output, asked)
    elif run is None:
        _simulate(options.cell(), options.files(), output, asked)
    else:
        cell, metrics = _recorded(run, options)
        _simulate(cell, [run], output, tuple(dict.fromkeys((*metrics, *asked))))


def _recorded(reference: Path, options: RunOptions) -> tuple[Cell, tuple[Component, ...]]:
    """Set a recorded run up again, changed by --set and nothing else; and what it was measured by."""
    from poolwise.cli.saved_run import recorded
    from poolwise.errors import InputError

    if options != RunOptions(None, set_=options.set_):
        raise InputError("a recorded run says what runs on what", field="--run", remedy="change it with --set KEY=VALUE")
    return recorded(reference, options.set_)


def _simulate(cell: Cell, files: list[Path], output: OutputOptions, metrics: tuple[Component, ...]) -> None:
    """Run a cell that was read from files; write and print what is asked for."""
    from poolwise.atomic_write import check_writable
    from poolwise.cli.console import err
    from poolwise.cli.output import print_json, write_provenance
    from poolwise.cli.progress import ConsoleWatch
    from poolwise.engines import simulate
    from poolwise.engines.order_contract import check_order_contract
    from poolwise.studies.cells import workload_of
    from poolwise.studies.description import Configured

    check_sample(cell.machine, output.sample)
    for path in (output.schedule, output.timeline):
        if path is not None:
            check_writable(path)
    what, asked = Configured.of(cell), [choice.make("metrics") for choice in metrics]
    with ConsoleWatch(err, f"reading {Path(cell.trace.path).name}") as watch:
        promises = check_order_contract(what.scheduler, cell.machine, workload_of(cell))
        result = simulate(
            cell.machine,
            workload_of(cell),
            what.scheduler,
            truth=what.truth,
            estimate=what.estimate,
            seed=cell.seed,
            engine=output.engine.value,
            pass_per_event=cell.scheduler.pass_per_event,
            watch=watch,
        )
    content = measured(result, asked, output, promises)
    if output.schedule is not None:
        write_schedule(result.schedule, output.schedule)
        write_provenance(output.schedule, _source(cell, files, output.schedule.parent, output.engine, metrics))
    if output.timeline is not None:
        from poolwise.report.timeline import write_timeline  # drawing is slow to import

        write_timeline(result.schedule, output.timeline)
        write_provenance(output.timeline, _source(cell, files, output.timeline.parent, output.engine, metrics))
    if content is not None:
        print_json({**content, "provenance": _source(cell, files, Path(), output.engine, metrics)})


def _source(cell: Cell, files: list[Path], folder: Path, engine: EngineName, metrics: tuple[Component, ...]) -> dict[str, Any]:
    """Where a result in a folder comes from: version, command, the whole run, and what was asked for beside its metrics."""
    from poolwise.cli.output import provenance
    from poolwise.studies.description import describe, describe_metrics

    asked = {"metrics": describe_metrics(metrics, folder)} if metrics else {}
    return {**provenance(cell.seed, files), **describe(cell, folder), "engine": engine.value, **asked}


def register(app: typer.Typer) -> None:
    """Add the command."""
    lines = [
        "poolwise simulate catalog:cerit-2013.swf.gz --machine cerit-racks",
        "poolwise simulate catalog:cerit-2013.swf.gz --machine cerit-racks --order fm",
        f"poolwise simulate catalog:example-ticks.csv --machine perlmutter-like {TICKS}",
    ]
    app.command(epilog=examples(*lines))(simulate)
