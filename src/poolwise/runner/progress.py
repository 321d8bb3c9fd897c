"""Progress reporting for long runs: a bar with the time left in a terminal, lines elsewhere."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from math import isfinite, sqrt
from pathlib import Path
from threading import Event, Thread

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn

from poolwise.quantities import format_time
from poolwise.runner.running import Running, folder_of_progress, read_running

UNEVEN = 0.35
"""Largest relative standard error of the mean time of finished tasks at which that mean serves as an estimate."""
LOAD_S = 2.0
"""Seconds by which loading kernels may lengthen a task, at most."""
LINE_S = 30.0
"""Seconds between two lines on the progress within running tasks, without a terminal."""


def time_left(seconds: float | None) -> str:
    """Return the time left in words, in whole seconds; "" if it is unknown."""
    return "" if seconds is None or not isfinite(seconds) else f"about {format_time(max(1, round(seconds)))} left"


class Pace:
    """Estimates the time left for a set of tasks from the durations of finished tasks and the progress within running ones.

    An estimate requires a finished task, or a running one that reports its progress. Once its time has passed, it is withdrawn.
    """

    def __init__(self, total: int, done: int) -> None:
        self.total, self.done, self._new, self._seconds, self._squares = total, done, 0, 0.0, 0.0
        self._begun = self._last = time.monotonic()
        self._kinds: Mapping[str, str] = {}
        # by kind: tasks that have not finished; number, sum and sum of squares of the durations of those that have
        self._left, self._finished = Counter[str](), dict[str, tuple[int, float, float]]()

    def expect(self, kinds: Mapping[str, str]) -> None:
        """Receive the label and the kind of each task that will run."""
        self._kinds, self._left = kinds, Counter(kinds.values())

    def advance(self, seconds: float | None = None, label: str = "") -> None:
        """Count one more task, which took this many core seconds; by default, the seconds since the previous task."""
        now = time.monotonic()
        took = now - self._last if seconds is None else seconds
        self._seconds, self._squares = self._seconds + took, self._squares + took**2
        if label in self._kinds:
            kind = self._kinds[label]
            count, total, squares = self._finished.get(kind, (0, 0.0, 0.0))
            self._finished[kind], self._left[kind] = (count + 1, total + took, squares + took**2), self._left[kind] - 1
        self.done, self._new, self._last = self.done + 1, self._new + 1, now

    def left_s(self, running: Sequence[Running] = ()) -> float | None:
        """Return the estimated seconds left; None without a basis for an estimate."""
        timed = [task for task in running if isfinite(task.left)]
        if not (self._new or timed):
            return None
        mean = (self._seconds + sum(task.seconds + task.left for task in timed)) / (self._new + len(timed))
        others = max(0, self.total - self.done - len(running))
        kinds = [kind for kind, count in self._left.items() if count > 0]
        if len(self._finished.keys() | set(kinds)) > 1:
            if others and not self._finished.keys() >= set(kinds):
                return None  # no task of some kind has finished
            means = {kind: total / count for kind, (count, total, _) in self._finished.items()}
            left = sum(self._left[kind] for kind in kinds)
            mean = sum(self._left[kind] * means.get(kind, mean) for kind in kinds) / left if left else mean
            if others and self._error(kinds) > max(UNEVEN * mean * left, 1.0):  # the time left is shown in whole seconds
                return None
        elif others and sqrt(_variance(self._new, self._seconds, self._squares)) * self._new > UNEVEN * self._seconds:
            return None
        waiting = others * mean
        own = [task.left if isfinite(task.left) else mean - task.seconds for task in running]
        if not own:
            workers = max(1.0, self._seconds / max(self._last - self._begun, 1e-9))
            own = [waiting / workers - (time.monotonic() - self._last)]
            waiting = 0.0
        return max(*own, (sum(own) + waiting) / len(own)) if min(own) > 0 else None

    def _error(self, kinds: Sequence[str]) -> float:
        """Return the standard error of the time (s) of the tasks left, from the finished tasks of each kind.

        The only finished task of a kind is off by its duration, but by at most `LOAD_S`: the first one often loads kernels.
        """
        finished = ((self._left[kind], *self._finished[kind]) for kind in kinds)
        variances = (
            left**2 * (_variance(count, *sums) if count > 1 else min(sums[0], LOAD_S) ** 2) for left, count, *sums in finished
        )
        return sqrt(sum(variances))

    def text(self, running: Sequence[Running] = ()) -> str:
        """Return the time left in words, "" if it is unknown."""
        return "done" if self.done >= self.total else time_left(self.left_s(running))


def _variance(count: int, seconds: float, squares: float) -> float:
    """Return the variance of the mean of some durations, given their sum and that of their squares; 0 for fewer than two."""
    return max(0.0, squares / count - (seconds / count) ** 2) / count if count > 1 else 0.0


class LineProgress:
    """Progress in lines, at most one every `every_s` seconds, for many short tasks."""

    def __init__(self, tell: Callable[[str], None], every_s: float = 10.0) -> None:
        self._tell, self._every_s = tell, every_s
        self._pace, self._last_line = Pace(0, 0), time.monotonic()

    def begin(self, total: int, done: int, damaged: int) -> None:
        """Start; see `Progress`. Writes no line."""
        self._pace, self._last_line = Pace(total, done), time.monotonic()

    def expect(self, kinds: Mapping[str, str]) -> None:
        """Receive the label and the kind of each task that will run."""
        self._pace.expect(kinds)

    def advance(self, label: str, seconds: float) -> None:
        """Record that one more task is stored."""
        self._pace.advance(seconds, label)
        if time.monotonic() - self._last_line >= self._every_s:
            self._tell(f"  [{self._pace.done:,}/{self._pace.total:,}] {self._pace.text()}".rstrip())
            self._last_line = time.monotonic()


class ConsoleProgress:
    """Progress on a console; use as a context manager, which always clears the bar.

    The time left is shown as soon as it can be estimated, and follows the progress within running tasks.
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
        self._pace, self._last_line = Pace(0, 0), time.monotonic()
        self._folder: Path | None = None
        self._stop, self._open = Event(), ExitStack()

    def __enter__(self) -> ConsoleProgress:
        self._folder = self._open.enter_context(folder_of_progress())
        self._bar.start()
        ticker = Thread(target=self._tick, daemon=True)
        ticker.start()
        self._open.callback(ticker.join)
        self._open.callback(self._stop.set)
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()
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

    def expect(self, kinds: Mapping[str, str]) -> None:
        """Receive the label and the kind of each task that will run."""
        self._pace.expect(kinds)

    def advance(self, label: str, seconds: float) -> None:
        """Record that one more run is stored."""
        self._pace.advance(seconds, label)
        self.update()
        if not self._console.is_terminal:
            left = ", ".join(text for text in (f"{label} in {format_time(seconds)}", self._pace.text()) if text)
            self._print(f"[{self._pace.done}/{self._pace.total}] {left}")

    def update(self) -> None:
        """Show the progress within running tasks: in the bar, or as a line if the last line is old."""
        running = [] if self._folder is None else read_running(self._folder)
        completed = self._pace.done + sum(task.share for task in running)
        left = self._pace.text(running)
        if self._task is not None:
            self._bar.update(self._task, completed=completed, left=left)
        waiting = self._pace.total and self._pace.done < self._pace.total
        if not self._console.is_terminal and waiting and time.monotonic() - self._last_line >= LINE_S:
            self._print(f"{100 * completed / self._pace.total:.0f} % done, {left or 'time left unknown'}")

    def _tick(self) -> None:
        while not self._stop.wait(0.5):
            self.update()

    def _print(self, text: str) -> None:
        self._last_line = time.monotonic()
        self._console.print(text, markup=False, highlight=False, soft_wrap=True)
