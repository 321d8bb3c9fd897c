"""`poolwise affinity`: convert published measurements into tables of affinity and power."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import typer

from poolwise.cli.app import app
from poolwise.cli.console import print_line, print_verbatim
from poolwise.cli.examples import command
from poolwise.cli.output import provenance, write_provenance
from poolwise.cli.shared_options import setting
from poolwise.errors import InputError


@command(app, "poolwise affinity gavel gavel_isolated.csv --name my-gpus")
def affinity(
    source: str = typer.Argument(
        metavar="SOURCE", help="Source of the measurements: gavel, splitwise, FILE.py:NAME or MODULE:NAME."
    ),
    file: Path = typer.Argument(metavar="FILE", help="Source file (plain or .gz)."),
    out: Path = typer.Option(
        Path(), metavar="DIR", help="Folder for NAME-types.toml, NAME-affinity.txt and, if available, NAME-power.txt."
    ),
    name: str | None = typer.Option(None, metavar="NAME", help="Base name of the files; defaults to the source."),
    set_: list[Any] = setting("Setting of the source, such as gpus=8; repeatable."),
) -> None:
    """Convert measurements into affinity and power tables.

    `poolwise simulate vinesim` and plans read the tables.
    """
    from poolwise import registry
    from poolwise.files.component import Component
    from poolwise.traces.affinity.tables import Measurements

    registry.find("affinities", source)
    measurements: Measurements = Component.of(source, dict(set_)).make("affinities")
    if not out.is_dir():
        raise InputError("no such folder", file=out, field="--out", remedy="create it or choose another")
    tables = measurements.read(file)
    base = name if name is not None else source.rpartition(":")[2]
    for path in tables.write(out, base):
        write_provenance(path, provenance(None, [file]))
        print_verbatim(str(path))
    for note in tables.notes:
        print_line(f"  {note}")
