"""Commands of other distributions: modules in the entry-point group `poolwise.commands`, which add a command when imported.

The name of an entry point consists of the command's groups and its name: "profile.measure". Commands of Poolwise's own
distributions stay on the help page if the distribution is missing; they then state how to install it.
"""

from __future__ import annotations

from importlib.metadata import entry_points
from typing import NoReturn

import typer

from poolwise.errors import PoolwiseError

GROUP = "poolwise.commands"
COMMANDS = {
    "reproduce": ("poolwise-reproductions", "Reproduce the published results of a system."),
    "overview": ("poolwise-reproductions", "Summarize reproductions on one page."),
    "agent": ("poolwise-agents", "Run a daemon that manages a node's memory or fabric devices."),
    "profile.measure": ("poolwise-agents", "Measure a program at decreasing amounts of local memory."),
}
"""Command -> distribution that contributes it, and its help."""


def contribute(app: typer.Typer) -> None:
    """Import the contributed commands; add a command that reports the problem for each one that is missing or broken."""
    installed = set()
    for point in entry_points(group=GROUP):
        installed.add(point.name)
        try:
            point.load()
        except (ImportError, AttributeError) as error:
            distribution = point.dist.name if point.dist else "an unnamed distribution"
            problem = f"cannot load the command '{point.name}' of {distribution}: {error}"
            failure = PoolwiseError(f"{problem}\n  remedy: update or uninstall {distribution}")
            _add_failing(app, point.name, "Not available: its package cannot be loaded.", failure)
    for name, (distribution, help_) in COMMANDS.items():
        if name not in installed:
            _add_failing(app, name, help_, missing_distribution(f"`poolwise {name.replace('.', ' ')}`", distribution))


def missing_distribution(what: str, distribution: str) -> PoolwiseError:
    """Return the error for a command or component of a distribution that is not installed."""
    return PoolwiseError(f"{what} requires {distribution}, which is not installed\n  remedy: pip install {distribution}")


def _add_failing(app: typer.Typer, name: str, help_: str, error: PoolwiseError) -> None:
    """Add a command that accepts any arguments and raises an error, unless a command of this name exists."""
    *groups, last = name.split(".")
    for group in groups:
        app = next(info.typer_instance for info in app.registered_groups if info.name == group and info.typer_instance)
    if last in {command.name for command in app.registered_commands}:
        return

    def fail() -> NoReturn:
        raise error

    settings = {"ignore_unknown_options": True, "allow_extra_args": True}
    app.command(last, help=help_, context_settings=settings, epilog=str(error).replace("\n  remedy", ""))(fail)
