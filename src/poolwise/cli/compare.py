"""`poolwise compare`: compare runs of the same jobs."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

import typer
from rich.table import Column

from poolwise.cli.app import app
from poolwise.cli.console import print_line
from poolwise.cli.examples import command
from poolwise.cli.output import check_exports, export, print_json, provenance
from poolwise.cli.tables import plain_table, print_table
from poolwise.units import format_time

if TYPE_CHECKING:
    from poolwise.comparison.run_comparison import Comparison

_SHOWN = ("mean_bounded_slowdown", "p99_bounded_slowdown", "mean_wait_s", "throughput_per_100s", "utilization")
"""Metrics in the printed table; exports contain all metrics."""


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
        help="Results of `poolwise run` (FOLDER, or FOLDER:PATH=VALUE,... for some of its runs; seed=N and keys work too), "
        "schedules of `poolwise simulate --schedule`, or one record of `poolwise live ... --record`.",
    ),
    over: IntervalsOver | None = typer.Option(
        None, help="Compute intervals over seeds or jobs; by default over seeds if there are at least 3."
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

    Prints metrics, paired differences from the first run with confidence intervals, and the jobs that changed most.
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
    found = Comparison.of(saved, None if over is None else over.value, additional)
    inputs = {name: sha for run in found.runs for name, sha in run.inputs.items()}
    source = provenance(None, []) | {"inputs": inputs}
    export(found.frame(), source, csv, parquet)
    if report is not None:
        write_report(comparison_answer(found, changed, source), report)
    if json:
        print_json(found.to_dict(changed), source)
    else:
        _print(found, changed)


def _compare_record(path: Path, json: bool) -> None:
    """Compare the decisions of a scheduler on a live cluster with the actual starts."""
    from poolwise.cli.live_record import print_record, record_content, warn_of_truncation
    from poolwise.live.record import LiveRecord

    record = LiveRecord.read(path)
    warn_of_truncation(record)
    if json:
        print_json(record_content(record), provenance(None, [path]))
    else:
        print_record(record)


def _print(found: Comparison, changed: int) -> None:
    from poolwise.comparison.sentences import population_sentence
    from poolwise.metrics import metrics_of

    table = plain_table("metric", "run", "value", "difference", Column("95 % interval", no_wrap=True), "")
    requested = metrics_of(found.measures)
    for name in [name for name in found.described if name in _SHOWN or name.partition(".")[0] in requested]:
        unit = found.described[name].unit
        first = _value(float(found.metrics[0][name].mean()), unit)
        table.add_row(found.described[name].description, found.labels[0], first, "", "", "")
        for d in found.differences:
            if d.metric == name:
                known = d.interval.low == d.interval.low  # not NaN
                bounds = f"[{_change(d.interval.low, unit)}, {_change(d.interval.high, unit)}]" if known else ""
                table.add_row("", found.labels[d.run], _value(d.value, unit), _change(d.interval.mean, unit), bounds, d.verdict)
    print_table(table)
    print_line(f"differences from {found.labels[0]}; intervals: {found.interval_of}")
    print_line(population_sentence(found))
    jobs = plain_table("run", "job", "wait before", "wait", "change", title="jobs that changed most")
    for job in found.changed(changed):
        waits = (_value(job.first_wait_s, "s"), _value(job.wait_s, "s"), _change(job.change_s, "s"))
        jobs.add_row(found.labels[job.run], str(job.id), *waits)
    if jobs.row_count:
        print_table(jobs)


def _value(value: float, unit: str) -> str:

    return format_time(value) if unit == "s" else f"{value:,.4g}"


def _change(value: float, unit: str) -> str:

    if unit != "s" or value != value:
        return f"{value:+.3g}"
    return f"{'+' if value > 0 else '-' if value < 0 else ''}{format_time(abs(value))}"
