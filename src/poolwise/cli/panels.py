"""Panels of help pages: which commands and options are listed together, and in which order."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import typer

from poolwise.cli.default_group import DefaultGroup

PANELS: Mapping[str, tuple[str, ...]] = {
    "Simulate and compare": ("simulate", "run", "compare", "explain", "reproduce", "overview"),
    "Plan": ("plan", "search", "place", "calibrate"),
    "Live clusters": ("live", "forecast", "snapshot", "agent"),
    "Data": ("trace", "import", "profile", "affinity"),
    "Tools": ("list", "validate", "schema", "check-policy", "serve", "compile"),
}
"""Panel of `poolwise --help` -> its commands, in order."""

MOST = 12
"""Number of options in one panel; a command with fewer options has only one panel."""

COMMON, SCHEDULER, LOG, MEMORY, TABLES = "Common options", "Scheduler", "Log format", "Memory", "Tables"
OUTPUT, SERVICE, ADVANCED = "Output", "Service", "Advanced"
OTHERS = "Other packages"
"""Panel of the commands that no panel lists: other packages contribute them."""
_ORDER = (COMMON, SCHEDULER, LOG, MEMORY, TABLES, OUTPUT, SERVICE, ADVANCED)
"""Panels of options, in the order of help pages."""


def arrange(root: Any) -> None:
    """Assign all commands and options to their panels, in order."""
    named = [(name, panel) for panel, names in PANELS.items() for name in names]
    named += [(name, OTHERS) for name in sorted({*root.commands} - {name for name, _ in named})]
    for name, panel in named:
        root.commands[name].rich_help_panel = panel
    order = [name for name, _ in named]
    root.commands = {name: root.commands[name] for name in sorted(root.commands, key=order.index)}
    for command in _each(root):
        _arrange_options(command)


def _each(command: Any) -> Iterator[Any]:
    yield command
    for inner in getattr(command, "commands", {}).values():
        yield from _each(inner)


def _arrange_options(command: Any) -> None:
    """Show few options in one panel, and many in several panels; flags show no type, since they take no value."""
    help_option = command.get_help_option(typer.Context(command))
    default = [] if not isinstance(command, DefaultGroup) else command.commands[command.default].params
    count = len([*_options(command.params), *_options(default)]) + 1
    for option in (*_options(command.params), help_option):
        if option.is_flag:
            option.metavar = ""
        option.rich_help_panel = None if count <= MOST else option.rich_help_panel or COMMON
    if count > MOST:
        command.params = sorted(command.params, key=_rank)


def _options(parameters: Iterable[Any]) -> list[Any]:
    return [parameter for parameter in parameters if parameter.param_type_name == "option"]


def _rank(parameter: Any) -> int:
    """Return the position of a parameter's panel; arguments come first."""
    return -1 if parameter.param_type_name == "argument" else _ORDER.index(parameter.rich_help_panel)
