"""`poolwise affinity`: published measurements as tables of affinity and power."""

from __future__ import annotations

from pathlib import Path

import typer

from poolwise.cli.examples import examples


def affinity(
    source: str = typer.Argument(help="Source of the measurements: gavel, splitwise, FILE.py:NAME or MODULE:NAME."),
    file: Path = typer.Argument(help="File of the source (plain or .gz)."),
    out: Path = typer.Option(Path(), help="Folder for NAME-types.toml, NAME-affinity.txt and, where known, NAME-power.txt."),
    name: str | None = typer.Option(None, help="Name of the files; that of the source if not given."),
    set_: list[str] = typer.Option([], "--set", metavar="KEY=VALUE", help="An option of the source, such as gpus=8."),
) -> None:
    """Convert measurements into the tables that `simulate --format vinesim` and plans read."""
    from poolwise import registry
    from poolwise.cli.console import out as console
    from poolwise.cli.output import provenance, write_provenance
    from poolwise.errors import InputError
    from poolwise.files.component import Component
    from poolwise.studies.study import parse_setting
    from poolwise.traces.affinity.tables import Measurements

    registry.find("affinities", source)
    measurements: Measurements = Component.of(source, dict(parse_setting(text) for text in set_)).make("affinities")
    if not out.is_dir():
        raise InputError("no such folder", file=out, field="--out", remedy="create it or choose another")
    tables = measurements.read(file)
    called = name if name is not None else source.rpartition(":")[2]
    for path in tables.write(out, called):
        write_provenance(path, provenance(None, [file]))
        console.print(str(path), markup=False, highlight=False, soft_wrap=True)
    for note in tables.notes:
        console.print(f"  {note}", markup=False, highlight=False, soft_wrap=True)


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(epilog=examples("poolwise affinity gavel gavel_isolated.csv --name my-gpus"))(affinity)
