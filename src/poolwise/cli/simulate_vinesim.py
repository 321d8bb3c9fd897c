"""`poolwise simulate vinesim`: tasks on processing units, from the files of VineSim."""

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
from poolwise.cli.vinesim_options import VinesimOptions


@expand
def vinesim(
    trace: Annotated[Path, typer.Argument(metavar="TRACE", help="Trace in VineSim's format, or catalog:NAME.")],
    options: VinesimOptions,
    output: OutputOptions,
    sample: SampleOption = None,
) -> None:
    """Simulate tasks on processing units, from VineSim's files.

    Without a machine file, --machine, --affinity and --inter-arrival are required.
    """
    simulate_cell(options.cell(trace), options.files(trace), output, output.metrics(), interval(sample))


def register(app: typer.Typer) -> None:
    """Register the command."""
    example = "poolwise simulate vinesim jobs.trace --machine gpus.txt --affinity affinity.txt --inter-arrival 7us"
    simulations.command("vinesim", epilog=examples(example))(vinesim)
