"""Usage errors: an unknown option is reported with the related commands that support it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import typer

# typer carries its own click, in which the root of all usage errors has no public name
UsageProblem: type[Exception] = typer.BadParameter.__mro__[2]

_SHOWN = 3
"""Maximum number of commands that one error names."""


def explain_usage(problem: Any) -> Any:
    """Return the usage error; for an unknown option, its message names the related commands that support the option."""
    option, context = getattr(problem, "option_name", None), problem.ctx
    if type(problem).__name__ == "NoSuchOption" and option and context is not None:
        names, root = _names(context), context.find_root().command
        commands = [*_having(root.commands[names[0]], option, f"poolwise {names[0]}")] if names else []
        if commands:
            problem.message += f". Did you mean {' or '.join(f'`{name}`' for name in commands[:_SHOWN])}?"
            problem.possibilities = None
    return problem


def _names(context: Any) -> list[str]:
    """Return the names of the commands of a context, outermost first, without the program's name."""
    return [*_names(context.parent), context.info_name] if context.parent is not None else []


def _having(command: Any, option: str, path: str) -> Iterator[str]:
    """Yield the names of the commands that have an option; a group where every command has it counts as one."""
    inner = getattr(command, "commands", {})
    if not inner:
        if any(option in subcommand.opts or option in subcommand.secondary_opts for subcommand in command.params):
            yield path
        return
    commands = [[*_having(subcommand, option, f"{path} {name}")] for name, subcommand in inner.items()]
    if all(len(names) == 1 and names[0] == f"{path} {name}" for names, name in zip(commands, inner, strict=True)):
        yield path
    else:
        yield from (name for names in commands for name in names)
