"""Progress reports of long runs."""

import io
import re

from rich.console import Console

from poolwise.runner import progress
from poolwise.runner.progress import ConsoleProgress, LineProgress


def clock(monkeypatch, times):
    """Clock that advances by the given steps."""
    now = [0.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    for step in times:
        now[0] += step
        yield


def test_console_prints_a_line_per_run_with_the_time_left(monkeypatch):
    console = Console(file=io.StringIO(), width=200)
    with ConsoleProgress(console) as progress_:
        tick = clock(monkeypatch, [0, 2, 2, 2])
        next(tick)
        progress_.begin(4, 1, 1)
        for label in "abc":
            next(tick)
            progress_.advance(label, 1.5)
    lines = console.file.getvalue().splitlines()
    assert lines == [
        "1 stored cell is damaged and will be run again",
        "Resuming: 1 of 4 runs already complete",
        "[2/4] a in 1.5 s, about 4 s left",
        "[3/4] b in 1.5 s, about 2 s left",
        "[4/4] c in 1.5 s, done",
    ]


def test_line_progress_limits_its_rate(monkeypatch):
    lines = []
    tick = clock(monkeypatch, [0, *([3] * 9)])
    next(tick)
    progress_ = LineProgress(lines.append, every_s=10)
    progress_.begin(2000, 0, 0)
    for _ in tick:
        progress_.advance("any", 1.0)
    assert len(lines) == 2 and lines[0] == "  [4/2,000] about 1 h 40 min left"
    assert all(re.fullmatch(r"  \[\d/2,000\] about .* left", line) for line in lines)
