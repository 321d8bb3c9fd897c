import dataclasses
from pathlib import Path

import pytest

from poolwise.errors import InputError
from poolwise.measuring import experiment
from poolwise.measuring.control_groups import ControlGroup, GroupUse, find_hierarchy
from poolwise.measuring.experiment import MIB, LimitedRuns, MeasuringPlan, measure_program
from poolwise.measuring.leftovers import Belongings
from poolwise.measuring.measurements import to_csv
from poolwise.measuring.program import ProgramRun
from poolwise.performance.fitting import fit, read_measurements
from tests.helpers.fake_groups import fake_v2

PLAN = MeasuringPlan("solver", ("solver",), (1.0, 0.75, 0.5, 0.25), cpus=(0.5,), repeat=2)


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int | None, float | None]]:
    """Limits and processor shares of all runs; a program of 100 MiB takes as long as its share is small."""
    seen: list[tuple[int | None, float | None]] = []

    def run(
        command: object, group: ControlGroup, mine: object, *, limit: int, cpu: float | None = None, longest_s: float
    ) -> ProgramRun:
        seen.append((limit, cpu))
        share = min(limit / (100 * MIB), 1.0)
        return ProgramRun((2 - share) / (cpu or 1.0), 100 * MIB, 0, GroupUse(0, 0, 5, 4, 3, 10**9), "")

    monkeypatch.setattr(experiment, "run_program", run)
    monkeypatch.setattr(experiment, "swaps", lambda: [("/dev/x", 200 * MIB)])
    monkeypatch.setattr(experiment, "page_in_latency", lambda *_: {"us": {"p50": 8.0}})
    monkeypatch.setattr(experiment, "memory_available", lambda: 8192 * MIB)
    return seen


def measured(tmp_path: Path, plan: MeasuringPlan = PLAN) -> LimitedRuns:
    told: list[tuple[int, int]] = []
    hierarchy = find_hierarchy(fake_v2(tmp_path / "root"))
    found = measure_program(plan, hierarchy, Belongings(tmp_path / "r.json"), lambda done, todo, _: told.append((done, todo)))
    assert told[0][0] == 0 and told[-1][0] == told[-1][1]
    return found


def test_the_first_run_finds_the_peak_and_limits_are_shares_of_it(tmp_path: Path, runs: list[tuple[int, float]]) -> None:
    found = measured(tmp_path)
    free = 7168 * MIB
    turn = [(free, None), (75 * MIB, None), (50 * MIB, None), (25 * MIB, None), (free, 0.5)]
    assert runs == [(free, None), *turn, *turn]
    assert found.peak == 100 * MIB and len(found.runs) == 10


def test_the_file_of_measurements_is_what_the_fit_takes(tmp_path: Path, runs: list[tuple[int, float]]) -> None:
    (tmp_path / "m.csv").write_text(to_csv(measured(tmp_path)))
    (read,) = read_measurements(tmp_path / "m.csv")
    found = fit(read)
    assert found.profile.name == "solver"
    assert found.profile.at([0.25, 0.5, 0.75]) == pytest.approx([0.25, 0.5, 0.75], abs=1e-3)
    assert found.profile.frequency_share == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("changed", "remedy"),
    [
        ({"command": ()}, "after --"),
        ({"repeat": 0}, "at least 1"),
        ({"shares": (0.75, 0.5)}, "the first of them 1"),
        ({"shares": (1.0, 0.5, 0.75)}, "descending"),
        ({"shares": (1.0, 0.0)}, r"\(0, 1\]"),
        ({"cpus": (2.0,)}, r"\(0, 1\]"),
    ],
)
def test_plans_that_cannot_be_measured_are_refused(changed: dict[str, object], remedy: str) -> None:
    with pytest.raises(InputError, match=remedy):
        dataclasses.replace(PLAN, **changed)


def test_too_little_memory_or_swap_is_refused_before_others_suffer(
    tmp_path: Path, runs: list[tuple[int, float]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(experiment, "swaps", lambda: [("/dev/x", 50 * MIB)])
    with pytest.raises(InputError, match="93 MiB are to be swapped, and 50 MiB"):
        measured(tmp_path)
    monkeypatch.setattr(experiment, "swaps", lambda: [])
    with pytest.raises(InputError, match="--make-swap"):
        measured(tmp_path)
    monkeypatch.setattr(experiment, "swaps", lambda: [("/dev/x", 200 * MIB)])
    monkeypatch.setattr(experiment, "memory_available", lambda: 1100 * MIB)
    with pytest.raises(InputError, match="1100 MiB of memory are free; 1217 MiB are needed"):
        measured(tmp_path)


def test_a_failure_says_at_which_share(tmp_path: Path, runs: list[tuple[int, float]], monkeypatch: pytest.MonkeyPatch) -> None:
    works = experiment.run_program

    def fails(*args: object, limit: int, **others: object) -> ProgramRun:
        if limit == 25 * MIB:
            raise InputError("the program ended with signal 9", field="command", remedy="more memory")
        return works(*args, limit=limit, **others)  # type: ignore[arg-type]

    monkeypatch.setattr(experiment, "run_program", fails)
    with pytest.raises(InputError, match="with 25% local: the program ended with signal 9"):
        measured(tmp_path)


def test_seconds_may_be_those_of_the_processor(tmp_path: Path, runs: list[tuple[int, float]]) -> None:
    plan = dataclasses.replace(PLAN, cpus=(), clock="cpu")
    (tmp_path / "m.csv").write_text(to_csv(measured(tmp_path, plan)))
    (read,) = read_measurements(tmp_path / "m.csv")
    assert read.seconds.tolist() == [1.0] * 8
    with pytest.raises(InputError, match="--clock wall"):
        dataclasses.replace(PLAN, clock="cpu")
