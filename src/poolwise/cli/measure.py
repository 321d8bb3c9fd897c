"""`poolwise profile measure`: run a real program with less and less local memory, and note how long it takes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from poolwise.cli.examples import examples
from poolwise.cli.profile import commands

if TYPE_CHECKING:
    from poolwise.profiling.experiment import LimitedRuns


@commands.command(
    "measure",
    epilog=examples("poolwise profile measure --make-swap --out solver.csv -- ./solver --size 4000"),
    context_settings={"allow_interspersed_args": False},
)
def measure(
    command: list[str] = typer.Argument(help="The program and its arguments, after --."),
    shares: str = typer.Option("1,0.75,0.5,0.25", help="Shares of local memory, descending from 1."),
    cpu: str = typer.Option("", help="Shares of one processor's time, instead of its frequency: 1,0.75,0.5."),
    repeat: int = typer.Option(3, min=1, help="Runs at each share."),
    latency: str = typer.Option(
        "", help="Latency to add to each page-in from swap made here, as 5us; the output says whether it could be."
    ),
    make_swap: bool = typer.Option(False, "--make-swap", help="Make swap in compressed memory for it (root only)."),
    clock: str = typer.Option(
        "wall", help="wall, or cpu on a computer that has other work: processor time, page-ins included."
    ),
    compressor: str = typer.Option("", help="Algorithm of that swap; the kernel's choice by default."),
    group: str | None = typer.Option(None, help="Control group under which to work, from the root of control groups."),
    longest: str = typer.Option("10 min", help="Time after which a run counts as failed."),
    name: str = typer.Option("", help="Name of the workload; the program's by default."),
    out: Path = typer.Option(Path("measured.csv"), help="File for the measurements."),
    json: bool = typer.Option(False, "--json", help="Print exactly one JSON object."),
) -> None:
    """Run a program with all of its memory local, then with less, the rest in swap; write times for `profile fit`."""
    from poolwise.atomic_write import check_writable, write_whole
    from poolwise.cli.console import err, note
    from poolwise.cli.output import print_json, provenance, write_provenance
    from poolwise.profiling.cleanup import exit_on_signals, owned_resources, records_folder
    from poolwise.profiling.control_groups import find_hierarchy
    from poolwise.profiling.experiment import MeasurementPlan, measure_program
    from poolwise.profiling.measurements import to_csv
    from poolwise.units import SECOND

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
        latency_ns=_ns(latency, "latency") if latency else 0,
        longest_s=_ns(longest, "longest") / SECOND,
    )
    with exit_on_signals(), owned_resources(records_folder(), "measure") as mine:
        measured = measure_program(plan, find_hierarchy(parent=group), mine, _lines())
    about = measured.conditions
    write_whole(out, to_csv(measured).encode())
    write_provenance(out, {**provenance(None, []), "conditions": about})
    if json:
        print_json({"file": str(out), "conditions": about, "workloads": [_to_dict(measured)]})
        return
    _print(measured)
    if plan.latency_ns:
        note(f"latency of {latency}: {about['added_latency']}")
    err.print(f"measurements: {out}", soft_wrap=True)


def _lines() -> Callable[[int, int, str], None]:
    """Progress as lines on stderr."""
    from poolwise.cli.console import err
    from poolwise.runner.progress import Pace

    pace: Pace | None = None

    def tell(done: int, todo: int, words: str) -> None:
        nonlocal pace
        left = "" if pace is None else f", {pace.advance()}"
        pace = pace or Pace(todo, 0)
        if done < todo:
            err.print(f"  [{done}/{todo}] {words}{left}", markup=False, highlight=False, soft_wrap=True)

    return tell


def _shares(text: str, field: str) -> tuple[float, ...]:
    from poolwise.errors import InputError

    try:
        return tuple(float(part) for part in text.split(","))
    except ValueError:
        raise InputError(f"'{text}' is no list of shares", field=field, remedy="write 1,0.75,0.5") from None


def _ns(text: str, field: str) -> int:
    from poolwise.errors import InputError
    from poolwise.units import parse

    try:
        return parse(text, "time")
    except ValueError as problem:
        raise InputError(str(problem), field=field, remedy="write 5us, 90s or 10 min") from None


def _to_dict(measured: LimitedRuns) -> dict[str, object]:
    from poolwise.profiling.measurements import COLUMNS, to_rows

    return {
        "workload": measured.plan.workload,
        "peak_mib": measured.peak / 2**20,
        "runs": [dict(zip(COLUMNS, row, strict=True)) for row in to_rows(measured)],
    }


def _print(measured: LimitedRuns) -> None:
    from statistics import mean

    from rich.table import Table

    from poolwise.cli.console import out
    from poolwise.units import format_memory, format_time

    clock = measured.plan.clock
    base = mean(one.seconds(clock) for one in measured.runs if one.remote == 0 and one.cpu is None)
    table = Table(
        "local",
        "processor",
        f"{clock} time",
        "slowdown",
        "swapped",
        "major faults",
        "CPU time",
        "a fault",
        box=None,
        pad_edge=False,
    )
    for remote, cpu in dict.fromkeys((one.remote, one.cpu) for one in measured.runs):
        here = [one for one in measured.runs if (one.remote, one.cpu) == (remote, cpu)]
        runs, seconds = [one.run for one in here], mean(one.seconds(clock) for one in here)
        faults = mean(run.use.major_faults for run in runs)
        table.add_row(
            f"{1 - remote:.0%}",
            "all" if cpu is None else f"{cpu:.0%}",
            format_time(seconds),
            f"{seconds / base - 1:.3f}",
            format_memory(round(max(run.swapped for run in runs) / 2**20)),
            f"{faults:,.0f}",
            format_time(mean(run.use.cpu_ns for run in runs) / 1e9),
            format_time((seconds - base) / faults) if remote and faults and seconds > base else "",
        )
    out.print(f"{measured.plan.workload}: peak {format_memory(round(measured.peak / 2**20))}", highlight=False)
    out.print(table)
    for name, words in (("page_in", "page-in from swap"), ("page_in_without", "page-in without the added latency")):
        if (found := measured.conditions.get(name)) is not None:
            values = ", ".join(f"{name} {value:.3g}" for name, value in found["us"].items())
            out.print(f"{words}, us: {values}", highlight=False)
    if (slowed := measured.conditions["slowed"]) is not None:
        short = f", {slowed['cut_short']:,} of them too little" if slowed["cut_short"] else ""
        out.print(f"reads slowed: {slowed['reads']:,}, {slowed['mean_us']:.3g} us each{short}", highlight=False)
