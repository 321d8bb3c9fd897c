"""`poolwise import slurm`: write machine, scheduler and study files of a cluster from Slurm's own files."""

from __future__ import annotations

import shlex
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from poolwise import catalog
from poolwise.atomic_write import write_whole
from poolwise.cli.app import app
from poolwise.cli.console import note, print_line, print_lines, warn
from poolwise.cli.examples import command
from poolwise.errors import InputError
from poolwise.quantities import format_count

if TYPE_CHECKING:
    from poolwise.files.slurm_import.cluster import Omissions
    from poolwise.model import Machine

imports = typer.Typer(help="Import a cluster from its own configuration and logs.", no_args_is_help=True)


@command(imports, "poolwise import slurm --conf slurm.conf --log sacct.txt --out cluster")
def slurm(
    conf: Annotated[Path, typer.Option(metavar="FILE", help="slurm.conf of the cluster.")],
    log: Annotated[
        str, typer.Option(metavar="FILE", help="Export of sacct --parsable2 (see `poolwise trace convert --help`).")
    ],
    sinfo: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Output of `scontrol show node`, or of sinfo; replaces NodeName lines.")
    ] = None,
    topology: Annotated[
        Path | None, typer.Option(metavar="FILE", help="topology.conf; its leaf switches become racks.")
    ] = None,
    gres: Annotated[Path | None, typer.Option(metavar="FILE", help="gres.conf; its GPU types become features.")] = None,
    shares: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Output of `sshare --all --long --parsable2`, for fair share.")
    ] = None,
    qos: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Output of `sacctmgr --parsable2 show qos`, for priorities and limits of QOS."),
    ] = None,
    assoc: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Output of `sacctmgr --parsable2 show assoc tree` or `sacctmgr dump`, for shares."),
    ] = None,
    reservations: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Output of `scontrol show reservation`, for reserved windows.")
    ] = None,
    timezone: Annotated[
        str, typer.Option(metavar="ZONE", help="Time zone of the times in the log and of reservations.")
    ] = "UTC",
    out: Annotated[Path | None, typer.Option(metavar="DIR", help="Folder to write; defaults to the cluster's name.")] = None,
) -> None:
    """Write a study of a cluster from its slurm.conf and its log.

    The study compares other queue orders with today's scheduler, on the same nodes and jobs. The files of an earlier import are
    replaced.
    """
    from poolwise import traces
    from poolwise.files.slurm_import.cluster import MACHINE, STUDY, SlurmCluster, SlurmFiles
    from poolwise.files.slurm_import.machine_file import machine_text
    from poolwise.files.slurm_import.scheduler_file import dump_texts, scheduler_texts
    from poolwise.files.slurm_import.study_file import study_text
    from poolwise.files.slurm_import.windows import window_lines
    from poolwise.traces import sacct_rows, time_of_day

    path = catalog.resolve("traces", log)
    names = sacct_rows.read_export(path).names
    cluster = SlurmCluster(SlurmFiles(conf, sinfo, topology, shares, qos, reservations, assoc, gres), names)
    folder = Path(cluster.name) if out is None else out
    if folder.resolve() == conf.resolve().parent:
        remedy = "choose another folder (--out), because the import writes its own slurm.conf there"
        raise InputError("the folder contains the slurm.conf to import", file=folder, field="--out", remedy=remedy)
    options: dict[str, Any] = {"memory_field": "requested"} if "ReqMem" in names else {}
    options |= {"timezone": timezone} if timezone != "UTC" else {}
    jobs = traces.read(path, _machine(machine_text(cluster)), "sacct", **options)
    windows = [] if reservations is None else window_lines(cluster, reservations, jobs, time_of_day.zone(timezone))
    written = {
        **scheduler_texts(cluster),
        **dump_texts(cluster),
        MACHINE: machine_text(cluster, map(str, {*jobs.attributes.get("qos", ())}), windows),
        STUDY: study_text(cluster, log, jobs, options, folder),
    }
    machine = _machine(written[MACHINE])
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in written.items():
        write_whole(folder / name, text.encode())
    _report(cluster.omitted)
    print_line(f"{folder / MACHINE}: {machine.summary_text()}")
    print_line(f"{folder / STUDY}: {format_count(len(jobs), 'job')} of {path.name}")
    print_lines(f"  excluded: {count:,} {reason}" for reason, count in jobs.excluded.items())
    print_lines(f"  repaired: {count:,} {reason}" for reason, count in jobs.repaired.items())
    for text in jobs.notes:
        note(text)
    print_line(f"next: poolwise run {shlex.quote(str(folder / STUDY))}")


def _machine(text: str) -> Machine:
    from poolwise.files.document import Document
    from poolwise.files.machine import read_machine

    return read_machine(Document(Path("machine.toml"), tomllib.loads(text))).machine


def _report(omitted: Omissions) -> None:
    """Print the settings that an import leaves out, the most important first; warn of those that would change schedules."""
    from poolwise.files.slurm_import.cluster import keys_text

    for text in omitted.sentences():
        warn(text)
    if omitted.unknown:
        note(f"unknown keys, ignored: {keys_text(omitted.unknown)}", in_pipe=True)
    if omitted.others:
        note(f"without effect on schedules: {keys_text(omitted.others)}", in_pipe=True)


app.add_typer(imports, name="import")
