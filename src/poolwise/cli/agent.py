"""`poolwise agent`: the daemons that run on single nodes."""

from __future__ import annotations

import typer

agents = typer.Typer(help="Run a daemon on a node: for its memory or for fabric devices.", no_args_is_help=True)


def register(app: typer.Typer) -> None:
    """Register the group; each daemon registers its own command in it."""
    app.add_typer(agents, name="agent")
