"""`poolwise list`: what there is to choose from."""

from __future__ import annotations

from enum import StrEnum

import typer


class What(StrEnum):
    """Groups that can be listed."""

    ORDERS = "orders"
    BACKFILLS = "backfills"
    PLACEMENTS = "placements"
    MODELS = "models"
    SCHEDULERS = "schedulers"
    FORMATS = "formats"
    GENERATORS = "generators"
    REPRODUCTIONS = "reproductions"
    STUDIES = "studies"
    MACHINES = "machines"


def list_names(what: What = typer.Argument(help="What to list.")) -> None:
    """List orders, backfills, placements, models, schedulers, formats, or the studies and machines that are shipped."""
    import inspect

    from rich.table import Table

    from poolwise import registry
    from poolwise.catalog import shipped
    from poolwise.cli.console import out

    table = Table("name", "what it is", box=None, pad_edge=False)
    if what in (What.STUDIES, What.MACHINES):
        for name, title in shipped(what.value):
            table.add_row(name, title)
    else:
        for name in registry.names(what.value):
            doc = inspect.getdoc(registry.find(what.value, name)) or ""
            table.add_row(name, doc.partition("\n")[0])
    out.print(table)


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("list")(list_names)
