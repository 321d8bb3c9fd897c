"""`poolwise explain log`: a job of a log, which is simulated first."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from poolwise.cli.examples import examples
from poolwise.cli.explain import ExplainOutput, JobId, check_explainable, explain_cell, explanations, show_explanation
from poolwise.cli.option_groups import expand
from poolwise.cli.run_options import LogOptions


@expand
def log(
    log: Annotated[
        Path, typer.Argument(metavar="LOG", help="SWF, sacct or any table (CSV, Parquet; plain or .gz), or catalog:NAME.")
    ],
    job: JobId,
    options: LogOptions,
    output: ExplainOutput,
) -> None:
    """Simulate a job log and explain the wait of a job.

    Takes the options of `poolwise simulate`.
    """
    cell = options.cell(log)
    check_explainable(cell, log, "remove pass_per_event from the scheduler file")
    show_explanation(options.policy, cell, explain_cell(cell, job), output, options.files(log))


def register(app: typer.Typer) -> None:
    """Register the command."""
    example = "poolwise explain log catalog:example-sacct.txt 48020 --machine cerit-racks"
    explanations.command("log", epilog=examples(example))(log)
