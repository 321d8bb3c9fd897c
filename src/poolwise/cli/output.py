"""How commands write: one JSON object, a table on screen, whole files, and the provenance of results."""

from __future__ import annotations

import hashlib
import io
import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.table import Table

from poolwise.atomic_write import check_writable, write_whole
from poolwise.cli.console import out
from poolwise.units import format_time
from poolwise.version import __version__

if TYPE_CHECKING:
    import polars as pl

    from poolwise.api import SimulatedRun

US_IN_SECONDS = 1e6
"""Microseconds from which on they are printed as seconds."""


def print_json(content: Mapping[str, Any]) -> None:
    """Print exactly one object on stdout."""
    sys.stdout.write(json.dumps(content, indent=2, allow_nan=False) + "\n")


def print_sentences(lines: Iterable[str]) -> None:
    """Print sentences on stdout, each on a line of its own."""
    for line in lines:
        out.print(line, markup=False, highlight=False, soft_wrap=True)


def print_run(run: SimulatedRun) -> None:
    """Print what to know of one run before its numbers, then the numbers as a table."""
    print_sentences(run.sanity.sentences)
    content = run.to_dict()
    table = Table(
        title=f"{run.schedule.workload.name} on {run.schedule.machine.name}", box=None, pad_edge=False, title_justify="left"
    )
    table.add_column("")
    table.add_column("value", justify="right")
    table.add_column("unit")
    table.add_row("jobs that ran", f"{content['jobs']:,}", "")
    for what in ("excluded", "repaired", "rejected"):
        for reason, count in content[what].items():
            table.add_row(f"{what}: {reason}", f"{count:,}", "jobs")
    for name, metric in run.described.items():
        value = run.metrics[name]
        if value == value:  # not NaN
            table.add_row(metric.description, *amount(value, metric.unit))
    table.add_row(f"simulated by the {run.engine} engine in", f"{run.wall_s:.3g}", "s")
    out.print(table)
    out.print(run.population, markup=False, highlight=False, soft_wrap=True)


def amount(value: float, unit: str) -> tuple[str, str]:
    """Value and unit as people read them: times of any length carry a unit of their own."""
    if unit == "s" or (unit == "us" and value >= US_IN_SECONDS):
        return format_time(value if unit == "s" else value / 1e6), ""
    return (f"{100 * value:.4g}", "%") if unit == "fraction" else (f"{value:,.6g}", unit)


def provenance(seed: int | None, inputs: Sequence[Path]) -> dict[str, Any]:
    """What made a result: version, command, seed (None where nothing is drawn), SHA-256 of the inputs."""
    return {
        "poolwise": __version__,
        "command": ["poolwise", *sys.argv[1:]],
        "seed": seed,
        "inputs": {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in inputs},
    }


def write_provenance(path: Path, source: Mapping[str, Any]) -> None:
    """Write where a file comes from beside it, as FILE.provenance.json: tables and timelines have no place for it."""
    write_whole(path.with_name(f"{path.name}.provenance.json"), (json.dumps(source, indent=1) + "\n").encode())


def check_exports(*paths: Path | None) -> None:
    """Refuse tables' paths before any work is done for them; raises InputError."""
    for path in paths:
        if path is not None:
            check_writable(path)


def export(frame: pl.DataFrame, source: Mapping[str, Any], csv: Path | None, parquet: Path | None) -> None:
    """Write a table where it is wanted, each whole, with where it comes from beside it."""
    if csv is not None:
        write_whole(csv, frame.write_csv().encode())
        write_provenance(csv, source)
    if parquet is not None:
        from poolwise.traces.parquet import sealed_parquet

        write_whole(parquet, sealed_parquet(frame))
        write_provenance(parquet, source)


def write_rows(path: Path, header: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    """Write rows as Parquet where the path ends in .parquet, as CSV elsewhere; whole or not at all."""
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
