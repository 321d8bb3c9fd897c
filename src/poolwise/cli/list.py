"""`poolwise list`: list registered names and shipped files."""

from __future__ import annotations

from enum import StrEnum

import typer

from poolwise.cli.examples import examples


class What(StrEnum):
    """Groups that can be listed."""

    ORDERS = "orders"
    BACKFILLS = "backfills"
    PLACEMENTS = "placements"
    ADMISSIONS = "admissions"
    COSTS = "costs"
    MODELS = "models"
    SCHEDULERS = "schedulers"
    FORMATS = "formats"
    GENERATORS = "generators"
    MEMORY_USES = "memory_uses"
    MACHINE_FORMATS = "machine_formats"
    AFFINITIES = "affinities"
    METHODS = "methods"
    METRICS = "metrics"
    REPRODUCTIONS = "reproductions"
    STUDIES = "studies"
    MACHINES = "machines"
    PLANS = "plans"
    BATCHES = "batches"
    SEARCHES = "searches"
    POWER = "power"
    PRICES = "prices"


SHIPPED = (What.STUDIES, What.MACHINES, What.PLANS, What.BATCHES, What.SEARCHES, What.POWER, What.PRICES)
"""Groups that hold files and nothing else."""


def list_names(what: What = typer.Argument(help="What to list.")) -> None:
    """List orders, backfills, placements, models, formats, ..., or shipped schedulers, studies, machines and plans."""
    import inspect

    from rich.table import Table

    from poolwise import registry
    from poolwise.catalog import PREFIX, shipped
    from poolwise.cli.console import out

    table = Table("name", "what it is", box=None, pad_edge=False)
    if what not in SHIPPED:
        for name in registry.names(what.value):
            doc = inspect.getdoc(registry.find(what.value, name)) or ""
            table.add_row(name, doc.partition("\n")[0])
    if what in (*SHIPPED, What.SCHEDULERS):
        prefix = PREFIX if what is What.SCHEDULERS else ""  # configured ones, beside the kinds that they are made of
        for name, title in shipped(what.value):
            table.add_row(f"{prefix}{name}", title)
    out.print(table)


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("list", epilog=examples("poolwise list orders", "poolwise list machines"))(list_names)
