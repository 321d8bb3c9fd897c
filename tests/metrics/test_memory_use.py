"""Metrics of memory use over time, compared with hand computations."""

import pytest

from poolwise.engines import simulate
from poolwise.metrics import Window
from poolwise.metrics.measure import MeasuredRun
from poolwise.metrics.measures import MemoryUseMeasure
from poolwise.metrics.memory_use import pool_memory
from poolwise.quantities import SECOND
from poolwise.schedulers.list import ListScheduler
from poolwise.schedulers.usage_based import UsageBased
from tests.helpers.memory_over_time import machine_with, using

TWO = using([80, 80], [[(0, 20), (50, 80)], [(0, 20), (60, 80)]], [100, 100], nodes=[2, 1])


def test_metrics_match_a_hand_computation() -> None:
    # at 10 s the first releases the unused part of 140 MiB; the second starts, releases memory at 20 s, lacks 40 MiB at 70 s,
    # is stopped at 85 s, and runs again from 100 s to 200 s with its full request
    schedule = simulate(TWO, machine_with(170), UsageBased(interval_s=10, margin=0.0, patience_s=15)).schedule
    values = MemoryUseMeasure().of(MeasuredRun.of(schedule))
    assert values["resizes"] == 3 and values["runs_out_of_memory"] == 1
    assert values["lost_node_hours"] == pytest.approx(75 / 3600)
    assert values["stalled_node_hours"] == pytest.approx(15 / 3600)
    held, needed = pool_memory(schedule, Window(0, 200 * SECOND))
    first = 10 * 140 + 40 * 20 + 50 * 140
    assert held == pytest.approx((first + 10 * 70 + 65 * 10 + 100 * 70) / 170 / 200)
    assert needed == pytest.approx((50 * 20 + 50 * 140 + 60 * 10 + 15 * 70 + 60 * 10 + 40 * 70) / 170 / 200)


def test_jobs_with_their_full_request_never_run_out() -> None:
    run = MeasuredRun.of(simulate(TWO, machine_with(170), ListScheduler()).schedule)
    values = MemoryUseMeasure().of(run)
    assert MemoryUseMeasure().applies(run)
    assert [values[name] for name in ("resizes", "runs_out_of_memory", "lost_node_hours", "stalled_node_hours")] == [0] * 4
    assert values["pool_memory_held"] > values["pool_memory_needed"] > 0
