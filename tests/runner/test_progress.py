"""What people are told of trials."""

import io
import re

from rich.console import Console

from poolwise.runner import progress
from poolwise.runner.progress import ConsoleProgress, LineProgress


def clock(monkeypatch, times):
    """Time that goes on by what the test says."""
    now = [0.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    for step in times:
        now[0] += step
        yield


def test_a_line_a_run_with_the_time_left(monkeypatch):
    console = Console(file=io.StringIO(), width=200)
    with ConsoleProgress(console) as told:
        tick = clock(monkeypatch, [0, 2, 2, 2])
        next(tick)
        told.begin(4, 1, 1)
        for label in "abc":
            next(tick)
            told.advance(label, 1.5)
    lines = console.file.getvalue().splitlines()
    assert lines == [
        "1 cell of earlier runs are damaged and will be redone",
        "1 of 4 runs are there from before",
        "[2/4] a in 1.5 s, about 4 s left",
        "[3/4] b in 1.5 s, about 2 s left",
        "[4/4] c in 1.5 s, done",
    ]


def test_lines_come_now_and_then(monkeypatch):
    said = []
    tick = clock(monkeypatch, [0, *([3] * 9)])
    next(tick)
    told = LineProgress(said.append, every_s=10)
    told.begin(2000, 0, 0)
    for _ in tick:
        told.advance("any", 1.0)
    assert len(said) == 2 and said[0] == "  [4/2,000] about 1 h 40 min left"
    assert all(re.fullmatch(r"  \[\d/2,000\] about .* left", line) for line in said)
