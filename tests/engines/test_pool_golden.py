"""Published golden schedules of racks with memory pools, and the naive reference simulator on random jobs."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks import naive_pools
from poolwise.engines import simulate
from poolwise.model import Machine, Schedule, Workload
from poolwise.performance.remote_memory import RemoteMemory
from poolwise.quantities import SECOND
from poolwise.registry import make
from poolwise.schedulers.list import ListScheduler
from tests.helpers.golden import golden_jobs, golden_times

ORDERS = ("fcfs", "sjf", "wfp3", "f1", "fair", "fm")
BACKFILLS = ("none", "easy", "easy_no_extra", "conservative")
SCOPES = ("rack", "system")
LOCAL = 65536


def run(workload: Workload, machine: Machine, order: str, backfill: str, scope: str) -> Schedule:
    scheduler = ListScheduler(make("orders", order), make("backfills", backfill), make("placements", "racks", scope=scope))
    return simulate(workload, machine, scheduler, model=RemoteMemory(), engine="reference").schedule


def times(schedule: Schedule) -> dict[int, tuple[int, int]]:
    """Return job id -> start and end (ns) of the jobs that ran."""
    columns = (schedule.workload.id.tolist(), schedule.job_start.tolist(), schedule.job_end.tolist())
    return {job: (start, end) for job, start, end in zip(*columns, strict=True) if end >= 0}


@pytest.mark.long
@pytest.mark.parametrize("scope", SCOPES)
@pytest.mark.parametrize("backfill", BACKFILLS)
@pytest.mark.parametrize("order", ORDERS)
def test_starts_and_ends_equal_the_published_ones(order: str, backfill: str, scope: str) -> None:
    published = golden_times()
    assert len(published) == len(ORDERS) * len(BACKFILLS) * len(SCOPES)
    assert all(len(case) == 274 for case in published.values())

    machine = Machine.of_racks(4, 16, local=LOCAL, pool=524288)
    assert times(run(golden_jobs(), machine, order, backfill, scope)) == published[order, backfill, scope]


@pytest.mark.long
@settings(max_examples=40, deadline=None, derandomize=True)
@given(data=st.data())
def test_random_jobs_run_as_in_the_naive_simulator(data: st.DataObject) -> None:
    """Up to 300 jobs arrive in bursts with ties of submit time, size and run time; half need much memory, some never fit."""
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1), label="seed"))
    racks, nodes = data.draw(st.integers(1, 5), label="racks"), data.draw(st.sampled_from((1, 4, 16)), label="nodes")
    pool = data.draw(st.sampled_from((0, 100_000, 524_288, 4_000_000)), label="pool")
    backfill = data.draw(st.sampled_from(BACKFILLS), label="backfill")
    n = data.draw(st.integers(1, 80 if backfill == "conservative" else 300), label="jobs")
    order, scope = data.draw(st.sampled_from(ORDERS), label="order"), data.draw(st.sampled_from(SCOPES), label="scope")

    submit = np.sort(rng.integers(0, 1 + 400 * n // (racks * nodes), n)) * SECOND
    workload = Workload.of(
        submit,
        rng.choice((60, 600, 601, 3600), n) * SECOND + rng.choice((0, 0, 1, 999), n),
        id=rng.permutation(n) + 1,
        requests={
            "nodes": np.minimum(rng.geometric(0.3, n), 1 + racks * nodes),
            "memory": np.where(rng.random(n) < 0.5, LOCAL // 2, rng.choice((70_000, 131_072, 300_000, 505_000), n)),
        },
        attributes={"u": rng.random(n)},
    )
    jobs = [
        naive_pools.Job(*row, LOCAL)
        for row in zip(
            workload.id.tolist(),
            workload.submit.tolist(),
            workload.nodes.tolist(),
            workload.duration.tolist(),
            workload.memory.tolist(),
            workload.attributes["u"].tolist(),
            strict=True,
        )
    ]
    expected = naive_pools.simulate(jobs, racks, nodes, pool, order, backfill, scope)
    schedule = run(workload, Machine.of_racks(racks, nodes, local=LOCAL, pool=pool), order, backfill, scope)
    assert times(schedule) == expected
    assert len(schedule.rejected) == n - len(expected)
