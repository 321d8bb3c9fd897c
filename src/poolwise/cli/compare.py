"""`poolwise compare`: compare runs of the same jobs."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path

import typer

from poolwise.cli.app import app
from poolwise.cli.examples import command
from poolwise.cli.output import check_exports, export, provenance, show_answer


class IntervalsOver(StrEnum):
    """Sampling units of confidence intervals."""

    SEEDS = "seeds"
    JOBS = "jobs"


@command(
    app,
    "poolwise simulate catalog:example-sacct.txt --machine cerit-racks --schedule fcfs.csv",
    "poolwise simulate catalog:example-sacct.txt --machine cerit-racks --order sjf --schedule sjf.csv",
    "poolwise compare fcfs.csv sjf.csv",
)
def compare(
    runs: list[str] = typer.Argument(
        metavar="RUN...",
        help="Results of `poolwise run` (FOLDER, or FOLDER:PATH=VALUE,... to select runs, also by seed=N or key), "
        "schedules of `poolwise simulate --schedule`, or one record of `poolwise live ... --record`.",
    ),
    over: IntervalsOver | None = typer.Option(
        None, help="Compute intervals over seeds or over jobs; defaults to seeds if there are at least 3."
    ),
    changed: int = typer.Option(5, min=0, help="Number of most-changed jobs to list, per run and direction."),
    metric: list[str] = typer.Option(
        [], metavar="NAME", help="Additional metric: a name from `poolwise list metrics`, or FILE.py:NAME; repeatable."
    ),
    json: bool = typer.Option(False, "--json", help="Print one JSON object instead of tables."),
    csv: Path | None = typer.Option(None, metavar="FILE", help="Write one row per run and metric as CSV."),
    parquet: Path | None = typer.Option(None, metavar="FILE", help="Write one row per run and metric as Parquet."),
    report: Path | None = typer.Option(None, metavar="FILE.html", help="Write an HTML report."),
) -> None:
    """Compare runs of the same jobs.

    Prints the metrics, their paired differences from the first run with confidence intervals, and the jobs that changed most.
    """
    from poolwise.comparison.compare import prepend_today
    from poolwise.comparison.run_comparison import Comparison
    from poolwise.comparison.saved_run import read_runs
    from poolwise.files.component import Component
    from poolwise.report.compare import comparison_answer
    from poolwise.report.page import write_report

    if len(runs) == 1 and runs[0].endswith(".jsonl"):
        _compare_record(Path(runs[0]), json)
        return
    check_exports(csv, parquet, report)
    saved = prepend_today([run for reference in runs for run in read_runs(reference)])
    additional = [Component(name=name).in_folder("metrics", Path()) for name in metric]
    comparison = Comparison.of(saved, None if over is None else over.value, additional)
    inputs = {name: sha for run in comparison.runs for name, sha in run.inputs.items()}
    source = provenance(None, []) | {"inputs": inputs}
    export(comparison.frame(), source, csv, parquet)
    answer = comparison_answer(comparison, changed, source)
    if report is not None:
        write_report(answer, report)
    show_answer(answer, answer.content if json else None, source, report, more="--csv FILE lists them")


def _compare_record(path: Path, json: bool) -> None:
    """Compare the decisions of a scheduler on a live cluster with the actual starts."""
    from poolwise.cli.live_record import record_answer, warn_of_truncation
    from poolwise.live.record import LiveRecord

    record = LiveRecord.read(path)
    warn_of_truncation(record)
    answer = record_answer(record)
    show_answer(answer, answer.content if json else None, provenance(None, [path]))
