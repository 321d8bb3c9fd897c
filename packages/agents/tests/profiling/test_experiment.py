import dataclasses
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from poolwise.errors import InputError
from poolwise.performance.fitting import fit, read_measurements
from poolwise_agents.cli.measure import _print as print_measured
from poolwise_agents.profiling import experiment
from poolwise_agents.profiling.cleanup import OwnedResources
from poolwise_agents.profiling.control_groups import ControlGroup, GroupUsage, find_hierarchy
from poolwise_agents.profiling.experiment import MIB, LimitedRuns, MeasurementPlan, measure_program, to_csv
from poolwise_agents.profiling.program_run import ProgramRun
from tests.helpers.fake_groups import fake_v2

PLAN = MeasurementPlan("solver", ("solver",), (1.0, 0.75, 0.5, 0.25), cpus=(0.5,), repeat=2)


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int | None, float | None]]:
    """Limits and processor shares of all runs of a simulated program with 100 MiB, which slows down with less local memory."""
    recorded: list[tuple[int | None, float | None]] = []

    def run(
        command: object, group: ControlGroup, owned: object, *, limit: int, cpu: float | None = None, longest_s: float
    ) -> ProgramRun:
        recorded.append((limit, cpu))
        share = min(limit / (100 * MIB), 1.0)
        return ProgramRun((2 - share) / (cpu or 1.0), 100 * MIB, 0, GroupUsage(0, 0, 5, 4, 3, 10**9), "")

    monkeypatch.setattr(experiment, "run_program", run)
    monkeypatch.setattr(experiment, "swaps", lambda: [("/dev/x", 200 * MIB)])
    monkeypatch.setattr(experiment, "page_in_latency", lambda *_: {"us": {"p50": 8.0}})
    monkeypatch.setattr(experiment, "memory_available", lambda: 8192 * MIB)
    return recorded


def measured(tmp_path: Path, plan: MeasurementPlan = PLAN) -> LimitedRuns:
    calls: list[tuple[int, int]] = []
    hierarchy = find_hierarchy(fake_v2(tmp_path / "root"))
    limited_runs = measure_program(
        plan, hierarchy, OwnedResources(tmp_path / "r.json"), lambda done, total, _: calls.append((done, total))
    )
    assert calls[0][0] == 0 and calls[-1][0] == calls[-1][1]
    return limited_runs


def test_first_run_finds_the_peak_and_limits_are_shares_of_it(tmp_path: Path, runs: list[tuple[int, float]]) -> None:
    limited_runs = measured(tmp_path)
    free = 7168 * MIB
    turn = [(free, None), (75 * MIB, None), (50 * MIB, None), (25 * MIB, None), (free, 0.5)]
    assert runs == [(free, None), *turn, *turn]
    assert limited_runs.peak == 100 * MIB and len(limited_runs.runs) == 10


def test_measurements_can_be_fitted(tmp_path: Path, runs: list[tuple[int, float]]) -> None:
    (tmp_path / "m.csv").write_text(to_csv(measured(tmp_path)))
    (read,) = read_measurements(tmp_path / "m.csv")
    fitted = fit(read)
    assert fitted.profile.name == "solver"
    assert fitted.profile.at([0.25, 0.5, 0.75]) == pytest.approx([0.25, 0.5, 0.75], abs=1e-3)
    assert fitted.profile.frequency_share == pytest.approx(1.0)


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
def test_invalid_plan_is_an_error(changed: dict[str, object], remedy: str) -> None:
    with pytest.raises(InputError, match=remedy):
        dataclasses.replace(PLAN, **changed)


def test_missing_memory_or_swap_is_an_error_before_a_limited_run(
    tmp_path: Path, runs: list[tuple[int, float]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(experiment, "swaps", lambda: [("/dev/x", 50 * MIB)])
    with pytest.raises(InputError, match="93 MiB of swap are needed, but only 50 MiB"):
        measured(tmp_path)
    monkeypatch.setattr(experiment, "swaps", lambda: [])
    with pytest.raises(InputError, match="--make-swap"):
        measured(tmp_path)
    monkeypatch.setattr(experiment, "swaps", lambda: [("/dev/x", 200 * MIB)])
    monkeypatch.setattr(experiment, "memory_available", lambda: 1100 * MIB)
    with pytest.raises(InputError, match="1100 MiB of memory are free, but 1217 MiB are needed"):
        measured(tmp_path)


def test_failure_names_the_share(tmp_path: Path, runs: list[tuple[int, float]], monkeypatch: pytest.MonkeyPatch) -> None:
    original = experiment.run_program

    def fail(*args: object, limit: int, **others: object) -> ProgramRun:
        if limit == 25 * MIB:
            raise InputError("the program ended with signal 9", field="command", remedy="more memory")
        return original(*args, limit=limit, **others)  # type: ignore[arg-type]

    monkeypatch.setattr(experiment, "run_program", fail)
    with pytest.raises(InputError, match="with 25% local: the program ended with signal 9"):
        measured(tmp_path)


def test_processor_time_can_be_measured(tmp_path: Path, runs: list[tuple[int, float]]) -> None:
    plan = dataclasses.replace(PLAN, cpus=(), clock="cpu")
    (tmp_path / "m.csv").write_text(to_csv(measured(tmp_path, plan)))
    (read,) = read_measurements(tmp_path / "m.csv")
    assert read.seconds.tolist() == [1.0] * 8
    with pytest.raises(InputError, match="--clock wall"):
        dataclasses.replace(PLAN, clock="cpu")


def test_intervention_begins_after_the_run_that_finds_the_peak_and_adds_conditions(
    tmp_path: Path, runs: list[tuple[int, float]]
) -> None:
    calls: list[tuple[object, int]] = []

    @contextmanager
    def intervene(swap: object, about: dict[str, object], probe: Callable[[], object]) -> Iterator[None]:
        calls.append((swap, len(runs)))
        about["probed"] = probe()
        yield
        calls.append((swap, len(runs)))

    hierarchy, owned = find_hierarchy(fake_v2(tmp_path / "root")), OwnedResources(tmp_path / "r.json")
    about = measure_program(PLAN, hierarchy, owned, lambda *_: None, intervene).conditions
    assert calls == [(None, 1), (None, 11)]
    assert about["probed"] == about["page_in"] == {"us": {"p50": 8.0}}


def test_printed_table_shows_the_cost_of_faults(
    tmp_path: Path, runs: list[tuple[int, float]], capsys: pytest.CaptureFixture[str]
) -> None:
    limited_runs = measured(tmp_path, dataclasses.replace(PLAN, cpus=()))
    print_measured(limited_runs)
    lines = capsys.readouterr().out.splitlines()
    assert lines[2].split()[:3] == ["100%", "all", "1"] and lines[2].rstrip().endswith("1 s")
    assert lines[3].rstrip().endswith("62.5 ms")  # 0.25 s more, with four faults
    assert lines[6:] == ["page-in from swap, us: p50 8"]
