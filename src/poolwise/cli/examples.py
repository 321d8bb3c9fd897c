"""Registration of commands with the examples that end each help page; tests run these examples."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import typer

from poolwise.cli.option_groups import expand

PROMPT = "$ "
TICKS = "--map 'submit:10s, duration:10s, memory:GB'"
"""Columns of the shipped table with times in ticks of 10 s."""
Function = Callable[..., Any]


def command(group: typer.Typer, *lines: str, name: str | None = None, before: str = "") -> Callable[[Function], Function]:
    """Add a function to a group as a command, named as the function by default; `lines` are examples for its help page."""

    def add(function: Function) -> Function:
        group.command(name, epilog=examples(*lines, before=before))(expand(function))
        return function

    return add


def examples(*commands: str, before: str = "") -> str:
    """Return the end of a help page: the text `before`, then the commands as a user types them."""
    lines = [*([before] if before else []), "Examples:", *(f"{PROMPT}{command}" for command in commands)]
    return "\n\n".join(lines)
