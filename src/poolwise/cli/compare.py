"""`poolwise compare`: runs side by side."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from poolwise.cli.examples import examples

if TYPE_CHECKING:
    from poolwise.comparison.run_comparison import Comparison

_SHOWN = ("mean_bounded_slowdown", "p99_bounded_slowdown", "mean_wait_s", "throughput_per_100s", "utilization")
"""Metrics in the table on screen; the exports have all of them."""


class IntervalsOver(StrEnum):
    """What intervals are over."""

    SEEDS = "seeds"
    JOBS = "jobs"


def compare(
    runs: list[str] = typer.Argument(
        metavar="RUN...",
        help="FOLDER that `poolwise run` wrote to, FOLDER:PATH=VALUE,... for some of its runs (seed=N and keys work too), "
        "or what `poolwise simulate --schedule` wrote; or one file of `poolwise live ... --record`.",
    ),
    over: IntervalsOver | None = typer.Option(
        None, help="Intervals over the seeds (if there are 3 or more), or over the jobs."
    ),
    changed: int = typer.Option(5, min=0, help="Jobs to show that changed most, for each run and direction."),
    metric: list[str] = typer.Option(
        [], help="A metric beside those that the runs were asked for: a name from `poolwise list metrics`, or FILE.py:NAME."
    ),
    json: bool = typer.Option(False, "--json", help="Print exactly one JSON object."),
    csv: Path | None = typer.Option(None, help="Write a row for each run and metric as CSV."),
    parquet: Path | None = typer.Option(None, help="Write a row for each run and metric as Parquet."),
    report: Path | None = typer.Option(None, help="Write a report as HTML."),
) -> None:
    """Compare runs of the same jobs: metrics, paired differences from the first run, and the jobs that changed most."""
    from poolwise.cli.output import check_exports, export, print_json, provenance
    from poolwise.comparison.run_comparison import Comparison
    from poolwise.comparison.saved_run import read_runs
    from poolwise.comparison.today import with_today
    from poolwise.files.component import Component
    from poolwise.report.compare import write_comparison

    if len(runs) == 1 and runs[0].endswith(".jsonl"):
        _compare_record(Path(runs[0]), json)
        return
    check_exports(csv, parquet, report)
    kept = with_today([run for reference in runs for run in read_runs(reference)])
    asked = [Component(name=name).beside(Path()) for name in metric]
    found = Comparison.of(kept, None if over is None else over.value, asked)
    inputs = {name: sha for run in found.runs for name, sha in run.inputs.items()}
    source = provenance(None, []) | {"inputs": inputs}
    export(found.frame(), source, csv, parquet)
    if report is not None:
        write_comparison(found, changed, source, report)
    if json:
        print_json({**found.to_dict(changed), "provenance": source})
    else:
        _print(found, changed)


def _compare_record(path: Path, json: bool) -> None:
    """Show what a scheduler decided on a live cluster beside what happened there."""
    from poolwise.cli.live_record import print_record, record_content
    from poolwise.cli.output import print_json
    from poolwise.live.record import LiveRecord

    record = LiveRecord.read(path)
    if json:
        print_json(record_content(record))
    else:
        print_record(record)


def _print(found: Comparison, changed: int) -> None:
    from rich.table import Table

    from poolwise.cli.console import out
    from poolwise.comparison.sentences import population_sentence
    from poolwise.metrics import metrics_of

    table = Table("metric", "run", "value", "difference", box=None, pad_edge=False)
    table.add_column("95 % interval", no_wrap=True)
    table.add_column("")
    asked = metrics_of(found.measures)
    for name in [name for name in found.described if name in _SHOWN or name.partition(".")[0] in asked]:
        unit = found.described[name].unit
        first = _value(float(found.metrics[0][name].mean()), unit)
        table.add_row(found.described[name].description, found.labels[0], first, "", "", "")
        for d in found.differences:
            if d.metric == name:
                sure = d.interval.low == d.interval.low
                spread = f"[{_change(d.interval.low, unit)}, {_change(d.interval.high, unit)}]" if sure else ""
                table.add_row("", found.labels[d.run], _value(d.value, unit), _change(d.interval.mean, unit), spread, d.verdict)
    out.print(table)
    out.print(f"differences from {found.labels[0]}; intervals: {found.interval_of}", highlight=False, markup=False)
    out.print(population_sentence(found), highlight=False, markup=False, soft_wrap=True)
    jobs = Table("run", "job", "wait before", "wait", "change", box=None, pad_edge=False, title="jobs that changed most")
    for job in found.changed(changed):
        words = (_value(job.first_wait_s, "s"), _value(job.wait_s, "s"), _change(job.change_s, "s"))
        jobs.add_row(found.labels[job.run], str(job.id), *words)
    if jobs.row_count:
        out.print(jobs)


def _value(value: float, unit: str) -> str:
    from poolwise.units import format_time

    return format_time(value) if unit == "s" else f"{value:,.4g}"


def _change(value: float, unit: str) -> str:
    from poolwise.units import format_time

    if unit != "s" or value != value:
        return f"{value:+.3g}"
    return f"{'+' if value > 0 else '-' if value < 0 else ''}{format_time(abs(value))}"


def register(app: typer.Typer) -> None:
    """Add the command."""
    simulate = "poolwise simulate catalog:example-sacct.txt --machine cerit-racks"
    lines = [
        f"{simulate} --schedule fcfs.csv",
        f"{simulate} --order sjf --schedule sjf.csv",
        "poolwise compare fcfs.csv sjf.csv",
    ]
    app.command(epilog=examples(*lines))(compare)
