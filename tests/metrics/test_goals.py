"""Violated goals, with and without queueing."""

import numpy as np
import pytest

from poolwise.engines import simulate
from poolwise.errors import InputError
from poolwise.metrics.deadlines import violated
from poolwise.model import Machine, Workload
from poolwise.quantities import SECOND
from poolwise.schedulers.list import ListScheduler


def test_goals_with_and_without_queueing_differ():
    # One processor: the second waits 10 s, the third 20 s and then takes too long, the fourth has no goal.
    goal = np.array([10, 15, 5, 0]) * SECOND
    workload = Workload.of(np.zeros(4), np.full(4, 10 * SECOND), requests={"nodes": np.ones(4)}, attributes={"goal": goal})
    schedule = simulate(workload, Machine.flat(1), ListScheduler()).schedule
    assert violated(schedule).tolist() == [False, False, True, False]
    assert violated(schedule, queueing=True).tolist() == [False, True, True, False]


def test_job_that_never_ran_violates_its_goal():
    workload = Workload.of(
        np.zeros(2), np.full(2, SECOND), requests={"nodes": np.array([1, 2])}, attributes={"goal": np.full(2, 10 * SECOND)}
    )
    schedule = simulate(workload, Machine.flat(1), ListScheduler()).schedule
    assert violated(schedule).tolist() == [False, True]


def test_workload_without_goals_is_rejected():
    workload = Workload.of(np.zeros(1), np.ones(1), requests={"nodes": np.ones(1)})
    schedule = simulate(workload, Machine.flat(1), ListScheduler()).schedule
    with pytest.raises(InputError, match="goals"):
        violated(schedule)
