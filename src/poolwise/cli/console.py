"""Where words go: results to stdout, progress and messages to stderr. Both obey NO_COLOR."""

from __future__ import annotations

from rich.console import Console

out = Console()
err = Console(stderr=True)


def error(text: str) -> None:
    """Print an error on stderr."""
    err.print("error:", style="bold red", end=" ")
    err.print(text, markup=False, highlight=False, soft_wrap=True)


def warn(text: str) -> None:
    """Print a warning on stderr."""
    err.print("warning:", style="yellow", end=" ")
    err.print(text, markup=False, highlight=False, soft_wrap=True)


def note(text: str) -> None:
    """Print what a reader must know beside the numbers on stderr."""
    err.print("note:", style="cyan", end=" ")
    err.print(text, markup=False, highlight=False, soft_wrap=True)
