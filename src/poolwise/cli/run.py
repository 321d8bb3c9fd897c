"""`poolwise run`: a study, from its file to its results and report."""

from __future__ import annotations

from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from poolwise.cli.examples import examples
from poolwise.cli.executors import ExecutorAddress, ExecutorName

if TYPE_CHECKING:
    from poolwise.studies import StudyResult

_SHOWN = {
    "mean_bounded_slowdown": "mean bounded\nslowdown",
    "p99_bounded_slowdown": "99th\npercentile",
    "mean_wait_s": "mean\nwait",
    "throughput_per_100s": "jobs per\n100 s",
    "utilization": "nodes\nused",
}
"""Metric -> heading, short enough for 80 columns."""
_MOST = 1000
"""Rows of the printed table."""


def run_study(
    study: str = typer.Argument(
        help="STUDY.toml, a folder of `poolwise snapshot`, or the name of a shipped study (`poolwise list studies`)."
    ),
    out: Path | None = typer.Option(None, help="Folder for cells, results and report; results/STUDY if not given."),
    jobs: int | None = typer.Option(None, min=1, help="Processes; all cores if not given. Results do not depend on it."),
    executor: ExecutorName = "local",
    executor_address: ExecutorAddress = None,
    set_: list[str] = typer.Option([], "--set", metavar="KEY=VALUE", help="Replace a value, such as scheduler.scope=system."),
    json: bool = typer.Option(False, "--json", help="Print exactly one JSON object."),
) -> None:
    """Run all combinations of a study on all cores, or on a cluster; run again, only missing ones are simulated.

    Actions results.csv, results.parquet, provenance.json, report.html, and every run to cells.sqlite.
    """
    from poolwise import report, studies
    from poolwise.cli.console import err, resumable, warn
    from poolwise.cli.console import out as stdout
    from poolwise.cli.output import print_json, print_sentences
    from poolwise.comparison.sentences import today_sentences
    from poolwise.runner import find_executor
    from poolwise.runner.progress import ConsoleProgress
    from poolwise.studies.diagnostics import sanity_sentences
    from poolwise.studies.study import parse_setting

    loaded = studies.load(study, dict(parse_setting(text) for text in set_))
    given = Path(study)
    folder = out if out is not None else Path("results") / (given.resolve().name if given.is_dir() else loaded.name)
    with resumable(folder), find_executor(executor, executor_address, jobs) as where:
        with ConsoleProgress(err) as progress:
            result = studies.run(loaded, folder, progress=progress, executor=where)
        left_out = report.leave_out(result, where)
    with resumable(folder):
        sanity = result.sanity()
        first = [*sanity_sentences(sanity), *([] if left_out is None else [left_out.text])]
        report.write_study_report(result, folder / "report.html", first)
    for note in result.notes():
        warn(note)
    against = report.changes_against_today(result)
    if json:
        rows = [{name: _plain(value) for name, value in row.items()} for row in result.frame().iter_rows(named=True)]
        before = {"sanity": [one.to_dict() for one in sanity], "decisive": None if left_out is None else left_out.to_dict()}
        today = {} if against is None else {"today": against.to_dict(0)}
        content = {"study": loaded.name, **before, "population": result.population_said(), "cells": rows, **today}
        print_json({**content, "notes": result.notes(), "provenance": result.provenance()})
        return
    print_sentences(first)
    stdout.print(_table(result))
    if len(result.cells) > _MOST:
        stdout.print(f"and {len(result.cells) - _MOST:,} more in {folder / 'results.csv'}", markup=False, soft_wrap=True)
    stdout.print(result.population_said(), markup=False, highlight=False, soft_wrap=True)
    for line in [] if against is None else today_sentences(against):
        stdout.print(line, markup=False, highlight=False, soft_wrap=True)
    stdout.print(f"report: {folder / 'report.html'}", markup=False, highlight=False, soft_wrap=True)


def _table(result: StudyResult) -> object:
    from rich.table import Table

    from poolwise.catalog import PREFIX

    table = Table(title=result.study.title, box=None, pad_edge=False, title_justify="left")
    paths, seeds = list(result.study.vary), len({cell.seed for cell in result.cells}) > 1
    ends = [path.rpartition(".")[2] for path in paths]
    for path, end in zip(paths, ends, strict=True):
        table.add_column(end if ends.count(end) == 1 else path, no_wrap=True)
    for name in [*(["seed"] if seeds else []), "rejected"]:
        table.add_column(name, justify="right", overflow="fold")
    for heading in _SHOWN.values():
        table.add_column(heading, justify="right", overflow="fold")
    for name in result.asked:
        table.add_column(result.described[name].description, justify="right", overflow="fold")
    for cell in result.cells[:_MOST]:
        counts = [*([str(cell.seed)] if seeds else []), f"{sum(cell.rejected.values()):,}"]
        names = [str(value).removeprefix(PREFIX) for value in cell.parameters.values()]
        table.add_row(
            *names, *counts, *(_number(cell.metrics[name], result.described[name].unit) for name in (*_SHOWN, *result.asked))
        )
    return table


def _number(value: float, unit: str) -> str:
    """Four digits, no exponent, times with a unit of their own; "-" where a metric is undefined."""
    from poolwise.units import format_time

    if value != value:
        return "-"
    if unit == "s":
        return format_time(value)
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def _plain(value: object) -> object:
    """None in the place of an undefined metric: JSON has no NaN."""
    return None if isinstance(value, float) and not isfinite(value) else value


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("run", epilog=examples("poolwise run cerit-pools --set workload.jobs=700 --set scheduler.order=fm"))(run_study)
