"""Affinity model: exact times, operations / rate rounded up once, for any reference duration."""

from dataclasses import replace
from fractions import Fraction
from math import ceil

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from poolwise.engines import simulate
from poolwise.errors import InputError
from poolwise.loop import run_loop
from poolwise.model import CommitResult, EventBatch, Machine, Placement, Queue, Run, Snapshot, Workload
from poolwise.model.run_table import RunTable
from poolwise.performance.affinity import Affinity, compute_ns, compute_times, slowdown
from poolwise.performance.combined import Combined
from poolwise.performance.transfer import Transfer
from poolwise.platforms.simulated import Simulation
from poolwise.policies.placement.units.policies import High
from poolwise.quantities import with_slowdown
from poolwise.schedulers.dispatch import Dispatch
from poolwise.schedulers.list import ListScheduler
from poolwise.traces import vinesim


@given(st.integers(1, 2**40), st.integers(1, 10**7))
def test_whole_rates_round_up_exactly(operations: int, rate: int) -> None:
    exact = Fraction(operations * 1000, rate)
    time = compute_ns(operations, rate)
    assert time == max(1, ceil(exact)) or (time == round(exact) and abs(exact - time) <= exact * Fraction(1, 10**9))


@given(st.integers(1, 2**40))
def test_reciprocal_rate_gives_the_exact_time(microseconds: int) -> None:
    """One operation at 1 / t per microsecond: rounding of the reciprocal does not add a nanosecond."""
    assert compute_ns(1, 1 / microseconds) == microseconds * 1000


@given(st.integers(1, 2**51), st.integers(1, 2**51))
def test_slowdown_reaches_any_time_from_any_duration(time: int, work: int) -> None:
    factor = slowdown(time, work)
    assert factor > -1 and with_slowdown(float(work), factor) == time


def test_times_are_at_least_a_nanosecond() -> None:
    assert compute_times(np.array([0.0, 1.0]), np.array([1e6, 1e6])).tolist() == [1, 1]


def test_quantities_are_equal_without_affinities() -> None:
    workload = Workload.of(np.array([0]), np.array([7]), requests={"nodes": np.array([1])})
    assert simulate(workload, Machine.flat(1), ListScheduler(), model=Affinity()).schedule.end.tolist() == [7]


def test_time_follows_from_operations_whatever_was_requested() -> None:
    rates = np.zeros((6, 7))
    rates[0, 2] = 4.0
    case = vinesim.VineSimCase.of(vinesim.UnitList.of([(0, 0, 0)]), vinesim.TaskList.of_jobs([2], 2, 100), rates)
    workload = replace(case.workload, requested=np.array([70_000]))
    simulation = Simulation(workload, case.machine, case.model)
    expected = []

    def observe(batch: EventBatch, outcome: CommitResult, queue: Queue) -> None:
        expected.extend(run.expected_end for run in simulation.snapshot().runs())

    loop = run_loop(simulation, Dispatch(), observer=observe)
    assert simulation.recorder.schedule(workload, case.machine, loop).end.tolist() == expected == [25_000, 50_000]


def test_gang_is_as_slow_as_its_slowest_unit() -> None:
    rates = np.zeros((6, 7))
    rates[0, 2], rates[2, 2] = 1.0, 4.0
    case = vinesim.VineSimCase.of(vinesim.UnitList.of([(2, 0, 0), (0, 0, 1)]), vinesim.TaskList.of_jobs([2], 2, 100), rates)
    schedule = simulate(case.workload, case.machine, ListScheduler(placement=High()), model=case.model).schedule
    assert (schedule.end.tolist(), schedule.tasks.tolist()) == ([100_000], [2])


def test_unit_that_cannot_run_a_task_is_an_error() -> None:
    rates = np.zeros((6, 7))
    rates[0, 2] = 1.0
    case = vinesim.VineSimCase.of(vinesim.UnitList.of([(0, 0, 0), (2, 0, 1)]), vinesim.TaskList.of_jobs([1], 2, 100), rates)
    blind = replace(case.machine, attributes={})
    assert simulate(case.workload, blind, Dispatch(), model=case.model).schedule.end.tolist() == [100_000]
    free = case.machine.capacity
    view = Snapshot(0, case.machine, case.workload.table, free, free, RunTable(free.size), case.model)
    with pytest.raises(InputError, match="gpu1 cannot run tasks"):
        Affinity().slowdown(Run(0, 0, (0,), Placement.of([(0, 1, 0, 1)]), 0, 0), view)


def test_transfers_within_one_position_use_the_local_bandwidth() -> None:
    rates = np.zeros((6, 7))
    rates[0, 2] = 1.0
    tasks = vinesim.TaskList.of([(2, 1000, 0, 0, 1, 5, 0)])
    case = vinesim.VineSimCase.of(vinesim.UnitList.of([(0, 0, 0)]), tasks, rates)
    for local, ns in ((0, 0), (10_000, 100), (3, 333_334)):
        model = Combined((Affinity(), Transfer(local=local)))
        expected = 1_000 + ns
        for engine in ("reference", "compiled"):
            assert simulate(case.workload, case.machine, Dispatch(), model=model, engine=engine).schedule.end.tolist() == [
                expected
            ]
