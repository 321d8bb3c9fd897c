"""`poolwise simulate`: one run."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from poolwise.api import Run
    from poolwise.interfaces import PerformanceModel
    from poolwise.model import Machine


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
    order: str = typer.Option(..., help="Queue order: a name from `poolwise list orders`, FILE.py:NAME or MODULE:NAME."),
    backfill: str = typer.Option("easy", help="none, easy, easy_no_extra, conservative, or FILE.py:NAME."),
    placement: str = typer.Option("racks", help="Placement policy: a name from `poolwise list placements`, or FILE.py:NAME."),
    scope: Scope = typer.Option(Scope.RACK, help="A node may use its own rack's pool, or any (system)."),
    engine: EngineName = typer.Option(EngineName.AUTO, help="auto takes the fastest engine that can run this."),
    format: str = typer.Option("auto", help="Format of the trace: a name from `poolwise list formats`."),
    seed: int = typer.Option(0, help="Seed of the jobs' sensitivities to remote memory."),
    json: bool = typer.Option(False, "--json", help="Print exactly one JSON object."),
    schedule: Path | None = typer.Option(None, help="Write a row a job: id, submit_ns, start_ns, end_ns, placement."),
    table: list[str] = typer.Option([], metavar="KIND=FILE", help="Performance table of a kind on shared devices (CSV)."),
    timeline: Path | None = typer.Option(None, help="Write the run as Chrome trace events (JSON) for Perfetto."),
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
    truth = _sharing(table) if table else None
    what = chosen_machine(machine, processors)
    scheduler = api.list_scheduler(order, backfill, placement, scope.value if placement == "racks" else None)
    trace = catalog.resolve("traces", trace)
    workload = traces.read(trace, what, format=format)
    run = api.simulate(workload, what, scheduler=scheduler, truth=truth, seed=seed, engine_name=engine.value)
    for note in run.notes:
        warn(note)
    source = provenance(seed, [trace, *([_machine_file(machine)] if machine is not None else [])])
    if schedule is not None:
        _write_schedule(run, schedule)
        write_provenance(schedule, source)
    if timeline is not None:
        write_timeline(run.schedule, timeline)
        write_provenance(timeline, source)
    if json:
        print_json({**run.to_dict(), "provenance": source})
    else:
        print_run(run)


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


def _write_schedule(run: Run, path: Path) -> None:
    """CSV, one row a job that ran; the placement as rack:nodes:poolMiB joined by ';'."""
    import csv
    import io

    from poolwise.files import write_whole

    record = run.schedule
    text = io.StringIO()
    table = csv.writer(text, lineterminator="\n")
    table.writerow(["id", "submit_ns", "start_ns", "end_ns", "placement"])
    ids, submits = record.workload.id.tolist(), record.workload.submit.tolist()
    jobs, starts, ends, finished = record.job.tolist(), record.start.tolist(), record.end.tolist(), record.finished.tolist()
    placements = record.rack_placements()
    for k in sorted(range(record.n_run), key=lambda k: (jobs[k], starts[k])):
        if finished[k]:
            table.writerow([ids[jobs[k]], submits[jobs[k]], starts[k], ends[k], placements[k]])
    write_whole(path, text.getvalue().encode())


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(simulate)
