"""`poolwise search`: search for a queue order by simulation."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from poolwise.cli.examples import examples
from poolwise.cli.executors import ExecutorAddress, ExecutorName

if TYPE_CHECKING:
    from poolwise.search.answer import SearchResult


def search(
    search: str = typer.Argument(
        metavar="SEARCH", help="SEARCH.toml, or the name of a shipped search (`poolwise list searches`)."
    ),
    out: Path | None = typer.Option(
        None, metavar="DIR", help="Folder for candidates and answer; defaults to results/SEARCH. Repeat the command to resume."
    ),
    jobs: int | None = typer.Option(None, min=1, help="Number of processes; defaults to all cores."),
    executor: ExecutorName = "local",
    executor_address: ExecutorAddress = None,
    set_: list[str] = typer.Option(
        [], "--set", metavar="KEY=VALUE", help="Replace a value, such as budget.candidates=50; repeatable."
    ),
    open_test: bool = typer.Option(
        False, "--open-test", help="Evaluate the chosen order on the test workloads; each use is counted."
    ),
    json: bool = typer.Option(False, "--json", help="Print one JSON object instead of tables."),
) -> None:
    """Search for a queue order that improves on a baseline.

    Writes search.json, orders.csv, candidates.csv, scheduler.toml (the chosen order), provenance.json, optuna.journal and
    report.html. Exits with 3 if no candidate meets the constraints. Requires the extra "search".
    """
    from poolwise.cli.console import error, note, progress, resumable
    from poolwise.cli.output import print_json, provenance
    from poolwise.errors import InfeasibleError, InputError
    from poolwise.studies.study import parse_setting

    try:
        from poolwise.search.answer import run_search
    except ModuleNotFoundError as problem:
        if problem.name != "optuna":
            raise
        raise InputError("Optuna is not installed", remedy="pip install 'poolwise[search]'") from None
    from poolwise.report.search import write_search
    from poolwise.runner import find_executor
    from poolwise.search.problem import load_search

    loaded = load_search(search, dict(parse_setting(text) for text in set_))
    folder = out if out is not None else Path("results") / loaded.name
    with resumable(folder), find_executor(executor, executor_address, jobs) as workers:
        result = run_search(loaded, folder, workers, open_test=open_test, report=progress)
    with resumable(folder):
        write_search(result, folder / "report.html")
    for text in result.notes:
        note(text)
    if json:
        inputs: dict[str, Any] = {loaded.name: loaded.sha256}
        print_json(result.to_dict(), {**provenance(None, []), **result.provenance(), "inputs": inputs}, result.notes)
    else:
        _print(result)
    if result.chosen is None:
        error(result.headline())
        raise typer.Exit(InfeasibleError.exit_code)


def _print(result: SearchResult) -> None:
    from poolwise.cli.console import print_line
    from poolwise.cli.tables import plain_table, print_table
    from poolwise.search.objectives import OBJECTIVE_LABELS, OBJECTIVES

    headings = ("order", "", "workloads", *(OBJECTIVE_LABELS[name] for name in OBJECTIVES))
    table = plain_table(*headings, title=f"objectives as multiples of {result.search.baseline.name}")
    for judged in result.judged:
        for split, found in judged.on.items():
            mark = "chosen" if judged is result.chosen else "front" if judged.on_front else ""
            table.add_row(judged.candidate.name, mark, split, *(str(found[name]) for name in OBJECTIVES))
    print_table(table)
    print_line(result.headline(), style="bold")
    print_line(f"report: {result.folder / 'report.html'}")


def register(app: typer.Typer) -> None:
    """Register the command."""
    app.command(epilog=examples("poolwise search cerit-order --out results/cerit-order"))(search)
