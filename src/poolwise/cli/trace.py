"""`poolwise trace`: describe traces and convert them between formats."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from poolwise.cli.examples import TICKS, examples

if TYPE_CHECKING:
    from poolwise.model import Machine
    from poolwise.traces import TraceFormat

commands = typer.Typer(help="Inspect traces and convert them.", no_args_is_help=True)


class ConvertTarget(StrEnum):
    """What to convert to."""

    TABLE = "table"
    SWF = "swf"


class MemoryChoice(StrEnum):
    """Which column gives the memory of a job in SWF and sacct."""

    BOTH = "used-then-requested"
    USED = "used"
    REQUESTED = "requested"


def _path(reference: str) -> Path:
    from poolwise import catalog

    return catalog.resolve("traces", reference)


TraceArgument = Annotated[
    Path,
    typer.Argument(
        parser=_path, metavar="TRACE", help="SWF, sacct, openb, Philly or any table (plain or .gz), or catalog:NAME."
    ),
]
FormatOption = Annotated[str, typer.Option(help="Format of the trace: a name from `poolwise list formats`.")]
MachineOption = Annotated[
    str | None,
    typer.Option(
        "--machine", metavar="FILE", help="Machine that the jobs are for: MACHINE.toml, or the name of a shipped one."
    ),
]
Cores = Annotated[
    int | None, typer.Option(min=1, help="Cores of a whole node; a job takes ceil(processors / cores) nodes. 1 if not given.")
]
GPUs = Annotated[int | None, typer.Option(min=1, help="GPUs of a whole node; a job takes enough nodes for its GPUs.")]
Zone = Annotated[str | None, typer.Option(help="Zone of times without one (sacct, Philly): Europe/Berlin. UTC if not given.")]
ExtraColumns = Annotated[int | None, typer.Option(min=0, help="Columns beyond the 18th that every row of an SWF log has.")]
Field = Annotated[MemoryChoice | None, typer.Option(help="Which column gives the memory of a job (SWF, sacct).")]
Unknown = Annotated[str | None, typer.Option(help='Jobs of unknown memory: zero, exclude, or an amount per node: "4 GiB".')]
Map = Annotated[
    str | None,
    typer.Option(
        "--map",
        metavar="FIELD=COLUMN:UNIT,...",
        help="Columns of any other table, and their units: submit=submit_time:10s, memory=mem_gb:GB, id=jobid.",
    ),
]
Strict = Annotated[bool, typer.Option("--strict", help="Stop at the first row that cannot be read.")]
Scale = Annotated[float | None, typer.Option(help="Factor on the memory of every job.")]


@commands.command(
    epilog=examples(
        "poolwise trace info catalog:example-sacct.txt --machine-cores 32 --nodes 32",
        f"poolwise trace info catalog:example-ticks.csv --nodes 128 {TICKS}",
    )
)
def info(
    trace: TraceArgument,
    format: FormatOption = "auto",
    machine: MachineOption = None,
    machine_cores: Cores = None,
    machine_gpus: GPUs = None,
    nodes: Annotated[int | None, typer.Option(min=1, help="Nodes of the machine: adds the load and jobs too large.")] = None,
    extra_columns: ExtraColumns = None,
    memory_field: Field = None,
    memory_unknown: Unknown = None,
    memory_scale: Scale = None,
    timezone: Zone = None,
    map_: Map = None,
    strict: Strict = False,
    json: Annotated[bool, typer.Option("--json", help="Print exactly one JSON object.")] = False,
) -> None:
    """Describe a trace: jobs, span, load, quantiles, and what was left out or repaired."""
    from poolwise import traces
    from poolwise.cli.console import note
    from poolwise.cli.output import print_json, provenance

    options = _options(
        extra_columns=extra_columns,
        memory_field=memory_field,
        memory_unknown=memory_unknown,
        memory_scale=memory_scale,
        timezone=timezone,
        map=map_,
        strict=strict or None,
    )
    target = _machine(machine, machine_cores=machine_cores, machine_gpus=machine_gpus, nodes=nodes)
    workload = traces.choose_format(trace, format, **options).read(trace, target)
    content = traces.info(workload, target if machine or nodes else None)
    if json:
        print_json({**content, "notes": list(workload.notes), "provenance": provenance(None, [trace])})
    else:
        _print_info(content)
        for said in workload.notes:
            note(said)


_EXPORT = (
    "Slurm accounting is exported so:",
    "fields=JobIDRaw,Submit,Start,State,NNodes,AllocCPUS,ElapsedRaw",
    "fields=$fields,TimelimitRaw,ReqMem,MaxRSS,NTasks,Partition,AllocTRES",
    "TZ=UTC sacct -a --parsable2 -S 2026-03-01 -E 2026-04-01 -o $fields > jobs.txt",
)
"""Lines short enough to be copied from a terminal of 80 columns."""


@commands.command(
    epilog=examples(
        f"poolwise trace convert catalog:example-ticks.csv jobs.parquet {TICKS}",
        "poolwise trace convert catalog:example-sacct.txt jobs.csv --machine cerit-racks",
        before="\n\n".join(_EXPORT),
    )
)
def convert(
    trace: TraceArgument,
    out: Annotated[Path, typer.Argument(help="Where to write: .parquet, .csv, .csv.gz, .swf or .swf.gz.")],
    to: Annotated[ConvertTarget | None, typer.Option(help="What to write; by the ending of OUT if not given.")] = None,
    format: FormatOption = "auto",
    machine: MachineOption = None,
    machine_cores: Cores = None,
    machine_gpus: GPUs = None,
    extra_columns: ExtraColumns = None,
    memory_field: Field = None,
    memory_unknown: Unknown = None,
    memory_scale: Scale = None,
    timezone: Zone = None,
    map_: Map = None,
    strict: Strict = False,
    memory_bytes_per_job: Annotated[
        bool, typer.Option("--memory-bytes-per-job", help="SWF to SWF: field 10 counts bytes per job, field 7 means nothing.")
    ] = False,
    comment: Annotated[list[str] | None, typer.Option(help="SWF to SWF: a line for the header; may be repeated.")] = None,
) -> None:
    """Convert a trace into a job table (Parquet, CSV), or an SWF log into one of plain 18 fields.

    A table has the jobs that can be simulated, in whole nodes or what else the machine has; every row that is left out or
    repaired is counted by reason. SWF to SWF keeps every row.
    """
    from poolwise import traces
    from poolwise.cli.console import note
    from poolwise.cli.console import out as console
    from poolwise.cli.output import provenance, write_provenance
    from poolwise.errors import InputError

    options = _options(
        extra_columns=extra_columns,
        memory_field=memory_field,
        memory_unknown=memory_unknown,
        memory_scale=memory_scale,
        timezone=timezone,
        map=map_,
        strict=strict or None,
    )
    chosen = traces.choose_format(trace, format, **options)
    if to is ConvertTarget.SWF or (to is None and out.name.removesuffix(".gz").endswith(".swf")):
        rows = _to_swf(trace, out, chosen, memory_bytes_per_job, comment or [])
    else:
        if memory_bytes_per_job or comment:
            field = "memory_bytes_per_job" if memory_bytes_per_job else "comment"
            raise InputError("only for SWF to SWF", field=field, remedy="convert to SWF first, then that file into a table")
        workload = chosen.read(trace, _machine(machine, machine_cores=machine_cores, machine_gpus=machine_gpus))
        traces.write_table(workload, out)
        _tell(workload.excluded, "excluded")
        _tell(workload.repaired, "repaired")
        for said in workload.notes:
            note(said)
        rows = len(workload)
    write_provenance(out, provenance(None, [trace]))
    console.print(f"{out}: {rows:,} jobs", markup=False, highlight=False, soft_wrap=True)


def _to_swf(trace: Path, out: Path, chosen: TraceFormat, memory_bytes_per_job: bool, comments: list[str]) -> int:
    from poolwise.errors import InputError
    from poolwise.traces.convert import to_swf
    from poolwise.traces.swf import SWF

    if not isinstance(chosen, SWF):
        raise InputError("only an SWF log can be written as SWF", file=trace, remedy="convert into .parquet or .csv")
    if chosen != SWF(extra_columns=chosen.extra_columns):
        raise InputError(
            "SWF to SWF keeps rows as they are", field="memory", remedy="give the memory options where the log is read"
        )
    rows, changed = to_swf(
        trace, out, extra_columns=chosen.extra_columns, memory_bytes_per_job=memory_bytes_per_job, comments=comments
    )
    _tell(changed, "changed")
    return rows


def _machine(file: str | None, *, nodes: int | None = None, **each: int | None) -> Machine:
    """Read the machine file, or build a rack of whole nodes with `machine_cores` and `machine_gpus` each."""
    from dataclasses import replace

    import numpy as np

    from poolwise import catalog
    from poolwise.errors import InputError
    from poolwise.model import Machine

    if file is not None:
        from poolwise.studies import load_machine

        for name, given in {"nodes": nodes, **each}.items():
            if given is not None:
                raise InputError("the machine file gives it", field=name, remedy=f"leave out --{name.replace('_', '-')}")
        return load_machine(catalog.machine(file))
    machine = Machine.of_racks(1, nodes or 1, cores=each["machine_cores"] or 1)
    gpus = np.array([each["machine_gpus"] or 0], dtype=np.int64)
    return replace(machine, per_node={**machine.per_node, "gpu": gpus})


def _options(**given: object) -> dict[str, Any]:
    """Keep the options that were given: a format that does not have one refuses it."""
    return {name: value.value if isinstance(value, StrEnum) else value for name, value in given.items() if value is not None}


def _tell(counts: Mapping[str, int], what: str) -> None:
    from poolwise.cli.console import warn

    for reason, count in counts.items():
        warn(f"{what} {count:,} rows: {reason}")


def _print_info(content: Mapping[str, Any]) -> None:
    from rich.table import Table

    from poolwise.cli.console import out
    from poolwise.units import format_memory, format_time

    table = Table("", "value", box=None, pad_edge=False, title=content["name"], title_justify="left")
    table.add_row("jobs", f"{content['jobs']:,}")
    table.add_row("span of submissions", format_time(content["span_s"]))
    table.add_row("node-seconds", f"{content['node_seconds']:,.6g}")
    if "load" in content:
        table.add_row("load", "all jobs submitted at once" if content["load"] is None else f"{content['load']:.4g}")
        table.add_row("jobs larger than the machine", f"{content['larger_than_machine']:,}")
    table.add_row("jobs whose memory is known", f"{100 * content['memory_known']:.4g} %")
    for what in ("excluded", "repaired"):
        for reason, count in content[what].items():
            table.add_row(f"{what}: {reason}", f"{count:,}")
    out.print(table)
    asked = content["requests"]
    quantiles = Table("quantile", "nodes", "runtime", "memory per node", *asked, box=None, pad_edge=False)
    for name, nodes in content["nodes"].items():
        memory = content["memory_mib"].get(name)
        quantiles.add_row(
            name,
            f"{nodes:,.0f}",
            format_time(content["runtime_s"][name]),
            "unknown" if memory is None else format_memory(memory),
            *(f"{amounts[name]:,.0f}" for amounts in asked.values()),
        )
    out.print(quantiles)


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.add_typer(commands, name="trace")
