"""`poolwise plan`: what to buy so that a stated target is kept."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from poolwise.cli.examples import examples
from poolwise.cli.executors import ExecutorAddress, ExecutorName

if TYPE_CHECKING:
    from poolwise.plans.plan import Answer


def plan(
    plan: str = typer.Argument(help="PLAN.toml, or the name of a shipped plan (`poolwise list plans`)."),
    out: Path | None = typer.Option(None, help="Folder for runs, answer and report; results/PLAN if not given."),
    jobs: int | None = typer.Option(None, min=1, help="Processes; all cores if not given. The answer does not depend on it."),
    executor: ExecutorName = "local",
    executor_address: ExecutorAddress = None,
    set_: list[str] = typer.Option([], "--set", metavar="KEY=VALUE", help="Replace a value, such as plan.sensitivity=0.2."),
    json: bool = typer.Option(False, "--json", help="Print exactly one JSON object."),
    csv: Path | None = typer.Option(None, help="Write the candidates as CSV."),
    parquet: Path | None = typer.Option(None, help="Write the candidates as Parquet."),
) -> None:
    """Find the cheapest machine that keeps stated targets, by a search over simulations; run again, it goes on.

    Actions plan.json, candidates.csv, candidates.parquet, provenance.json and report.html. Exits with 3 where nothing that may
    be chosen is shown to keep the targets.
    """
    from poolwise.cli.console import err, error, resumable
    from poolwise.cli.console import note as say
    from poolwise.cli.console import out as stdout
    from poolwise.cli.output import check_exports, export, print_json, provenance
    from poolwise.errors import InfeasibleError
    from poolwise.plans import plan as plans
    from poolwise.report.plan import write_plan
    from poolwise.runner import find_executor
    from poolwise.studies.study import parse_setting

    check_exports(csv, parquet)
    loaded = plans.load_plan(plan, dict(parse_setting(text) for text in set_))
    folder = out if out is not None else Path("results") / loaded.name

    def tell(line: str) -> None:
        err.print(line, markup=False, highlight=False, soft_wrap=True)

    with resumable(folder), find_executor(executor, executor_address, jobs) as where:
        result = plans.run_plan(loaded, folder, tell=tell, executor=where)
    with resumable(folder):
        write_plan(result, folder / "report.html")
    source = provenance(None, []) | {"plan": result.provenance()}
    export(result.answer.candidates, source, csv, parquet)
    for note in result.answer.notes:
        say(note)
    if json:
        print_json({**result.to_dict(), "provenance": source})
    else:
        _print(result.answer)
        stdout.print(f"report: {folder / 'report.html'}", markup=False, highlight=False, soft_wrap=True)
    if result.answer.chosen is None:
        error(result.answer.headline)
        raise typer.Exit(InfeasibleError.exit_code)


def _print(answer: Answer) -> None:
    from poolwise.cli.console import out
    from poolwise.cli.output import print_sentences

    print_sentences(answer.first)
    out.print(answer.headline, style="bold", markup=False, highlight=False, soft_wrap=True)
    for lines in (answer.because, *answer.sections.values()):
        for line in lines:
            out.print(f"  {line}", markup=False, highlight=False, soft_wrap=True)


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(epilog=examples("poolwise plan gpu-share --out results/gpu-share"))(plan)
