"""`poolwise check-policy`: check a policy, scheduler or model against its contract."""

from __future__ import annotations

from typing import Any

import typer

from poolwise.cli.app import app
from poolwise.cli.examples import command
from poolwise.errors import UnknownNameError


@command(app, "poolwise check-policy fm", "poolwise check-policy area.py:Area", name="check-policy")
def check_policy(name: str = typer.Argument(metavar="NAME", help="MODULE:OBJECT, FILE.py:NAME or a registered name.")) -> int:
    """Check a policy, scheduler or model against its contract.

    NAME is a scheduler, queue order, backfill, placement or performance model. Prints one line per check; exits with 2 if any
    check fails.
    """
    from poolwise import conformance

    failed = 0
    for component in _components(name):
        for result in conformance.check(component):
            typer.echo(str(result))
            failed += not result.ok
    return 2 if failed else 0


def _components(name: str) -> list[Any]:
    """Return every component with this name; a registered name may belong to several groups."""
    from poolwise import registry

    if ":" in name:
        return [registry.load(name)]
    groups = ("orders", "backfills", "placements", "models", "schedulers")
    components = [registry.find(group, name) for group in groups if name in registry.names(group)]
    if not components:
        names = {names for group in groups for names in registry.names(group)}
        raise UnknownNameError.of("policy, scheduler or model", name, names)
    return components
