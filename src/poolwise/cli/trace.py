"""`poolwise trace`: describe traces and convert them between formats."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from poolwise import catalog
from poolwise.cli.app import app
from poolwise.cli.console import note, print_line, warn
from poolwise.cli.examples import TICKS, command
from poolwise.cli.output import print_json, provenance, write_provenance
from poolwise.cli.panels import LOG, MEMORY, OUTPUT
from poolwise.cli.shared_options import JsonOption, OnlyOption, StrictOption
from poolwise.cli.tables import print_table
from poolwise.errors import InputError
from poolwise.presentation.table import Table
from poolwise.quantities import format_count, format_memory, format_time

if TYPE_CHECKING:
    from poolwise.model import Machine, Workload
    from poolwise.traces import TraceFormat

commands = typer.Typer(help="Describe, convert and generate job traces.", no_args_is_help=True)


class ConvertTarget(StrEnum):
    """Formats to convert to."""

    TABLE = "table"
    SWF = "swf"


class MemoryChoice(StrEnum):
    """Columns of SWF and sacct that give the memory of a job."""

    BOTH = "used-then-requested"
    USED = "used"
    REQUESTED = "requested"


def _path(reference: str) -> Path:
    return catalog.resolve("traces", reference)


TraceArgument = Annotated[
    Path,
    typer.Argument(
        parser=_path, metavar="TRACE", help="SWF, sacct, .events, openb, Philly or any table (plain or .gz), or catalog:NAME."
    ),
]


@dataclass(frozen=True)
class ReadOptions:
    """Format, target machine and memory of a trace; a format rejects the options that it does not support."""

    format: Annotated[str, typer.Option(metavar="NAME", help="Trace format: a name from `poolwise list formats`.")] = "auto"
    machine: Annotated[
        str | None, typer.Option(metavar="FILE", help="Target machine: MACHINE.toml, or the name of a shipped one.")
    ] = None
    machine_cores: Annotated[
        int | None, typer.Option(min=1, help="Cores per whole node; a job takes ceil(processors / cores) nodes. Defaults to 1.")
    ] = None
    machine_gpus: Annotated[
        int | None, typer.Option(min=1, help="GPUs per whole node; a job takes enough nodes for its GPUs.")
    ] = None
    extra_columns: Annotated[
        int | None, typer.Option(min=0, help="Number of extra columns after the 18th in an SWF log.", rich_help_panel=LOG)
    ] = None
    memory_field: Annotated[
        MemoryChoice | None,
        typer.Option(
            metavar="COLUMN",
            help="Memory column of SWF and sacct: used-then-requested, used or requested.",
            rich_help_panel=MEMORY,
        ),
    ] = None
    memory_unknown: Annotated[
        str | None,
        typer.Option(
            metavar="AMOUNT",
            help='Memory of jobs that do not state it: zero, exclude, or an amount per node: "4 GiB".',
            rich_help_panel=MEMORY,
        ),
    ] = None
    memory_scale: Annotated[
        float | None, typer.Option(help="Factor to multiply the memory of every job by.", rich_help_panel=MEMORY)
    ] = None
    timezone: Annotated[
        str | None,
        typer.Option(
            metavar="ZONE", help="Time zone of times without one (sacct, Philly); defaults to UTC.", rich_help_panel=LOG
        ),
    ] = None
    map: Annotated[
        str | None,
        typer.Option(
            metavar="FIELD=COLUMN:UNIT,...",
            help="Column mapping for any other table, with units: submit=submit_time:10s, memory=mem_gb:GB, id=jobid.",
            rich_help_panel=LOG,
        ),
    ] = None
    only: OnlyOption = field(default_factory=list)
    strict: StrictOption = False

    def chosen(self, trace: Path) -> TraceFormat:
        """Return the configured format of a trace."""
        from poolwise import traces

        names = ("extra_columns", "memory_field", "memory_unknown", "memory_scale", "timezone", "map")
        options: dict[str, Any] = {name: value for name in names if (value := getattr(self, name)) is not None}
        return traces.choose_format(trace, self.format, **options, **({"strict": True} if self.strict else {}))

    def read(self, trace: Path, machine: Machine) -> Workload:
        """Read the selected jobs of a trace; memory is kept even if the machine has none."""
        from poolwise import traces

        return traces.read_all(self.chosen(trace), trace, machine, dict(self.only))

    def target(self, nodes: int | None = None) -> Machine:
        """Return the target machine: that of a file, or a rack of whole nodes with `machine_cores` and `machine_gpus` each."""
        import numpy as np

        from poolwise.model import Machine
        from poolwise.studies import load_machine

        each = {"nodes": nodes, "machine_cores": self.machine_cores, "machine_gpus": self.machine_gpus}
        if self.machine is None:
            machine = Machine.of_racks(1, nodes or 1, cores=self.machine_cores or 1)
            return replace(machine, per_node={**machine.per_node, "gpu": np.array([self.machine_gpus or 0], dtype=np.int64)})
        for name, amount in each.items():
            if amount is not None:
                remedy = f"omit --{name.replace('_', '-')}"
                raise InputError("the machine file already specifies it", field=name, remedy=remedy)
        return load_machine(catalog.machine(self.machine))


@command(
    commands,
    "poolwise trace info catalog:example-sacct.txt --machine-cores 32 --nodes 32",
    f"poolwise trace info catalog:example-ticks.csv --nodes 128 {TICKS}",
)
def info(
    trace: TraceArgument,
    options: ReadOptions,
    nodes: Annotated[
        int | None, typer.Option(min=1, help="Nodes of the machine; adds the load and the number of jobs that do not fit.")
    ] = None,
    json: JsonOption = False,
) -> None:
    """Describe a trace: jobs, span, load, quantiles and excluded rows."""
    from poolwise import traces

    target = options.target(nodes)
    workload = options.read(trace, target)
    content = traces.info(workload, target if options.machine or nodes else None)
    if options.machine is None:
        content["repaired"] = {_without_machine(reason): count for reason, count in content["repaired"].items()}
    if json:
        print_json(content, provenance(None, [trace]), workload.notes)
    else:
        _print_info(content, _assumed(options, trace))
        for text in workload.notes:
            note(text)


def _without_machine(reason: str) -> str:
    """Reword a reason that refers to a machine, for the case that none was named."""
    from poolwise.traces.demand import LACKING

    return reason.replace(LACKING.format("nodes"), "because no machine that has them is given")


def _assumed(options: ReadOptions, trace: Path) -> str:
    """State how processors of a log become nodes if neither a machine nor the cores of its nodes are given; "" otherwise."""
    from poolwise.traces.sacct import Sacct
    from poolwise.traces.swf import SWF

    if options.machine is not None or options.machine_cores is not None or not isinstance(options.chosen(trace), Sacct | SWF):
        return ""
    return "Nodes and node-seconds assume one-core nodes; specify others with --machine or --machine-cores."


_EXPORT = (
    "Export Slurm accounting with:",
    "fields=JobIDRaw,JobID,User,Account,QOS,Partition,Constraints,Submit,Start",
    "fields=$fields,State,NNodes,AllocCPUS,ElapsedRaw,TimelimitRaw,ReqMem",
    "fields=$fields,MaxRSS,NTasks,AllocTRES",
    "TZ=UTC sacct -a --parsable2 -S 2026-03-01 -E 2026-04-01 -o $fields > jobs.txt",
)
"""Lines that fit a terminal of 80 columns, to be copied."""


@command(
    commands,
    f"poolwise trace convert catalog:example-ticks.csv jobs.parquet {TICKS}",
    "poolwise trace convert catalog:example-sacct.txt jobs.csv --machine cerit-racks",
    before="\n\n".join(_EXPORT),
)
def convert(
    trace: TraceArgument,
    out: Annotated[Path, typer.Argument(metavar="OUT", help="Output file: .parquet, .csv, .csv.gz, .swf or .swf.gz.")],
    *,
    to: Annotated[ConvertTarget | None, typer.Option(help="Output format; defaults to the suffix of OUT.")] = None,
    options: ReadOptions,
    memory_bytes_per_job: Annotated[
        bool,
        typer.Option(
            "--memory-bytes-per-job",
            help="SWF to SWF: read field 10 as bytes per job and ignore field 7.",
            rich_help_panel=OUTPUT,
        ),
    ] = False,
    comment: Annotated[
        list[str] | None,
        typer.Option(metavar="TEXT", help="SWF to SWF: line to add to the header; repeatable.", rich_help_panel=OUTPUT),
    ] = None,
) -> None:
    """Convert a trace into a job table or an SWF log.

    A job table (Parquet, CSV) contains the jobs that can be simulated, in units of the machine: whole nodes, or cores and
    memory. Excluded and repaired rows are counted by reason. An SWF log has the 18 standard fields and keeps every row.
    """
    from poolwise import traces

    chosen = options.chosen(trace)
    if to is ConvertTarget.SWF or (to is None and out.name.removesuffix(".gz").endswith(".swf")):
        rows = _to_swf(trace, out, chosen, memory_bytes_per_job, comment or [])
    else:
        if memory_bytes_per_job or comment:
            field = "memory_bytes_per_job" if memory_bytes_per_job else "comment"
            remedy = "convert to SWF first, then convert that file to a table"
            raise InputError("this option applies only to SWF output", field=field, remedy=remedy)
        workload = options.read(trace, options.target())
        traces.write_table(workload, out)
        _warn_of_rows(workload.excluded, "excluded")
        _warn_of_rows(workload.repaired, "repaired")
        for text in workload.notes:
            note(text)
        rows = len(workload)
    write_provenance(out, provenance(None, [trace]))
    print_line(f"{out}: {format_count(rows, 'job')}")


def _to_swf(trace: Path, out: Path, chosen: TraceFormat, memory_bytes_per_job: bool, comments: list[str]) -> int:
    from poolwise.traces.convert import to_swf
    from poolwise.traces.swf import SWF

    if not isinstance(chosen, SWF):
        raise InputError("only an SWF log can be written as SWF", file=trace, remedy="convert into .parquet or .csv")
    if chosen != SWF(extra_columns=chosen.extra_columns):
        remedy = "pass the memory options to the command that reads the log"
        raise InputError("SWF output keeps rows unchanged", field="memory", remedy=remedy)
    rows, changed = to_swf(
        trace, out, extra_columns=chosen.extra_columns, memory_bytes_per_job=memory_bytes_per_job, comments=comments
    )
    _warn_of_rows(changed, "changed")
    return rows


def _warn_of_rows(counts: Mapping[str, int], action: str) -> None:
    for reason, count in counts.items():
        warn(f"{action} {format_count(count, 'row')}: {reason}")


def _print_info(content: Mapping[str, Any], assumed: str) -> None:
    rows = [
        ["jobs", f"{content['jobs']:,}"],
        ["span of submissions", format_time(content["span_s"])],
        ["node-seconds", f"{content['node_seconds']:,.6g}"],
    ]
    if "load" in content:
        rows.append(["load", "all jobs submitted at once" if content["load"] is None else f"{content['load']:.4g}"])
        rows.append(["jobs larger than the machine", f"{content['larger_than_machine']:,}"])
    rows.append(["jobs with known memory", f"{100 * content['memory_known']:.4g} %"])
    rows += [[f"{kind}: {reason}", f"{n:,}"] for kind in ("excluded", "repaired") for reason, n in content[kind].items()]
    print_table(Table(content["name"], ["", "value"], rows, assumed))
    requests, memory = content["requests"], content["memory_mib"]
    quantiles = [
        [
            name,
            f"{nodes:,.0f}",
            format_time(content["runtime_s"][name]),
            "unknown" if memory.get(name) is None else format_memory(memory[name]),
            *(f"{amounts[name]:,.0f}" for amounts in requests.values()),
        ]
        for name, nodes in content["nodes"].items()
    ]
    print_table(Table("Quantiles", ["", "nodes", "runtime", "memory per node", *requests], quantiles, assumed))


app.add_typer(commands, name="trace")
