"""Tests of slowdown estimates from page faults, pressure and progress."""

import math

import pytest

from poolwise_agents.memory_agent.estimate import CountedWindow, Counters, LocalPace

PAGE_IN_S = 20e-6


def window(**others: float | None) -> CountedWindow:
    return CountedWindow(**{"seconds": 1.0, "cpu_s": 1.0, "major_faults": 0, "stalled_s": None, "progress": None, **others})


def test_page_ins_cost_time() -> None:
    estimate, _ = LocalPace().estimate(window(major_faults=25_000), "cpu", PAGE_IN_S)
    assert estimate is not None and estimate.source == "faults"
    assert estimate.slowdown == pytest.approx(1.0) and estimate.page_in_s == pytest.approx(PAGE_IN_S)


def test_longer_pressure_replaces_page_ins_on_the_wall_clock() -> None:
    slow = window(cpu_s=0.2, major_faults=1000, stalled_s=0.75)
    estimate, _ = LocalPace().estimate(slow, "wall", PAGE_IN_S)
    assert estimate is not None and estimate.source == "pressure"
    assert estimate.slowdown == pytest.approx(3.0) and estimate.page_in_s == pytest.approx(0.75e-3)
    by_cpu, _ = LocalPace().estimate(slow, "cpu", PAGE_IN_S)
    assert by_cpu is not None and by_cpu.source == "faults"


def test_progress_replaces_faults_once_its_pace_is_known() -> None:
    estimate, pace = LocalPace().estimate(window(progress=100), "cpu", PAGE_IN_S)
    assert estimate is not None and estimate.slowdown == pytest.approx(0) and pace.unit_s == pytest.approx(0.01)
    estimate, after = pace.estimate(window(progress=40, major_faults=25_000), "cpu", PAGE_IN_S)
    assert estimate is not None and estimate.source == "progress"
    assert estimate.slowdown == pytest.approx(1.5) and after == pace


def test_pace_that_faults_cannot_explain_is_learned_again() -> None:
    _, pace = LocalPace().estimate(window(progress=100), "cpu", PAGE_IN_S)
    estimate, pace = pace.estimate(window(progress=5, major_faults=25_000), "cpu", PAGE_IN_S)
    assert estimate is not None and estimate.slowdown == pytest.approx(1.0)
    assert pace.unit_s == pytest.approx(0.1)
    _, pace = pace.estimate(window(progress=100), "cpu", PAGE_IN_S)
    assert pace.unit_s == pytest.approx(0.01)


def test_idle_workload_and_decreasing_counters_give_no_slowdown() -> None:
    assert LocalPace().estimate(window(cpu_s=0.0), "cpu", PAGE_IN_S)[0] is None
    assert CountedWindow.between(Counters(1.0, 5.0, 10), Counters(2.0, 1.0, 12)) is None
    assert CountedWindow.between(Counters(1.0, 5.0, 10), Counters(1.0, 5.0, 10)) is None
    assert CountedWindow.between(Counters(1.0, 5.0, 10, None, 3), Counters(3.0, 6.0, 12)) == CountedWindow(2, 1, 2, None, None)


def test_stall_never_takes_all_of_the_time() -> None:
    estimate, _ = LocalPace().estimate(window(major_faults=10**6), "cpu", PAGE_IN_S)
    assert estimate is not None and math.isfinite(estimate.slowdown) and estimate.slowdown == pytest.approx(9)
