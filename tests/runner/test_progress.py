"""Progress reports of long runs."""

import io
import re

import pytest
from rich.console import Console

from poolwise.engines.progress import RunClock
from poolwise.runner import progress, running
from poolwise.runner.progress import ConsoleProgress, LineProgress, Pace
from poolwise.runner.running import Running, folder_of_progress, listener, read_running, task_progress


class Clock:
    """Clock that the test advances."""

    def __init__(self, monkeypatch):
        self.now = 0.0
        monkeypatch.setattr(progress.time, "monotonic", lambda: self.now)


@pytest.fixture
def clock(monkeypatch):
    return Clock(monkeypatch)


def test_console_prints_a_line_per_run_with_the_time_left(clock):
    console = Console(file=io.StringIO(), width=200)
    with ConsoleProgress(console) as progress_:
        progress_.begin(4, 1, 1)
        for label in "abc":
            clock.now += 2
            progress_.advance(label, 2.0)
    lines = console.file.getvalue().splitlines()
    assert lines == [
        "1 stored cell is damaged and will be run again",
        "Resuming: 1 of 4 runs already complete",
        "[2/4] a in 2 s, about 4 s left",
        "[3/4] b in 2 s, about 2 s left",
        "[4/4] c in 2 s, done",
    ]


def test_line_progress_limits_its_rate(clock):
    lines = []
    progress_ = LineProgress(lines.append, every_s=10)
    progress_.begin(2000, 0, 0)
    for _ in range(9):
        clock.now += 3
        progress_.advance("any", 3.0)
    assert len(lines) == 2 and lines[0] == "  [4/2,000] about 1 h 40 min left"
    assert all(re.fullmatch(r"  \[\d/2,000\] about .* left", line) for line in lines)


def test_estimate_needs_a_basis_and_runs_out(clock):
    pace = Pace(3, 0)
    assert pace.left_s() is None and pace.text([Running(0.0, 60.0, float("inf"))]) == ""
    clock.now = 10
    pace.advance(10.0)
    assert pace.left_s() == 20
    clock.now = 25
    assert pace.left_s() == 5, "the estimate counts down while tasks run"
    clock.now = 31
    assert pace.left_s() is None and pace.text() == "", "a task takes longer than estimated"


def test_long_task_among_short_ones_is_estimated_from_its_own_progress(clock):
    pace = Pace(10, 0)
    for _ in range(9):
        clock.now += 1
        pace.advance(1.0)
    assert pace.text() == "about 1 s left"
    clock.now += 60
    assert pace.text([Running(0.1, 60.0, 540.0)]) == "about 9 min left"
    assert pace.text([Running(0.001, 60.0, float("inf"))]) == "", "no basis"


def test_waiting_tasks_are_shared_among_the_running_ones(clock):
    pace = Pace(12, 0)
    pace.advance(100.0)
    running = [Running(0.5, 50.0, 50.0), Running(0.25, 25.0, 75.0)]
    assert pace.left_s(running) == (50 + 75 + 9 * 100) / 2
    assert Pace(2, 0).left_s(running) == 75, "the last tasks end with the slowest"


def test_run_that_slows_down_is_estimated_by_its_recent_pace():
    steady, slowing = RunClock(), RunClock()
    for k in range(1, 11):
        left = steady.left(k / 20, float(k))
    assert left == pytest.approx(10.0)
    for seconds, share in ((1.0, 0.4), (2.0, 0.5), (20.0, 0.55), (40.0, 0.6)):
        left = slowing.left(share, seconds)
    assert left == float("inf"), "the pace falls from report to report"
    for seconds, share in ((60.0, 0.65), (80.0, 0.7), (100.0, 0.75), (120.0, 0.8)):
        left = slowing.left(share, seconds)
    assert 0.2 * 20 / 0.05 / 2 <= left <= 0.2 * 20 / 0.05 * 2, "at the recent pace, not 0.2 * 120 / 0.8"
    assert slowing.left(0.8, 300.0) == float("inf"), "no event since then"
    assert RunClock().left(0.001, 60.0) == float("inf") and slowing.left(1.0, 101.0) == 0


def test_progress_within_a_running_task_is_shown(clock, monkeypatch):
    console = Console(file=io.StringIO(), width=200)
    with ConsoleProgress(console) as progress_, task_progress("key"):
        progress_.begin(1, 0, 0)
        progress_.update()
        watch = listener()
        watch.begin(None)
        for minute in (1, 2, 3):
            clock.now = 60.0 * minute
            watch.advance(minute / 10, clock.now)
            progress_.update()
        progress_.update()
    assert console.file.getvalue().splitlines() == [
        "10 % done, about 9 min left",
        "20 % done, about 8 min left",
        "30 % done, about 7 min left",
    ]


def test_task_reports_only_to_a_reader():
    with task_progress("key"):
        assert listener() is None
    with folder_of_progress() as folder:
        with task_progress("key"):
            listener().advance(0.5, 2.0)
            assert read_running(folder) == [Running(0.5, 2.0, 2.0)]
        assert read_running(folder) == [] and listener() is None
    assert not folder.exists()


@pytest.mark.parametrize("exponent", [1.0, 1.5, 2.0, 3.0])
@pytest.mark.parametrize("jump", [1.0, 100.0])
def test_estimates_of_a_long_run_are_within_a_factor_of_two_or_not_shown(exponent, jump):
    """The time grows as a power of the share, or a fast tenth is followed by passes that are a hundred times as long."""
    clock, shown, whole = RunClock(), 0, 1600.0

    def seconds(share):
        first = min(share, 0.1)
        return whole * (first + jump * (share - first)) / (0.1 + 0.9 * jump) if jump > 1 else whole * share**exponent

    for share in (k / 500 for k in range(1, 500)):
        left = clock.left(share, seconds(share))
        settled = share >= 0.1 if jump == 1 else seconds(share) >= 0.1 * whole
        if settled and left < float("inf"):
            shown += 1
            assert 0.5 <= left / (whole - seconds(share)) <= 2, share
    assert shown > 200 or exponent == 3.0


def test_estimate_of_a_task_that_stopped_reporting_runs_out(monkeypatch):
    with folder_of_progress() as folder, task_progress("key"):
        listener().advance(0.999, 3.0)
        listener().advance(0.9995, 3.1)
        now = (folder / "key").stat().st_mtime
        monkeypatch.setattr(running.time, "time", lambda: now + 27 * 60)
        (stopped,) = read_running(folder)
        assert stopped.left == float("inf") and stopped.seconds > 27 * 60
        assert Pace(1, 0).text([stopped]) == ""


def test_time_left_is_not_shown_where_finished_tasks_differ_widely(clock):
    pace = Pace(100, 0)
    for seconds in (0.1, 0.1, 300.0):
        clock.now += seconds
        pace.advance(seconds)
    assert pace.text() == ""
    for _ in range(30):
        clock.now += 200
        pace.advance(200.0)
    assert pace.text().startswith("about ")


def test_line_replaces_an_estimate_that_has_run_out(clock):
    console = Console(file=io.StringIO(), width=200)
    with ConsoleProgress(console) as progress_:
        progress_.begin(3, 0, 0)
        for label in "ab":
            clock.now += 3
            progress_.advance(label, 3.0)
        clock.now += 31
        progress_.update()
    assert console.file.getvalue().splitlines()[-2:] == ["[2/3] b in 3 s, about 3 s left", "67 % done, time left unknown"]


def test_tasks_of_different_kinds_are_estimated_apart(clock):
    pace = Pace(6, 0)
    pace.expect({"a": "slow", "b": "slow", "c": "slow", "d": "slow", "x": "fast", "y": "fast"})
    clock.now += 10
    pace.advance(10.0, "a")
    assert pace.text() == "", "no fast task has finished"
    clock.now += 0.01
    pace.advance(0.01, "x")
    assert pace.left_s() == pytest.approx(30.01, rel=0.01)
    for label in "bcd":
        clock.now += 10
        pace.advance(10.0, label)
    assert pace.left_s() == pytest.approx(0.01, rel=0.01)


def test_no_estimate_follows_from_tasks_that_loaded_kernels(clock):
    """The only finished baseline and the first cell took a second each, the other cells a thirtieth."""
    pace = Pace(35, 0)
    pace.expect({"baseline": "b", **{f"baseline {k}": "b" for k in range(4)}, **{f"cell {k}": "c" for k in range(30)}})
    shown = []
    for label in ("baseline", *(f"cell {k}" for k in range(30))):
        seconds = 1.0 if label in ("baseline", "cell 0") else 0.03
        clock.now += seconds
        pace.advance(seconds, label)
        shown += [pace.text()] if pace.done > 3 else []
    assert set(shown) == {""}
