"""`poolwise search`: search for a queue order by simulation."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import typer

from poolwise.cli.app import app
from poolwise.cli.console import note, progress, resumable
from poolwise.cli.examples import command
from poolwise.cli.output import provenance, show_answer
from poolwise.cli.shared_options import ComputeOptions, setting
from poolwise.errors import InputError


@command(app, "poolwise search cerit-order --out results/cerit-order")
def search(
    search: str = typer.Argument(
        metavar="SEARCH", help="SEARCH.toml, or the name of a shipped search (`poolwise list searches`)."
    ),
    out: Path | None = typer.Option(
        None, metavar="DIR", help="Folder for candidates and answer; defaults to results/SEARCH. Repeat the command to resume."
    ),
    compute: ComputeOptions = ComputeOptions(),
    set_: list[Any] = setting("Replace a value, such as budget.candidates=50; repeatable."),
    open_test: bool = typer.Option(
        False, "--open-test", help="Evaluate the chosen order on the test workloads; each use is counted."
    ),
    json: bool = typer.Option(False, "--json", help="Print one JSON object instead of tables."),
) -> None:
    """Search for a queue order that improves on a baseline.

    Writes search.json, orders.csv, candidates.csv, scheduler.toml (the chosen order), provenance.json, optuna.journal and
    report.html. Exits with 3 if no candidate meets the constraints. Requires the extra "search".
    """
    try:
        from poolwise.search.answer import run_search
    except ModuleNotFoundError as problem:
        if problem.name != "optuna":
            raise
        raise InputError("Optuna is not installed", remedy="pip install 'poolwise[search]'") from None
    from poolwise.report.page import write_report
    from poolwise.search.problem import load_search
    from poolwise.studies.slow_runs import slow_runs

    loaded = load_search(search, dict(set_))
    folder = out if out is not None else Path("results") / loaded.name
    for slow in slow_runs(loaded.sample_runs()):
        note(slow.text)
    with resumable(folder), compute.workers() as workers:
        result = run_search(loaded, folder, workers, open_test=open_test, report=progress)
    answer = result.answer()
    with resumable(folder):
        write_report(answer, folder / "report.html")
    source = {**provenance(None, []), **result.provenance(), "inputs": {loaded.name: loaded.sha256}}
    show_answer(answer, result.to_dict() if json else None, source, folder / "report.html", answer.tables)
