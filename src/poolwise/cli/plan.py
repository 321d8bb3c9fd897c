"""`poolwise plan`: find the cheapest machine that meets stated targets."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from poolwise.cli.examples import examples
from poolwise.cli.executors import ExecutorAddress, ExecutorName

if TYPE_CHECKING:
    from poolwise.plans.plan import Answer


def plan(
    plan: str = typer.Argument(metavar="PLAN", help="PLAN.toml, or the name of a shipped plan (`poolwise list plans`)."),
    out: Path | None = typer.Option(
        None, metavar="DIR", help="Folder for runs, answer and report; defaults to results/PLAN. Repeat the command to resume."
    ),
    jobs: int | None = typer.Option(None, min=1, help="Number of processes; defaults to all cores."),
    executor: ExecutorName = "local",
    executor_address: ExecutorAddress = None,
    set_: list[str] = typer.Option(
        [], "--set", metavar="KEY=VALUE", help="Replace a value, such as plan.sensitivity=0.2; repeatable."
    ),
    json: bool = typer.Option(False, "--json", help="Print one JSON object instead of text."),
    csv: Path | None = typer.Option(None, metavar="FILE", help="Write the candidates as CSV."),
    parquet: Path | None = typer.Option(None, metavar="FILE", help="Write the candidates as Parquet."),
) -> None:
    """Find the cheapest machine that meets stated targets.

    Searches by simulation. Writes plan.json, candidates.csv, candidates.parquet, provenance.json and report.html. Exits with 3
    if no candidate is shown to meet the targets.
    """
    from poolwise.cli.console import error, note, print_line, progress, resumable
    from poolwise.cli.output import check_exports, export, print_json, provenance
    from poolwise.errors import InfeasibleError
    from poolwise.plans import plan as plans
    from poolwise.report.plan import write_plan
    from poolwise.runner import find_executor
    from poolwise.studies.study import parse_setting

    check_exports(csv, parquet)
    loaded = plans.load_plan(plan, dict(parse_setting(text) for text in set_))
    folder = out if out is not None else Path("results") / loaded.name
    with resumable(folder), find_executor(executor, executor_address, jobs) as workers:
        result = plans.run_plan(loaded, folder, tell=progress, executor=workers)
    with resumable(folder):
        write_plan(result, folder / "report.html")
    source = provenance(None, []) | {"inputs": dict(result.answer.inputs), "plan": result.provenance()}
    export(result.answer.candidates, source, csv, parquet)
    for text in result.answer.notes:
        note(text)
    if json:
        print_json(result.to_dict(), source, result.answer.notes)
    else:
        _print(result.answer)
        print_line(f"report: {folder / 'report.html'}")
    if result.answer.chosen is None:
        error(result.answer.headline)
        raise typer.Exit(InfeasibleError.exit_code)


def _print(answer: Answer) -> None:
    from poolwise.cli.console import print_line, print_lines

    print_lines(answer.first)
    print_line(answer.headline, style="bold")
    for lines in (answer.because, *answer.sections.values()):
        print_lines(f"  {line}" for line in lines)


def register(app: typer.Typer) -> None:
    """Register the command."""
    app.command(epilog=examples("poolwise plan gpu-share --out results/gpu-share"))(plan)
