"""`poolwise profile measure`: run a program with decreasing local memory, and record its completion times."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from poolwise.atomic_write import check_writable, write_whole
from poolwise.cli.console import print_line, progress
from poolwise.cli.examples import examples
from poolwise.cli.output import print_json, provenance, write_provenance
from poolwise.cli.panels import ADVANCED
from poolwise.cli.profile import commands
from poolwise.cli.tables import print_table
from poolwise.errors import InputError
from poolwise.presentation.table import Table
from poolwise.quantities import SECOND, format_memory, format_time, parse

if TYPE_CHECKING:
    from poolwise_agents.profiling.experiment import LimitedRuns


@commands.command(
    "measure",
    epilog=examples("poolwise profile measure --make-swap --out solver.csv -- ./solver --size 4000"),
    context_settings={"allow_interspersed_args": False},
)
def measure(
    command: list[str] = typer.Argument(metavar="COMMAND...", help="Program and its arguments, after --."),
    shares: str = typer.Option("1,0.75,0.5,0.25", metavar="SHARES", help="Shares of local memory, descending from 1."),
    cpu: str = typer.Option("", metavar="SHARES", help="Shares of processor time, instead of frequencies: 1,0.75,0.5."),
    repeat: int = typer.Option(3, min=1, help="Number of runs per share."),
    make_swap: bool = typer.Option(False, "--make-swap", help="Create swap in compressed memory (root only)."),
    clock: str = typer.Option(
        "wall",
        metavar="CLOCK",
        help="Clock: wall, or on a busy computer cpu (processor time, including page-ins).",
        rich_help_panel=ADVANCED,
    ),
    compressor: str = typer.Option(
        "", metavar="NAME", help="Compression algorithm of that swap; defaults to the kernel's.", rich_help_panel=ADVANCED
    ),
    group: str | None = typer.Option(
        None, metavar="PATH", help="Parent control group, relative to the root of control groups.", rich_help_panel=ADVANCED
    ),
    timeout: str = typer.Option("10 min", metavar="TIME", help="Time after which a run fails."),
    name: str = typer.Option("", metavar="NAME", help="Name of the workload; defaults to the program."),
    out: Path = typer.Option(Path("measured.csv"), metavar="FILE", help="File for the measurements."),
    json: bool = typer.Option(False, "--json", help="Print one JSON object instead of a table."),
) -> None:
    """Measure a program at decreasing amounts of local memory.

    The first runs have all memory local; in the others, the rest is swapped out. `poolwise profile fit` reads the result.
    """
    from poolwise_agents.profiling.cleanup import exit_on_signals, owned_resources, records_folder
    from poolwise_agents.profiling.control_groups import find_hierarchy
    from poolwise_agents.profiling.experiment import MeasurementPlan, measure_program, to_csv

    check_writable(out)
    plan = MeasurementPlan(
        workload=name or Path(command[0]).name,
        command=tuple(command),
        shares=_shares(shares, "shares"),
        cpus=_shares(cpu, "cpu") if cpu else (),
        repeat=repeat,
        make_swap=make_swap,
        compressor=compressor,
        clock=clock,
        longest_s=_ns(timeout, "timeout") / SECOND,
    )
    with exit_on_signals(), owned_resources(records_folder(), "measure") as mine:
        measured = measure_program(plan, find_hierarchy(parent=group), mine, _progress_lines())
    conditions = measured.conditions
    write_whole(out, to_csv(measured).encode())
    source = {**provenance(None, []), "conditions": conditions}
    write_provenance(out, source)
    if json:
        print_json({"file": str(out), "conditions": conditions, "workloads": [_to_dict(measured)]}, source)
        return
    _print(measured)
    progress(f"measurements: {out}")


def _progress_lines() -> Callable[[int, int, str], None]:
    """Return a function that prints progress as lines on stderr."""
    from poolwise.runner.progress import Pace

    pace: Pace | None = None

    def show(done: int, todo: int, text: str) -> None:
        nonlocal pace
        if pace is None:
            pace = Pace(todo, 0)
        else:
            pace.advance()
        if done < todo:
            progress(", ".join(part for part in (f"  [{done}/{todo}] {text}", pace.text()) if part))

    return show


def _shares(text: str, field: str) -> tuple[float, ...]:
    try:
        return tuple(float(part) for part in text.split(","))
    except ValueError:
        raise InputError(f"'{text}' is not a list of shares", field=field, remedy="write 1,0.75,0.5") from None


def _ns(text: str, field: str) -> int:
    try:
        return parse(text, "time")
    except ValueError as problem:
        raise InputError(str(problem), field=field, remedy="write 90s or 10 min") from None


def _to_dict(measured: LimitedRuns) -> dict[str, object]:
    from poolwise_agents.profiling.experiment import to_rows

    return {
        "workload": measured.plan.workload,
        "peak_mib": measured.peak / 2**20,
        "runs": to_rows(measured),
    }


def _print(measured: LimitedRuns) -> None:
    from statistics import mean

    clock = measured.plan.clock
    base = mean(
        limited_run.seconds(clock) for limited_run in measured.runs if limited_run.remote == 0 and limited_run.cpu is None
    )
    headings = ("local", "CPU", f"{clock} time", "slowdown", "swapped", "major faults", "CPU time", "per fault")
    rows = []
    for remote, cpu in dict.fromkeys((limited_run.remote, limited_run.cpu) for limited_run in measured.runs):
        here = [limited_run for limited_run in measured.runs if (limited_run.remote, limited_run.cpu) == (remote, cpu)]
        runs, seconds = [limited_run.run for limited_run in here], mean(limited_run.seconds(clock) for limited_run in here)
        faults = mean(run.use.major_faults for run in runs)
        row = [
            f"{1 - remote:.0%}",
            "all" if cpu is None else f"{cpu:.0%}",
            format_time(seconds),
            f"{seconds / base - 1:.3f}",
            format_memory(round(max(run.swapped for run in runs) / 2**20)),
            f"{faults:,.0f}",
            format_time(mean(run.use.cpu_ns for run in runs) / 1e9),
            format_time((seconds - base) / faults) if remote and faults and seconds > base else "",
        ]
        rows.append(row)
    print_line(f"{measured.plan.workload}: peak {format_memory(round(measured.peak / 2**20))}")
    print_table(Table("", headings, rows))
    if (page_in := measured.conditions["page_in"]) is not None:
        values = ", ".join(f"{quantile} {value:.3g}" for quantile, value in page_in["us"].items())
        print_line(f"page-in from swap, us: {values}")
