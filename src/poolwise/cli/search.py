"""`poolwise search`: a queue order of one's own, found by simulation."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from poolwise.cli.examples import examples
from poolwise.cli.executors import ExecutorAddress, ExecutorName

if TYPE_CHECKING:
    from poolwise.search.answer import SearchResult


def search(
    search: str = typer.Argument(help="SEARCH.toml, or the name of a shipped search (`poolwise list searches`)."),
    out: Path | None = typer.Option(None, help="Folder for what was tried and the answer; results/SEARCH if not given."),
    jobs: int | None = typer.Option(None, min=1, help="Processes; all cores if not given. The answer does not depend on it."),
    executor: ExecutorName = "local",
    executor_address: ExecutorAddress = None,
    set_: list[str] = typer.Option([], "--set", metavar="KEY=VALUE", help="Replace a value, such as budget.candidates=50."),
    open_test: bool = typer.Option(
        False, "--open-test", help="Try what was chosen on the test workloads; each time is counted."
    ),
    json: bool = typer.Option(False, "--json", help="Print exactly one JSON object."),
) -> None:
    """Search a space of queue orders for those under which jobs fare best; run again, it goes on.

    Actions search.json, orders.csv, candidates.csv, scheduler.toml (the order that was chosen), provenance.json, optuna.journal
    and report.html. Exits with 3 where no candidate keeps the constraints. Needs the extra "search".
    """
    from poolwise.cli.console import err, error, resumable
    from poolwise.cli.console import note as say
    from poolwise.cli.output import print_json
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

    def tell(line: str) -> None:
        err.print(line, markup=False, highlight=False, soft_wrap=True)

    with resumable(folder), find_executor(executor, executor_address, jobs) as where:
        result = run_search(loaded, folder, where, open_test=open_test, tell=tell)
    with resumable(folder):
        write_search(result, folder / "report.html")
    for note in result.notes:
        say(note)
    if json:
        print_json({**result.to_dict(), "provenance": result.provenance()})
    else:
        _print(result)
    if result.chosen is None:
        error(result.headline())
        raise typer.Exit(InfeasibleError.exit_code)


def _print(result: SearchResult) -> None:
    from rich.table import Table

    from poolwise.cli.console import out
    from poolwise.search.objectives import FARES, WORDS

    table = Table("order", "", "workloads", *(WORDS[name] for name in FARES), title=f"times {result.search.baseline.name}")
    for judged in result.judged:
        for split, found in judged.on.items():
            mark = "chosen" if judged is result.chosen else "front" if judged.on_front else ""
            table.add_row(judged.candidate.name, mark, split, *(str(found[name]) for name in FARES))
    out.print(table)
    out.print(result.headline(), style="bold", markup=False, highlight=False, soft_wrap=True)
    out.print(f"report: {result.folder / 'report.html'}", markup=False, highlight=False, soft_wrap=True)


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(epilog=examples("poolwise search cerit-order --out results/cerit-order"))(search)
