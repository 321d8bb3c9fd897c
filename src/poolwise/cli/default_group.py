"""A group of commands with a default: `poolwise simulate LOG` is short for `poolwise simulate log LOG`."""

from __future__ import annotations

from typing import Any

from typer.core import TyperGroup


class DefaultGroup(TyperGroup):
    """Group that runs its command `log` if the first word names no command; the help shows the options of both."""

    default = "log"

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Insert the default command before arguments that name no command."""
        if args and args[0] not in self.commands and args[0] not in ctx.help_option_names:
            args = [self.default, *args]
        return super().parse_args(ctx, args)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Show the arguments and options of the default command above the list of commands."""
        own = self.params
        self.params = [*self.commands[self.default].params, *own]
        try:
            super().format_help(ctx, formatter)
        finally:
            self.params = own

    def shell_complete(self, ctx: Any, incomplete: str) -> Any:
        """Complete the names of commands, and the options of the default command."""
        return [*super().shell_complete(ctx, incomplete), *self.commands[self.default].shell_complete(ctx, incomplete)]
