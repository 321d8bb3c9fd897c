"""`poolwise plan`: find the cheapest machine that meets stated targets."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import typer

from poolwise.cli.app import app
from poolwise.cli.console import note, progress, resumable
from poolwise.cli.examples import command
from poolwise.cli.output import check_exports, export, provenance, show_answer
from poolwise.cli.shared_options import ComputeOptions, setting


@command(app, "poolwise plan gpu-share --out results/gpu-share")
def plan(
    plan: str = typer.Argument(metavar="PLAN", help="PLAN.toml, or the name of a shipped plan (`poolwise list plans`)."),
    out: Path | None = typer.Option(
        None, metavar="DIR", help="Folder for runs, answer and report; defaults to results/PLAN. Repeat the command to resume."
    ),
    compute: ComputeOptions = ComputeOptions(),
    set_: list[Any] = setting("Replace a value, such as plan.sensitivity=0.2; repeatable."),
    json: bool = typer.Option(False, "--json", help="Print one JSON object instead of text."),
    csv: Path | None = typer.Option(None, metavar="FILE", help="Write the candidates as CSV."),
    parquet: Path | None = typer.Option(None, metavar="FILE", help="Write the candidates as Parquet."),
) -> None:
    """Find the cheapest machine that meets stated targets.

    Searches by simulation. Writes plan.json, candidates.csv, candidates.parquet, provenance.json and report.html. Exits with 3
    if no candidate is shown to meet the targets.
    """
    from poolwise.plans import plan as plans
    from poolwise.report.page import write_report
    from poolwise.studies.slow_runs import slow_runs

    check_exports(csv, parquet)
    loaded = plans.load_plan(plan, dict(set_))
    folder = out if out is not None else Path("results") / loaded.name
    for slow in slow_runs(loaded.problem.sample_runs()):
        note(slow.text)
    with resumable(folder), compute.workers() as workers:
        result = plans.plan(loaded, folder, tell=progress, executor=workers)
    with resumable(folder):
        write_report(result.answer, folder / "report.html")
    source = provenance(None, []) | {"inputs": dict(result.answer.inputs), "plan": result.provenance()}
    export(result.answer.candidates, source, csv, parquet)
    show_answer(result.answer, result.to_dict() if json else None, source, folder / "report.html")
