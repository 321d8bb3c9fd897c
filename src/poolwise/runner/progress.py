"""Progress reporting for long runs: a bar with the time left in a terminal, lines elsewhere."""

from __future__ import annotations

import time
from collections.abc import Callable

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn

from poolwise.units import format_time


def time_left(seconds: float) -> str:
    """Return the time left in words, in whole seconds."""
    return f"about {format_time(max(1, round(seconds)))} left"


class Pace:
    """Counter of finished tasks that estimates the time left from the pace of this session."""

    def __init__(self, total: int, done: int) -> None:
        self.total, self.done, self._new, self._begun = total, done, 0, time.monotonic()

    def advance(self) -> str:
        """Count one more task, and return the time left in words."""
        self.done, self._new = self.done + 1, self._new + 1
        if self.done >= self.total:
            return "done"
        left = (time.monotonic() - self._begun) / self._new * (self.total - self.done)
        return time_left(left)


class LineProgress:
    """Progress in lines, at most one every `every_s` seconds, for many short tasks."""

    def __init__(self, tell: Callable[[str], None], every_s: float = 10.0) -> None:
        self._tell, self._every_s = tell, every_s
        self._pace, self._last_line = Pace(0, 0), time.monotonic()

    def begin(self, total: int, done: int, damaged: int) -> None:
        """Start; see `Progress`. Writes no line."""
        self._pace, self._last_line = Pace(total, done), time.monotonic()

    def advance(self, label: str, seconds: float) -> None:
        """Record that one more task is stored."""
        left = self._pace.advance()
        if time.monotonic() - self._last_line >= self._every_s:
            self._tell(f"  [{self._pace.done:,}/{self._pace.total:,}] {left}")
            self._last_line = time.monotonic()


class ConsoleProgress:
    """Progress on a console; use as a context manager, which always clears the bar.

    The time left is shown after the first run.
    """

    def __init__(self, console: Console) -> None:
        self._console = console
        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[left]}"),
            console=console,
            transient=True,
            disable=not console.is_terminal,
        )
        self._task: TaskID | None = None
        self._pace = Pace(0, 0)

    def __enter__(self) -> ConsoleProgress:
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()

    def begin(self, total: int, done: int, damaged: int) -> None:
        """Start; the store already holds `done` of `total` runs, and `damaged` ones are run again."""
        self._pace = Pace(total, done)
        if damaged:
            self._print(f"{damaged} stored cell{'s are' if damaged > 1 else ' is'} damaged and will be run again")
        if done:
            self._print(f"Resuming: {done} of {total} runs already complete")
        if self._task is not None:
            self._bar.remove_task(self._task)
        self._task = self._bar.add_task("running", total=total, completed=done, left="")

    def advance(self, label: str, seconds: float) -> None:
        """Record that one more run is stored."""
        left = self._pace.advance()
        if self._task is not None:
            self._bar.update(self._task, completed=self._pace.done, left=left)
        if not self._console.is_terminal:
            self._print(f"[{self._pace.done}/{self._pace.total}] {label} in {format_time(seconds)}, {left}")

    def _print(self, text: str) -> None:
        self._console.print(text, markup=False, highlight=False, soft_wrap=True)
