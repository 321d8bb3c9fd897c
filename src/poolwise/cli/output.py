"""Output of commands: JSON objects, tables on screen, whole files, and the provenance of results."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
from rich.table import Column, Table

from poolwise.atomic_write import check_writable, write_whole
from poolwise.cli.console import error, given_warnings, note, print_line, print_lines
from poolwise.cli.tables import plain_table, print_table
from poolwise.errors import InfeasibleError
from poolwise.units import format_time
from poolwise.version import __version__

if TYPE_CHECKING:
    import polars as pl

    from poolwise.api import SimulatedRun
    from poolwise.presentation import table as presentation
    from poolwise.presentation.answer import Answer

US_IN_SECONDS = 1e6
"""Times of at least this many microseconds are printed in seconds."""


def print_json(content: Mapping[str, Any], source: Mapping[str, Any], notes: Iterable[str] = ()) -> None:
    """Print a result as one JSON object on stdout, with `notes`, `warnings` and `provenance` (`docs/reference/json.md`)."""
    print_object({**content, "notes": [*notes], "warnings": given_warnings(), "provenance": source})


def print_object(content: Mapping[str, Any]) -> None:
    """Print one JSON object on stdout as it is."""
    sys.stdout.write(json.dumps(content, indent=2, allow_nan=False) + "\n")


def show_answer(
    answer: Answer,
    content: Mapping[str, Any] | None,
    source: Mapping[str, Any],
    report: Path | None = None,
    tables: Iterable[Table] = (),
) -> None:
    """Print an answer with its notes: as JSON if `content` is given, otherwise as text. Exit with 3 if nothing was found.

    The text has the sentences to read first, tables, the answer in one line, its reasons, and the path of the report.
    """
    for text in answer.notes:
        note(text)
    if content is not None:
        print_json(content, source, answer.notes)
    else:
        print_lines(answer.first)
        for table in tables:
            print_table(table)
        print_line(answer.headline, style="bold")
        for lines in (answer.because, *answer.sections.values()):
            print_lines(f"  {line}" for line in lines)
        print_lines([] if report is None else [f"report: {report}"])
    if not answer.found:
        error(answer.headline)
        raise typer.Exit(InfeasibleError.exit_code)


def printable(found: presentation.Table) -> Table:
    """Return a table of an answer as a table for the terminal."""
    table = plain_table(*found.columns)
    for row in found.rows:
        table.add_row(*row)
    return table


def print_run(run: SimulatedRun) -> None:
    """Print the diagnostics of one run, then its metrics as a table."""
    print_lines(run.sanity.sentences)
    content = run.to_dict()
    table = plain_table(
        "", Column("value", justify="right"), "unit", title=f"{run.schedule.workload.name} on {run.schedule.machine.name}"
    )
    table.add_row("jobs that ran", f"{content['jobs']:,}", "")
    for kind in ("excluded", "repaired", "rejected"):
        for reason, count in content[kind].items():
            table.add_row(f"{kind}: {reason}", f"{count:,}", "jobs")
    for name, metric in run.described.items():
        value = run.metrics[name]
        if value == value:  # not NaN
            table.add_row(metric.description, *amount(value, metric.unit))
    table.add_row(f"simulated by the {run.engine} engine in", f"{run.wall_s:.3g}", "s")
    print_table(table)
    print_line(run.population)


def amount(value: float, unit: str) -> tuple[str, str]:
    """Return value and unit for people: times carry a unit that suits their length."""
    if unit == "s" or (unit == "us" and value >= US_IN_SECONDS):
        return format_time(value if unit == "s" else value / 1e6), ""
    return (f"{100 * value:.4g}", "%") if unit == "fraction" else (f"{value:,.6g}", unit)


def provenance(seed: int | None, inputs: Iterable[Path]) -> dict[str, Any]:
    """Return the origin of a result: version, command, random seed (None if unused) and SHA-256 of the input files."""
    import hashlib

    return {
        "poolwise": __version__,
        "command": ["poolwise", *sys.argv[1:]],
        "seed": seed,
        "inputs": {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in inputs},
    }


def write_provenance(path: Path, source: Mapping[str, Any]) -> None:
    """Write the origin of a file next to it, as FILE.provenance.json: tables and timelines have no place for it."""
    write_whole(path.with_name(f"{path.name}.provenance.json"), (json.dumps(source, indent=1) + "\n").encode())


def check_exports(*paths: Path | None) -> None:
    """Check that the paths of exports can be written before the computation starts; raises InputError."""
    for path in paths:
        if path is not None:
            check_writable(path)


def export(frame: pl.DataFrame, source: Mapping[str, Any], csv: Path | None, parquet: Path | None) -> None:
    """Write a table atomically as CSV, Parquet or both, each with its provenance file."""
    if csv is not None:
        write_whole(csv, frame.write_csv().encode())
        write_provenance(csv, source)
    if parquet is not None:
        from poolwise.traces.parquet import sealed_parquet

        write_whole(parquet, sealed_parquet(frame))
        write_provenance(parquet, source)


def write_rows(path: Path, header: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    """Write rows atomically: as Parquet if the path ends in .parquet, otherwise as CSV."""
    if path.suffix == ".parquet":
        import polars as pl

        from poolwise.traces.parquet import sealed_parquet

        write_whole(path, sealed_parquet(pl.DataFrame(rows, schema=list(header), orient="row")))
        return
    import csv

    text = io.StringIO()
    table = csv.writer(text, lineterminator="\n")
    table.writerows([header, *rows])
    write_whole(path, text.getvalue().encode())
