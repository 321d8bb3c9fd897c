"""How far one long run is, for people: why it takes long if it need not, then a bar with the time left, or lines."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from poolwise.cli.console import note

if TYPE_CHECKING:
    from poolwise.engines.progress import Obstacle

EVERY_S = 10.0
"""Seconds between two lines where there is no terminal."""


class ConsoleWatch:
    """Reports one run on a console (`engines.progress`); use as a context, so that the bar is cleared whatever happens.

    Nothing is shown of what takes less than `LONG_S`.

    Parameters
    ----------
    console
        Where to.
    what
        What is done before the run begins, such as "reading LOG".
    """

    def __init__(self, console: Console, what: str) -> None:
        self._console, self._explained = console, False
        self._obstacle: Obstacle | None = None
        self._told = time.monotonic()
        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            TimeElapsedColumn(),
            TextColumn("{task.fields[left]}"),
            console=console,
            transient=True,
            disable=not console.is_terminal,
        )
        self._task: TaskID = self._bar.add_task(what, total=None, left="")

    def __enter__(self) -> ConsoleWatch:
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()

    def begin(self, obstacle: Obstacle | None) -> None:
        """The run begins."""
        self._obstacle = obstacle
        self._told = time.monotonic()
        self._bar.update(self._task, description="simulating", total=1.0, completed=0.0)

    def advance(self, share: float, seconds: float) -> None:
        """Say once why the reference engine runs this if more than `LONG_S` are ahead, and now and then how far it is."""
        from poolwise.engines.progress import LONG_S
        from poolwise.runner.progress import time_left

        ahead = seconds * (1 - share) / share
        left = time_left(ahead)
        self._bar.update(self._task, completed=share, left=left)
        if self._obstacle is not None and not self._explained and ahead > LONG_S:
            self._explained = True
            note(f"the reference engine runs this, {left}: {self._obstacle}")
        if not self._console.is_terminal and time.monotonic() - self._told >= EVERY_S and ahead > LONG_S:
            self._told = time.monotonic()
            self._console.print(f"  {100 * share:.0f} % simulated, {left}", markup=False, highlight=False, soft_wrap=True)
