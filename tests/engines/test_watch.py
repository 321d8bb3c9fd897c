"""Who runs something long is told how far it is, and why no kernel runs it."""

from dataclasses import dataclass, field
from importlib import import_module
from io import StringIO
from types import SimpleNamespace

import numpy as np
import pytest
from rich.console import Console

from poolwise import api
from poolwise.cli import progress as cli_progress
from poolwise.engines import progress, simulate
from poolwise.engines.progress import LONG_S, Obstacle
from poolwise.engines.simulate import Result
from poolwise.model import Machine, Workload
from poolwise.policies.backfill.conservative import Conservative
from poolwise.policies.backfill.skip import Skip
from poolwise.schedulers.list import ListScheduler
from poolwise.units import SECOND
from tests.helpers.random_studies import difference

MACHINE = Machine.of_racks(2, 4)
ROWS = np.arange(300)
JOBS = Workload.of(ROWS * SECOND, (ROWS % 7 + 1) * SECOND, requests={"nodes": ROWS % 9 + 1})
"""One in nine is too large."""
SKIP = ListScheduler(backfill=Skip())


@dataclass
class Told:
    """What a watch was told."""

    begun: list[Obstacle | None] = field(default_factory=list)
    shares: list[float] = field(default_factory=list)

    def begin(self, obstacle: Obstacle | None) -> None:
        self.begun.append(obstacle)

    def advance(self, share: float, seconds: float) -> None:
        assert seconds > 0
        self.shares.append(share)


@pytest.mark.parametrize("scheduler", [SKIP, ListScheduler(), ListScheduler(backfill=Conservative())])
def test_a_watch_hears_of_every_part_of_a_run_and_changes_nothing(
    scheduler: ListScheduler, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "EVERY_S", 0.0)
    told = Told()
    watched, alone = simulate(MACHINE, JOBS, scheduler, watch=told), simulate(MACHINE, JOBS, scheduler)
    assert difference(watched.schedule, alone.schedule) == ""
    assert len(told.shares) > 200 and told.shares == sorted(told.shares)
    assert 0 < told.shares[0] < 0.02 and 0.98 < told.shares[-1] <= 1
    [obstacle] = told.begun
    assert (obstacle is None) == (watched.engine == "compiled") == (scheduler != SKIP)


def test_an_engine_that_was_asked_for_needs_no_reason() -> None:
    told = Told()
    result = simulate(MACHINE, JOBS, SKIP, engine="reference", watch=told)
    assert told.begun == [None] and result.obstacle is None and simulate(MACHINE, JOBS, SKIP).obstacle is not None


@pytest.mark.parametrize(("wall_s", "count"), [(LONG_S - 0.1, 0), (LONG_S, 1)])
def test_a_long_run_on_the_reference_engine_says_why_and_what_would_be_faster(wall_s: float, count: int) -> None:
    result = simulate(MACHINE, JOBS, SKIP)
    said = Result(result.schedule, result.engine, wall_s, result.obstacle).notes()
    assert len(said) == count
    for text in said:
        assert text.startswith(
            "the reference engine ran this, in 2 s: backfill Skip has no kernel; one whose class states a rule"
        )
    assert simulate(MACHINE, JOBS, ListScheduler()).notes() == ()


def test_what_was_said_of_a_run_is_among_its_notes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(import_module("poolwise.engines.simulate"), "LONG_S", 0.0)
    run = api.simulate(JOBS, MACHINE, backfill="skip")
    assert "backfill Skip has no kernel" in run.to_dict()["notes"][-1]


def test_a_console_says_once_why_it_takes_long(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter(np.arange(0.0, 1000.0, 6.0).tolist())
    monkeypatch.setattr(cli_progress, "time", SimpleNamespace(monotonic=lambda: next(clock)))
    screen = StringIO()
    with cli_progress.ConsoleWatch(Console(file=screen), "reading log") as shown:
        shown.begin(Obstacle("nobody can", "somebody could"))
        shown.advance(0.5, 1.0)
        assert capsys.readouterr().err == ""
        for share in (0.1, 0.2, 0.4, 0.8):
            shown.advance(share, 100 * share)
    said = capsys.readouterr().err
    assert said == "note: the reference engine runs this, about 1 min 30 s left: nobody can; somebody could\n"
    assert screen.getvalue() == "  10 % simulated, about 1 min 30 s left\n  40 % simulated, about 1 min left\n"
