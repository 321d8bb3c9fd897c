"""Where words go: results to stdout, progress and messages to stderr. Both obey NO_COLOR."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console

from poolwise.errors import PoolwiseError

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


INTERRUPTED = 130
"""Exit code after Ctrl-C, as of other programs."""


class StoppedError(PoolwiseError):
    """The user has stopped a command that can go on."""

    exit_code = INTERRUPTED


@contextmanager
def resumable(folder: Path) -> Iterator[None]:
    """Say on Ctrl-C how to go on: what has finished is kept in a folder."""
    try:
        yield
    except KeyboardInterrupt:
        problem = f"interrupted; what has finished is kept in {folder}: give the same command again and it goes on from there"
        raise StoppedError(problem) from None
