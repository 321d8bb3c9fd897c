"""Output of commands: JSON objects, tables on screen, whole files, and the provenance of results."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from poolwise.atomic_write import check_writable, write_whole
from poolwise.cli.console import error, given_warnings, note, print_line, print_lines
from poolwise.cli.tables import MOST, print_table
from poolwise.errors import InfeasibleError
from poolwise.version import __version__

if TYPE_CHECKING:
    import polars as pl

    from poolwise.presentation.answer import Answer
    from poolwise.presentation.table import Table


def print_json(content: Mapping[str, Any], source: Mapping[str, Any], notes: Iterable[str] = ()) -> None:
    """Print a result as one JSON object on stdout, with `notes`, `warnings` and `provenance` (`docs/reference/json.md`)."""
    print_object({**content, "notes": [*notes], "warnings": given_warnings(), "provenance": source})


def print_object(content: Mapping[str, Any]) -> None:
    """Print one JSON object on stdout, unchanged."""
    sys.stdout.write(json.dumps(content, indent=2, allow_nan=False) + "\n")


def show_answer(
    answer: Answer,
    content: Mapping[str, Any] | None,
    source: Mapping[str, Any],
    report: Path | None = None,
    tables: Iterable[Table] | None = None,
    more: str | None = "--json lists them",
) -> None:
    """Print an answer: as JSON if `content` is given, otherwise as text. Exit with 3 if nothing meets the targets.

    The text has the same parts in the same order as the page of an answer: the answer in one line, the decision, sentences, and
    `tables` (by default those above its figures). `more` states how to see all rows of a long table; None prints all of them.
    Notes go to stderr.
    """
    failed = answer.status != "decided" and not answer.found
    if content is not None:
        certainty = None if answer.decision is None else answer.decision.certainty
        certain = {} if certainty is None else {"certainty": {**certainty.to_dict(), **content.get("certainty", {})}}
        print_json({**content, **certain}, source, answer.notes)
    else:
        if not failed:
            print_line(answer.headline, style="bold")
        for table in [] if answer.card is None else [answer.card]:
            print_table(table)
        for heading, lines in {"": answer.because, "Workload": answer.first, **answer.sections}.items():
            if lines:
                print_line(f"\n{heading}" if heading else "", style="bold")
            print_lines(f"  {line}" for line in lines)
        for table in answer.head if tables is None else tables:
            print_table(table, None if more is None else MOST, more or "")
    for text in answer.notes:
        note(text)
    if report is not None and content is None:
        print_lines([f"report: {report}"])
    if failed:
        error(answer.headline)
        raise typer.Exit(InfeasibleError.exit_code)


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
    """Write the origin of a file next to it, as FILE.provenance.json, since tables and timelines cannot contain it."""
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
