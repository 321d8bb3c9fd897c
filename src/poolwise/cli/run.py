"""`poolwise run`: run a study from its file to results and report."""

from __future__ import annotations

from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from poolwise.catalog import PREFIX
from poolwise.cli.app import app
from poolwise.cli.console import err, note, resumable
from poolwise.cli.examples import command
from poolwise.cli.output import show_answer
from poolwise.cli.shared_options import ComputeOptions, setting
from poolwise.presentation.table import Table
from poolwise.quantities import format_time

if TYPE_CHECKING:
    from poolwise.studies import StudyResult

_SHOWN = {
    "mean_bounded_slowdown": "mean bounded slowdown",
    "p99_bounded_slowdown": "99th percentile",
    "mean_wait_s": "mean wait",
    "throughput_per_100s": "jobs per 100 s",
    "utilization": "nodes used",
}
"""Metric -> heading, short enough for 80 columns."""


@command(app, "poolwise run cerit-pools --set workload.jobs=700 --set scheduler.order=fm", name="run")
def run_study(
    study: str = typer.Argument(
        metavar="STUDY",
        help="STUDY.toml, a folder of `poolwise snapshot`, or the name of a shipped study (`poolwise list studies`).",
    ),
    out: Path | None = typer.Option(
        None,
        metavar="DIR",
        help="Folder for cells, results and report; defaults to results/STUDY. Repeat the command to resume.",
    ),
    compute: ComputeOptions = ComputeOptions(),
    set_: list[Any] = setting("Replace a value, such as scheduler.scope=system; repeatable."),
    json: bool = typer.Option(False, "--json", help="Print one JSON object instead of tables."),
) -> None:
    """Run all combinations of a study and write a report.

    Simulates only missing combinations, on all cores or on a cluster. Writes results.csv, results.parquet, provenance.json,
    report.html, and every run to cells.sqlite.
    """
    from poolwise import report, studies
    from poolwise.report.page import write_report
    from poolwise.report.study import study_answer
    from poolwise.runner.progress import ConsoleProgress
    from poolwise.studies.cell_store import CellStore
    from poolwise.studies.diagnostics import diagnostic_sentences
    from poolwise.studies.slow_runs import slow_runs

    loaded = studies.load(study, dict(set_))
    file = Path(study)
    folder = out if out is not None else Path("results") / (file.resolve().name if file.is_dir() else loaded.name)
    store = CellStore(folder)
    for slow in slow_runs(cell for cell in loaded.runs if not store.holds(cell.key)):
        note(slow.text)
    with resumable(folder), compute.workers() as workers:
        with ConsoleProgress(err) as progress:
            result = studies.run(loaded, folder, progress=progress, executor=workers)
        left_out = report.leave_out(result, workers)
    with resumable(folder):
        sanity = result.diagnostics()
        first = [*diagnostic_sentences(sanity), *([] if left_out is None else [left_out.text])]
        answer = study_answer(result, first)
        write_report(answer, folder / "report.html")
    content = None
    if json:
        against = report.changes_against_today(result)
        rows = [{name: _plain(value) for name, value in row.items()} for row in result.frame().iter_rows(named=True)]
        decisive = None if left_out is None else left_out.to_dict()
        before = {"sanity": [check.to_dict() for check in sanity], "decisive": decisive}
        today = {} if against is None else {"today": against.to_dict(0)}
        content = {"study": loaded.name, **before, "population": result.population_text(), "cells": rows, **today}
    show_answer(
        answer, content, _source(result), folder / "report.html", [_table(result)], f"{folder / 'results.csv'} lists them"
    )


def _source(result: StudyResult) -> dict[str, Any]:
    """Return the provenance of a study with the same keys as in all JSON output; `seed` is None for several seeds."""
    source = result.provenance()
    seeds = source["seeds"]
    inputs = {**source["traces_sha256"], result.study.name: result.study.sha256}
    return {**source, "seed": seeds[0] if len(seeds) == 1 else None, "inputs": inputs}


def _table(result: StudyResult) -> Table:
    paths, seeds = list(result.study.vary), len({cell.seed for cell in result.cells}) > 1
    ends = [path.rpartition(".")[2] for path in paths]
    varied = [end if ends.count(end) == 1 else path for path, end in zip(paths, ends, strict=True)]
    additional = [result.described[name].description for name in result.more_metrics]
    shown = [name for name in _SHOWN if name not in result.hidden_metrics]
    columns = [*varied, *(["seed"] if seeds else []), "rejected", *(_SHOWN[name] for name in shown), *additional]
    rows = [
        [
            *(str(value).removeprefix(PREFIX) for value in cell.parameters.values()),
            *([str(cell.seed)] if seeds else []),
            f"{sum(cell.rejected.values()):,}",
            *(_number(cell.metrics[name], result.described[name].unit) for name in (*shown, *result.more_metrics)),
        ]
        for cell in result.cells
    ]
    return Table(result.study.title, columns, rows, result.population_text())


def _number(value: float, unit: str) -> str:
    """Format a number with four digits and no exponent, or a time with its unit; "-" for an undefined metric."""
    if value != value:
        return "-"
    if unit == "s":
        return format_time(value)
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def _plain(value: object) -> object:
    """Return the value of a metric, or None if it is undefined, since JSON has no NaN."""
    return None if isinstance(value, float) and not isfinite(value) else value
