"""`poolwise simulate rerun`: an earlier run again, from its provenance file, with some values replaced."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from poolwise.cli.examples import examples
from poolwise.cli.option_groups import expand
from poolwise.cli.run_output import OutputOptions
from poolwise.cli.shared_options import SampleOption
from poolwise.cli.simulate import simulate_cell, simulations
from poolwise.cli.units import interval


@expand
def rerun(
    file: Annotated[
        Path, typer.Argument(metavar="FILE.provenance.json", help="Provenance file of an earlier `poolwise simulate`.")
    ],
    output: OutputOptions,
    sample: SampleOption = None,
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Replace a value, such as workload.jobs=100; repeatable."),
    ] = None,
) -> None:
    """Simulate an earlier run again, with the same or other settings."""
    from poolwise.cli.saved_run import read_recorded_run

    cell, metrics = read_recorded_run(file, set_ or [])
    simulate_cell(cell, [file], output, tuple(dict.fromkeys((*metrics, *output.metrics()))), interval(sample))


def register(app: typer.Typer) -> None:
    """Register the command."""
    example = "poolwise simulate rerun fcfs.csv.provenance.json --set scheduler.order=sjf"
    simulations.command("rerun", epilog=examples(example))(rerun)
