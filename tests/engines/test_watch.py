"""Progress reports of long runs, and the reason why no kernel runs them."""

from dataclasses import dataclass, field
from importlib import import_module
from io import StringIO
from types import SimpleNamespace

import numpy as np
import pytest
from rich.console import Console

from poolwise import simulation
from poolwise.cli import progress as cli_progress
from poolwise.engines import progress, simulate
from poolwise.engines.progress import LONG_S, Obstacle
from poolwise.engines.simulate import Result
from poolwise.model import Machine, Workload
from poolwise.policies.backfill.conservative import Conservative
from poolwise.policies.backfill.skip import Skip
from poolwise.quantities import SECOND
from poolwise.schedulers.list import ListScheduler
from tests.helpers.random_studies import difference

MACHINE = Machine.of_racks(2, 4)
ROWS = np.arange(300)
JOBS = Workload.of(ROWS * SECOND, (ROWS % 7 + 1) * SECOND, requests={"nodes": ROWS % 9 + 1})
"""One in nine is too large."""
SKIP = ListScheduler(backfill=Skip())


@dataclass
class RecordedProgress:
    """Records the progress reported to it."""

    begun: list[Obstacle | None] = field(default_factory=list)
    shares: list[float] = field(default_factory=list)

    def begin(self, obstacle: Obstacle | None) -> None:
        self.begun.append(obstacle)

    def advance(self, share: float, seconds: float) -> None:
        assert seconds > 0
        self.shares.append(share)


@pytest.mark.parametrize("scheduler", [SKIP, ListScheduler(), ListScheduler(backfill=Conservative())])
def test_progress_is_reported_without_changing_the_schedule(scheduler: ListScheduler, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "EVERY_S", 0.0)
    recorded = RecordedProgress()
    watched, alone = simulate(JOBS, MACHINE, scheduler, watch=recorded), simulate(JOBS, MACHINE, scheduler)
    assert difference(watched.schedule, alone.schedule) == ""
    assert len(recorded.shares) > 200 and recorded.shares == sorted(recorded.shares)
    assert 0 < recorded.shares[0] < 0.02 and 0.98 < recorded.shares[-1] <= 1
    [obstacle] = recorded.begun
    assert (obstacle is None) == (watched.engine == "compiled") == (scheduler != SKIP)


def test_explicit_engine_has_no_obstacle() -> None:
    recorded = RecordedProgress()
    result = simulate(JOBS, MACHINE, SKIP, engine="reference", watch=recorded)
    assert recorded.begun == [None] and result.obstacle is None and simulate(JOBS, MACHINE, SKIP).obstacle is not None


@pytest.mark.parametrize(("wall_s", "count"), [(LONG_S - 0.1, 0), (LONG_S, 1)])
def test_long_reference_run_notes_obstacle_and_remedy(wall_s: float, count: int) -> None:
    result = simulate(JOBS, MACHINE, SKIP)
    notes = Result(result.schedule, result.engine, wall_s, result.obstacle).notes()
    assert len(notes) == count
    for text in notes:
        assert text.startswith(
            "the reference engine ran this, in 2 s: backfill Skip has no kernel; supported: classes that state a rule"
        )
    assert simulate(JOBS, MACHINE, ListScheduler()).notes() == ()


def test_api_result_contains_engine_notes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(import_module("poolwise.engines.simulate"), "LONG_S", 0.0)
    run = simulation.simulate(JOBS, MACHINE, backfill="skip")
    assert "backfill Skip has no kernel" in run.to_dict()["notes"][-1]


def test_console_explains_the_engine_once(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter(np.arange(0.0, 1000.0, 6.0).tolist())
    monkeypatch.setattr(cli_progress, "time", SimpleNamespace(monotonic=lambda: next(clock)))
    screen = StringIO()
    with cli_progress.ConsoleWatch(Console(file=screen), "reading log") as shown:
        shown.begin(Obstacle("not supported", "supported elsewhere"))
        shown.advance(0.5, 1.0)
        assert capsys.readouterr().err == "", "the run is short"
        shown.begin(Obstacle("not supported", "supported elsewhere"))
        for share in (0.1, 0.2, 0.4, 0.8):
            shown.advance(share, 100 * share)
    notes = capsys.readouterr().err
    assert notes == "note: the reference engine runs this, about 1 min 30 s left: not supported; supported elsewhere\n"
    assert screen.getvalue() == "  20 % simulated, about 1 min 20 s left\n  80 % simulated, about 20 s left\n"
