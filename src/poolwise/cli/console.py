"""Terminal output: results go to stdout, progress and messages to stderr. Both streams honor NO_COLOR.

Sentences wrap between words on a terminal and stay on one line in a pipe, where other programs read them. Long lists
wrap in both.
"""

from __future__ import annotations

import os
import textwrap
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rich.console import Console

from poolwise.errors import PoolwiseError


def styled_console(**how: Any) -> Console:
    """Return a console that uses styles only on a terminal; with NO_COLOR, it uses none, not even bold text."""
    return Console(color_system=None if os.environ.get("NO_COLOR") else "auto", **how)


out = styled_console()
err = styled_console(stderr=True)
_warnings: list[str] = []


def print_line(text: str, to: Console | None = None, style: str | None = None) -> None:
    """Print one sentence as it is, without markup; on stdout unless `to` is another console."""
    console = out if to is None else to
    console.print(wrapped(text, console), style=style, markup=False, highlight=False, soft_wrap=True)


def print_lines(lines: Iterable[str]) -> None:
    """Print sentences on stdout, one per line."""
    for line in lines:
        print_line(line)


def print_verbatim(text: str) -> None:
    """Print text on stdout that must stay on one line, such as an address."""
    out.print(text, markup=False, highlight=False, soft_wrap=True)


def progress(text: str) -> None:
    """Print one line of progress on stderr."""
    print_line(text, err)


def wrapped(text: str, console: Console, in_pipe: bool = False) -> str:
    """Break the lines of a text between words to fit a terminal; continuation lines keep the indentation.

    In a pipe, lines stay whole unless `in_pipe` is true.
    """
    if not (console.is_terminal or in_pipe):
        return text
    lines = []
    for line in text.split("\n"):
        indent = " " * (len(line) - len(line.lstrip()))
        wrapper = textwrap.TextWrapper(console.width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)
        lines += wrapper.wrap(line) or [""]
    return "\n".join(lines)


def error(text: str) -> None:
    """Print an error on stderr."""
    _message("error:", "bold red", text)


def warn(text: str) -> None:
    """Print a warning on stderr, and keep it for the `warnings` of JSON output."""
    _warnings.append(text)
    _message("warning:", "yellow", text)


def note(text: str, in_pipe: bool = False) -> None:
    """Print a remark on the results on stderr; with `in_pipe`, a long list wraps in a pipe too."""
    _message("note:", "cyan", text, "dim", in_pipe)


def _message(label: str, style: str, text: str, text_style: str | None = None, in_pipe: bool = False) -> None:
    _, _, shown = wrapped(f"{label} {text}", err, in_pipe).partition(" ")
    err.print(label, style=style, end=" ")
    err.print(shown, style=text_style, markup=False, highlight=False, soft_wrap=True)


def given_warnings() -> list[str]:
    """Return the warnings that the current command has printed."""
    return [*_warnings]


def forget_warnings() -> None:
    """Discard the warnings of the previous command."""
    _warnings.clear()


INTERRUPTED = 130
"""Exit code after Ctrl-C, by convention 128 + SIGINT."""


class StoppedError(PoolwiseError):
    """A command was interrupted and can be resumed."""

    exit_code = INTERRUPTED


@contextmanager
def resumable(folder: Path) -> Iterator[None]:
    """Turn Ctrl-C into an error that states how to resume; completed runs are kept in `folder`."""
    try:
        yield
    except KeyboardInterrupt:
        problem = f"interrupted; completed runs are kept in {folder}: repeat the command to resume"
        raise StoppedError(problem) from None
