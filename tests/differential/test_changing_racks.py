"""Racks whose capacity changes: compiled and reference engine produce the same bytes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from poolwise.engines import simulate
from poolwise.errors import InputError
from poolwise.model import Failures, Machine, Outage, Outcome, Workload
from poolwise.platforms.simulated import Disturbance
from poolwise.policies.backfill.conservative import Conservative
from poolwise.policies.backfill.easy import Easy
from poolwise.policies.order.priorities import SJF, Capped
from poolwise.quantities import SECOND
from poolwise.schedulers.list import ListScheduler
from poolwise.schedulers.warm_up import WarmUp
from tests.helpers.changing_racks import compare_changing
from tests.helpers.random_studies import difference

pytestmark = pytest.mark.filterwarnings("ignore:remote latency")


def test_random_studies() -> None:
    schedules = [compare_changing(seed) for seed in range(2000, 2025)]
    assert sum(schedule.outcome.count(Outcome.LOST) for schedule in schedules) > 25
    assert sum(len(schedule.rejected) for schedule in schedules) > 100


@pytest.mark.long
@pytest.mark.further
def test_more_random_studies_with_deep_queues() -> None:
    for seed in range(2100, 2140):
        compare_changing(seed, 400)


def test_conservative_backfilling() -> None:
    for seed in range(2200, 2216):
        compare_changing(seed, 60, ("conservative",))


@pytest.mark.parametrize("requeue", [True, False])
def test_latest_started_run_is_lost(requeue: bool) -> None:
    """Three nodes of one rack: the second job starts last and loses its node from 5 s to 20 s."""
    on = Machine.of_racks(1, 3, local=10, pool=10)
    jobs = Workload.of(np.array([0, 1]) * SECOND, np.full(2, 10 * SECOND), requests={"nodes": np.array([2, 1])})
    lost = [Disturbance(5 * SECOND, 0, 0, -1), Disturbance(20 * SECOND, 0, 0, 1)]
    for engine in ("reference", "compiled"):
        schedule = simulate(jobs, on, ListScheduler(), disturbances=lost, requeue=requeue, engine=engine).schedule
        assert (schedule.end // SECOND).tolist() == ([10, 5, 20] if requeue else [10, 5])


def test_job_without_its_pool_does_not_block_the_queue() -> None:
    """The first of two jobs waiting for the only node needs the pool, which is unavailable from 1 s to 300 s."""
    on = Machine.of_racks(1, 1, local=10, pool=10)
    requests = {"nodes": np.ones(3, np.int64), "memory": np.array([10, 20, 10])}
    jobs = Workload.of(np.array([0, 0, 5]) * SECOND, np.array([10, 10, 100]) * SECOND, requests=requests)
    pool, column = int(on.racks.pools[0]), on.racks.memory_column
    away = [Disturbance(SECOND, pool, column, -10), Disturbance(300 * SECOND, pool, column, 10)]
    for engine in ("reference", "compiled"):
        schedule = simulate(jobs, on, ListScheduler(), disturbances=away, engine=engine).schedule
        assert (schedule.job_start // SECOND).tolist() == [0, 300, 10]


def test_jobs_can_be_lost_repeatedly() -> None:
    """More runs than jobs, since all nodes are down every other second."""
    on = Machine.of_racks(2, 2, local=10, pool=10)
    downs = range(SECOND, 300 * SECOND, 2 * SECOND)
    jobs = Workload.of(np.zeros(4, np.int64), np.full(4, 5 * SECOND), requests={"nodes": np.array([1, 3, 1, 4])})
    changes = [
        Disturbance(at + later, r, 0, sign * 2) for at in downs for r in (0, 1) for later, sign in ((0, -1), (SECOND, 1))
    ]
    plain, fast = (
        simulate(jobs, on, ListScheduler(), disturbances=changes, engine=engine).schedule
        for engine in ("reference", "compiled")
    )
    assert difference(plain, fast) == "" and fast.n_run > 250


def test_machine_failures_are_compiled() -> None:
    """Given and random outages of nodes."""
    g = np.random.default_rng(3)
    on = Machine.of_racks(4, 8, local=50, pool=300)
    owners = tuple(on.racks.nodes.tolist())
    on = replace(on, failures=Failures((Outage(owners[:2], 50 * SECOND, 90 * SECOND),), owners, 300 * SECOND, 30 * SECOND))
    jobs = Workload.of(
        np.sort(g.integers(0, 900, 200)) * SECOND,
        g.integers(1, 60, 200) * SECOND,
        requests={"nodes": g.integers(1, 12, 200), "memory": g.choice([10, 60, 90], 200)},
    )
    plain, fast = (simulate(jobs, on, ListScheduler(), seed=5, engine=engine) for engine in ("reference", "compiled"))
    assert difference(plain.schedule, fast.schedule) == ""
    assert fast.schedule.outcome.count(Outcome.LOST) > 20


@pytest.mark.parametrize(
    ("why", "how"),
    [
        ("held reservations", ListScheduler(backfill=Conservative(keep_reservations=True))),
        ("called at each pass or has a cap", ListScheduler(Capped(SJF(), 5.0, 1.0))),
        ("a backfill order of its own", ListScheduler(backfill=Easy(order=SJF()))),
        ("with a warm-up", WarmUp.before(ListScheduler(), 1)),
    ],
)
def test_unsupported_combinations_with_capacity_changes_are_named(why: str, how: ListScheduler) -> None:
    jobs = Workload.of(np.zeros(2, np.int64), np.full(2, SECOND), requests={"nodes": np.ones(2, np.int64)})
    with pytest.raises(InputError, match=why):
        simulate(jobs, Machine.flat(4), how, disturbances=[Disturbance(5, 0, 0, -1)], engine="compiled")
