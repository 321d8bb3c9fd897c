"""How far trials are, on stderr: a bar with the time left in a terminal, one line a run elsewhere."""

from __future__ import annotations

import time

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn

from poolwise.units import format_time


class ConsoleProgress:
    """Tells a console; use as a context, so that the bar is cleared whatever happens.

    The time left is estimated from the pace of this session; it is known after the first run.
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
        self._total = self._done = self._fresh = 0
        self._begun = 0.0

    def __enter__(self) -> ConsoleProgress:
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()

    def begin(self, total: int, done: int, damaged: int) -> None:
        """`done` of `total` runs are there from before; `damaged` ones are redone."""
        self._total, self._done, self._fresh, self._begun = total, done, 0, time.monotonic()
        if damaged:
            self._say(f"{damaged} cell{'s' if damaged > 1 else ''} of earlier runs are damaged and will be redone")
        if done:
            self._say(f"{done} of {total} runs are there from before")
        if self._task is not None:
            self._bar.remove_task(self._task)
        self._task = self._bar.add_task("running", total=total, completed=done, left="")

    def advance(self, label: str, seconds: float) -> None:
        """One more trial is kept."""
        self._done, self._fresh = self._done + 1, self._fresh + 1
        left = (time.monotonic() - self._begun) / self._fresh * (self._total - self._done)
        words = f"about {format_time(left)} left" if self._done < self._total else "done"
        if self._task is not None:
            self._bar.update(self._task, completed=self._done, left=words)
        if not self._console.is_terminal:
            self._say(f"[{self._done}/{self._total}] {label} in {format_time(seconds)}, {words}")

    def _say(self, text: str) -> None:
        self._console.print(text, markup=False, highlight=False, soft_wrap=True)
