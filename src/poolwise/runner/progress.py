"""How far trials are, for people: a bar with the time left in a terminal, lines elsewhere."""

from __future__ import annotations

import time
from collections.abc import Callable

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn

from poolwise.units import format_time


def time_left(seconds: float) -> str:
    """Say how long it will still take, in whole seconds."""
    return f"about {format_time(max(1, round(seconds)))} left"


class Pace:
    """How many trials are done, and how long the others will take at the pace of this session."""

    def __init__(self, total: int, done: int) -> None:
        self.total, self.done, self._fresh, self._begun = total, done, 0, time.monotonic()

    def advance(self) -> str:
        """Count one more; returns the time left in words."""
        self.done, self._fresh = self.done + 1, self._fresh + 1
        if self.done >= self.total:
            return "done"
        left = (time.monotonic() - self._begun) / self._fresh * (self.total - self.done)
        return time_left(left)


class LineProgress:
    """Reports in lines, at most one every `every_s` seconds: for trials that are many and short."""

    def __init__(self, tell: Callable[[str], None], every_s: float = 10.0) -> None:
        self._tell, self._every_s = tell, every_s
        self._pace, self._told = Pace(0, 0), time.monotonic()

    def begin(self, total: int, done: int, damaged: int) -> None:
        """See `Progress`; nothing is reported yet."""
        self._pace, self._told = Pace(total, done), time.monotonic()

    def advance(self, label: str, seconds: float) -> None:
        """One more trial is kept."""
        left = self._pace.advance()
        if time.monotonic() - self._told >= self._every_s:
            self._tell(f"  [{self._pace.done:,}/{self._pace.total:,}] {left}")
            self._told = time.monotonic()


class ConsoleProgress:
    """Reports on a console; use as a context, so that the bar is cleared whatever happens.

    The time left is known after the first run.
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
        """`done` of `total` runs are kept from before; `damaged` ones are run again."""
        self._pace = Pace(total, done)
        if damaged:
            self._say(f"{damaged} cell{'s' if damaged > 1 else ''} of earlier runs are damaged and will be redone")
        if done:
            self._say(f"{done} of {total} runs are there from before")
        if self._task is not None:
            self._bar.remove_task(self._task)
        self._task = self._bar.add_task("running", total=total, completed=done, left="")

    def advance(self, label: str, seconds: float) -> None:
        """One more trial is kept."""
        words = self._pace.advance()
        if self._task is not None:
            self._bar.update(self._task, completed=self._pace.done, left=words)
        if not self._console.is_terminal:
            self._say(f"[{self._pace.done}/{self._pace.total}] {label} in {format_time(seconds)}, {words}")

    def _say(self, text: str) -> None:
        self._console.print(text, markup=False, highlight=False, soft_wrap=True)
