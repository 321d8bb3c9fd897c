"""`poolwise place`: place a batch of workloads on CPU modules, weighing energy against slowdown."""

from __future__ import annotations

from pathlib import Path

import typer

from poolwise.cli.app import app
from poolwise.cli.examples import command
from poolwise.cli.output import check_exports, export, provenance, show_answer


@command(app, "poolwise place batch-150x1200 --method first-fit")
def place(
    batch: Path = typer.Argument(
        metavar="BATCH", help="BATCH.toml, or a shipped batch: catalog:NAME (`poolwise list batches`)."
    ),
    method: str = typer.Option("place", metavar="NAME", help="Method: a name from `poolwise list methods`, or FILE.py:NAME."),
    time_limit: str = typer.Option("1s", metavar="TIME", help="Time limit for the method: 50ms, 1s, 60s."),
    theta: str | None = typer.Option(
        None, metavar="FORM", help="Override the file's definition of theta: printed or relative."
    ),
    eta: float | None = typer.Option(None, min=0, max=1, help="Override the file's eta, the weight of energy."),
    tolerance: float | None = typer.Option(None, min=0, help="Override the accepted slowdown of all workloads."),
    seed: int | None = typer.Option(None, min=0, help="Override the file's random seed."),
    json: bool = typer.Option(False, "--json", help="Print one JSON object instead of tables."),
    csv: Path | None = typer.Option(None, metavar="FILE", help="Write one row per workload as CSV."),
    parquet: Path | None = typer.Option(None, metavar="FILE", help="Write one row per workload as Parquet."),
) -> None:
    """Place a batch of workloads on CPU modules.

    Prints the module and memory of each workload, the cost, and the distance to the optimum. Exits with 3 if some workloads do
    not fit.
    """
    from poolwise import batch_placement

    check_exports(csv, parquet)
    placed = batch_placement.place(batch, method, time_limit=time_limit, theta=theta, eta=eta, tolerance=tolerance, seed=seed)
    answer, source = placed.answer(), provenance(seed or 0, [placed.file])
    export(answer.candidates, source, csv, parquet)
    show_answer(answer, answer.content if json else None, source, more="--csv FILE or --json lists them")
