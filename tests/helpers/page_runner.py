"""Run the code blocks of a documentation page, and compare the console output that it shows with the real one.

`python -m tests.helpers.page_runner PAGE...` replaces stale output lines by the closest real ones and lists those without one.
"""

from __future__ import annotations

import contextlib
import difflib
import os
import re
import shlex
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from unittest.mock import patch

from poolwise.cli import app, console

FENCE = re.compile(r"^```(\w+)(?: title=\"([^\"]+)\")?\n(.*?)^```", re.MULTILINE | re.DOTALL)
ELLIPSIS = "..."
WIDTH = "120"
"""Columns of the terminal in which tables of the pages are printed."""

Call = Callable[[list[str]], tuple[int, str]]


@dataclass(frozen=True)
class Command:
    """A command of a page.

    Attributes
    ----------
    line : the command as typed, without the prompt
    shown : output lines on the page; a line "..." stands for any lines, and " ..." at an end for the rest of a line
    code, output : exit code and output of the run
    """

    line: str
    shown: tuple[str, ...]
    code: int
    output: str

    def stale(self) -> list[str]:
        """Lines of the page that the output does not have, in this order; differences in spaces do not count."""
        real, missing = [_squeeze(line) for line in self.output.splitlines()], []
        position = 0
        for line in self.shown:
            if line.strip() == ELLIPSIS:
                continue
            matching = next((k for k in range(position, len(real)) if _matches(line, real[k])), None)
            if matching is None:
                missing.append(line)
            else:
                position = matching + 1
        return missing


def run_in_process(words: list[str]) -> tuple[int, str]:
    """Run a `poolwise` command in this process, which is faster; print warnings, and tables `WIDTH` columns wide."""
    assert words[0] == "poolwise"
    output, typed = StringIO(), sys.argv
    widths = [patch.object(each, "_width", int(WIDTH)) for each in (console.out, console.err)]  # read from COLUMNS at import
    with widths[0], widths[1], warnings.catch_warnings(), redirect_stdout(output), redirect_stderr(output):
        warnings.simplefilter("default")
        sys.argv = words  # results record the command
        try:
            code = app.run(words[1:])
        finally:
            sys.argv = typed
    return code, output.getvalue()


def run_as_process(words: list[str]) -> tuple[int, str]:
    """Run a command as a process of its own, as a reader runs it."""
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


def run_page(page: Path, call: Call) -> Iterator[Command]:
    """Run the blocks of a page in the current folder: titled ones are written to files, Python blocks share their names."""
    names: dict[str, object] = {}
    for language, title, text in FENCE.findall(page.read_text(encoding="utf-8")):
        if title:
            Path(title).write_text(text, encoding="utf-8")
        elif language == "python":
            exec(compile(text, page.name, "exec"), names)
        elif language == "console":
            for line, shown in commands(text):
                code, output = call(shlex.split(line))
                yield Command(line, shown, code, output)


def commands(block: str) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield (command, output lines shown) of a console block."""
    for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
        line, *shown = part.rstrip("\n").split("\n")
        yield line, tuple(line for line in shown if line.strip())


def replace_stale_lines(page: Path) -> list[str]:
    """Rewrite stale lines of a page; returns those for which the output has no similar line."""
    text, unmatched = page.read_text(encoding="utf-8"), []
    for command in run_page(page, run_in_process):
        real = [line.rstrip() for line in command.output.splitlines()]
        for line in command.stale():
            closest = difflib.get_close_matches(line, real, n=1, cutoff=0.5)
            if closest:
                start = text.index(f"$ {command.line}\n")
                text = text[:start] + text[start:].replace(f"\n{line}\n", f"\n{closest[0]}\n", 1)
            else:
                unmatched.append(f"{page.name}: $ {command.line}: {line}")
    page.write_text(text, encoding="utf-8")
    return unmatched


def _squeeze(line: str) -> str:
    return " ".join(line.split())


def _matches(shown: str, real: str) -> bool:
    shown = _squeeze(shown)
    return real.startswith(shown.removesuffix(f" {ELLIPSIS}")) if shown.endswith(f" {ELLIPSIS}") else real == shown


def main(pages: Sequence[str]) -> int:
    """Rewrite pages; the exit status is 1 if lines remain that no output has."""
    os.environ["COLUMNS"] = WIDTH
    paths, unmatched = [Path(page).resolve() for page in pages], []
    for path in paths:
        with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
            unmatched += replace_stale_lines(path)
    print(*unmatched, f"{len(unmatched)} lines without a similar one", sep="\n")
    return bool(unmatched)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
