"""`poolwise simulate LOG`: a job log on a machine, under one scheduler."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from poolwise.cli.examples import examples
from poolwise.cli.option_groups import expand
from poolwise.cli.run_options import LogOptions
from poolwise.cli.run_output import OutputOptions
from poolwise.cli.shared_options import SampleOption
from poolwise.cli.simulate import EXAMPLES, simulate_cell, simulations
from poolwise.cli.units import interval


@expand
def log(
    log: Annotated[
        Path, typer.Argument(metavar="LOG", help="SWF, sacct or any table (CSV, Parquet; plain or .gz), or catalog:NAME.")
    ],
    options: LogOptions,
    output: OutputOptions,
    sample: SampleOption = None,
) -> None:
    """Simulate a job log on a machine under one scheduler.

    `poolwise simulate LOG` is short for this command.
    """
    simulate_cell(options.cell(log), options.files(log), output, output.metrics(), interval(sample))


def register(app: typer.Typer) -> None:
    """Register the command."""
    simulations.command("log", epilog=examples(EXAMPLES[0].replace("simulate ", "simulate log ")))(log)
