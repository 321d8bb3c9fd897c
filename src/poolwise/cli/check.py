"""`poolwise check`: does a policy, scheduler or model keep its contract."""

from __future__ import annotations

from typing import Any

import typer

from poolwise.cli.examples import examples


def check(
    what: str = typer.Argument(metavar="NAME", help="MODULE:OBJECT, FILE.py:NAME or a registered name."),
) -> int:
    """Check a scheduler, queue order, backfill, placement or performance model, and print a line for each promise."""
    from poolwise import conformance

    failed = 0
    for thing in _things(what):
        for result in conformance.check(thing):
            typer.echo(str(result))
            failed += not result.ok
    return 2 if failed else 0


def _things(what: str) -> list[Any]:
    """Everything that a name means; a registered name may belong to several groups."""
    from poolwise import registry
    from poolwise.errors import UnknownNameError

    if ":" in what:
        return [registry.load(what)]
    groups = ("orders", "backfills", "placements", "models", "schedulers")
    found = [registry.find(group, what) for group in groups if what in registry.names(group)]
    if not found:
        known = {name for group in groups for name in registry.names(group)}
        raise UnknownNameError.of("policy, scheduler or model", what, known)
    return found


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("check", epilog=examples("poolwise check fm", "poolwise check area.py:Area"))(check)
