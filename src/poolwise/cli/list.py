"""`poolwise list`: list registered names and shipped files."""

from __future__ import annotations

from enum import StrEnum

import typer

from poolwise.catalog import PREFIX, shipped
from poolwise.cli.app import app
from poolwise.cli.contributed import missing_distribution
from poolwise.cli.examples import command
from poolwise.cli.output import print_json, provenance
from poolwise.cli.tables import print_table
from poolwise.presentation.table import Table


class ListedGroup(StrEnum):
    """Groups that can be listed."""

    ORDERS = "orders"
    BACKFILLS = "backfills"
    PLACEMENTS = "placements"
    ADMISSIONS = "admissions"
    PREEMPTIONS = "preemptions"
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


_FILES = (
    ListedGroup.STUDIES,
    ListedGroup.MACHINES,
    ListedGroup.PLANS,
    ListedGroup.BATCHES,
    ListedGroup.SEARCHES,
    ListedGroup.POWER,
    ListedGroup.PRICES,
)
"""Groups that contain only files."""


_GROUP = f"Group to list: {', '.join(ListedGroup)}."


@command(app, "poolwise list orders", "poolwise list machines", name="list")
def list_names(
    group: ListedGroup = typer.Argument(metavar="GROUP", help=_GROUP),
    json: bool = typer.Option(False, "--json", help="Print one JSON object instead of a table."),
) -> None:
    """List registered names and shipped files."""
    rows = _rows(group)
    if json:
        names = [{"name": name, "description": description} for name, description in rows]
        print_json({"group": group.value, "names": names}, provenance(None, []))
        return
    print_table(Table("", ["name", "description"], rows))


def _rows(group: ListedGroup) -> list[tuple[str, str]]:
    """Return the names of a group with their descriptions."""
    import inspect

    from poolwise import registry

    rows = []
    if group not in _FILES:
        names = registry.names(group.value)
        if group is ListedGroup.REPRODUCTIONS and not names:
            raise missing_distribution("`poolwise list reproductions`", "poolwise-reproductions")
        for name in names:
            doc = inspect.getdoc(registry.find(group.value, name)) or ""
            rows.append((name, doc.partition("\n")[0]))
    if group in (*_FILES, ListedGroup.SCHEDULERS):
        prefix = PREFIX if group is ListedGroup.SCHEDULERS else ""  # configured schedulers, in addition to their kinds
        rows += [(f"{prefix}{name}", title) for name, title in shipped(group.value)]
    return rows
