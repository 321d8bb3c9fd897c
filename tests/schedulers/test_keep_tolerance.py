"""Running jobs give up local memory within their tolerance, and regain what remains."""

import numpy as np
from hypothesis import given, settings

from poolwise.engines import simulate
from poolwise.model import Workload
from poolwise.performance.cpu_frequency import CpuFrequency
from poolwise.performance.profiles import find_profile
from poolwise.quantities import SECOND
from poolwise.schedulers.batch import BatchScheduler
from poolwise.schedulers.keep_tolerance import KeepTolerance
from tests.schedulers.test_batch import machine, workloads


def two(tolerance: float = 1.5) -> Workload:
    """Return a job that fills a node, and a later one that needs some of the node's memory."""
    return Workload.of(
        np.array([0, 10]) * SECOND,
        np.array([100, 20]) * SECOND,
        requests={"cores": np.array([4, 4]), "memory": np.array([1000, 1000])},
        attributes={
            "frequency": np.array([2.0, 2.0]),
            "tolerance": np.full(2, tolerance),
            "profile": np.array(["kmeans", "kmeans"]),
        },
    )


def test_running_job_makes_room_and_regains_its_memory() -> None:
    still = simulate(two(), machine(1), BatchScheduler(effort_s=0.002), model=CpuFrequency()).schedule
    moving = simulate(two(), machine(1), KeepTolerance(effort_s=0.002), model=CpuFrequency()).schedule
    assert still.start.tolist()[1] >= 100 * SECOND and moving.start.tolist() == [0, 10 * SECOND]
    slowdown = (moving.end - moving.start) / two().duration - 1
    assert (slowdown <= 1.5 + 1e-6).all() and slowdown[0] > 0
    assert [resized.run for resized in moving.resizes][:1] == [0]
    back = moving.resizes[-1]
    assert back.run == 0 and back.time == moving.end[1]
    assert [amount for _, owner, _, amount in back.placement.rows() if owner == 0] == [4, 1000]


def test_no_memory_moves_without_tolerance() -> None:
    schedule = simulate(two(0.0), machine(1), KeepTolerance(effort_s=0.002), model=CpuFrequency()).schedule
    assert schedule.resizes == () and schedule.start.tolist() == [0, 100 * SECOND]


def test_least_share_follows_from_the_tolerance() -> None:
    schedule = simulate(two(1.4), machine(1), KeepTolerance(effort_s=0.002), model=CpuFrequency()).schedule
    least = 1 - float(find_profile("kmeans").largest_remote(1.4))
    assert schedule.resizes
    for resized in schedule.resizes:
        local = sum(amount for _, owner, resource, amount in resized.placement.rows() if (owner, resource) == (0, 1))
        assert local >= least * 1000 - 1


@settings(max_examples=25, deadline=None)
@given(workload=workloads())
def test_resized_runs_stay_within_capacity_and_slowdown_bound(workload: Workload) -> None:
    schedule = simulate(workload, machine(), KeepTolerance(effort_s=0.002), model=CpuFrequency()).schedule
    assert not schedule.refused and not schedule.waiting
    assert sorted([*schedule.job.tolist(), *schedule.rejected]) == list(range(len(workload)))
    for job, start, end in zip(schedule.job.tolist(), schedule.start.tolist(), schedule.end.tolist(), strict=True):
        assert (end - start) / workload.duration[job] - 1 <= workload.attributes["tolerance"][job] + 1e-6
