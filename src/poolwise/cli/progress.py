"""Progress of one long run: the reason for a slow engine, then a bar with the time left, or lines without a terminal."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from rich.console import Console

from poolwise.cli.console import note, print_line

if TYPE_CHECKING:
    from rich.progress import TaskID

    from poolwise.engines.progress import Obstacle

EVERY_S = 10.0
"""Seconds between two lines without a terminal."""


class ConsoleWatch:
    """Progress of one run on a console (`engines.progress.ProgressListener`), as a context manager that clears the bar on exit.

    Runs shorter than `LONG_S` print nothing.

    Parameters
    ----------
    console
        Console to print on.
    task
        Description of the preparation before the run, such as "reading LOG".
    """

    def __init__(self, console: Console, task: str) -> None:
        from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

        self._console, self._explained = console, False
        self._obstacle: Obstacle | None = None
        self._last_line = time.monotonic()
        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            TimeElapsedColumn(),
            TextColumn("{task.fields[left]}"),
            console=console,
            transient=True,
            disable=not console.is_terminal,
        )
        self._task: TaskID = self._bar.add_task(task, total=None, left="")

    def __enter__(self) -> ConsoleWatch:
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()

    def explain(self, text: str) -> None:
        """Explain before the run why the reference engine runs it."""
        self._explained = True
        note(text)

    def begin(self, obstacle: Obstacle | None) -> None:
        """Start the run; `obstacle` is the reason for the reference engine, if it could be avoided."""
        from poolwise.engines.progress import RunClock

        self._obstacle, self._clock = obstacle, RunClock()
        self._last_line = time.monotonic()
        self._bar.update(self._task, description="simulating", total=1.0, completed=0.0)

    def advance(self, share: float, seconds: float) -> None:
        """Show the completed share of the run after `seconds`.

        Explains once why the reference engine runs if more than `LONG_S` remain.
        """
        from poolwise.engines.progress import LONG_S
        from poolwise.runner.progress import time_left

        ahead = self._clock.left(share, seconds)
        left = time_left(ahead)
        self._bar.update(self._task, completed=share, left=left)
        if self._obstacle is not None and not self._explained and ahead > LONG_S:
            self._explained = True
            note(f"the reference engine runs this{left and ', '}{left}: {self._obstacle}")
        if not self._console.is_terminal and time.monotonic() - self._last_line >= EVERY_S and ahead > LONG_S:
            self._last_line = time.monotonic()
            print_line(f"  {100 * share:.0f} % simulated{left and ', '}{left}", self._console)
