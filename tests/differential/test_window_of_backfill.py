"""Backfill passes that continue earlier plans while their window moves: kernels on shared nodes equal the reference engine."""

from __future__ import annotations

import numpy as np
import pytest

from poolwise.engines import simulate
from poolwise.model import Machine, Workload
from poolwise.policies.backfill.slurm import SlurmBackfill
from poolwise.quantities import SECOND
from poolwise.registry import make
from poolwise.schedulers.list import ListScheduler
from tests.helpers.node_machines import machine
from tests.helpers.random_studies import Stepped, difference


def study(seed: int) -> tuple[Workload, Machine, ListScheduler]:
    """Draw long runs, jobs that wait for them, and short jobs; limits reach beyond the window of the backfill."""
    g = np.random.default_rng(seed)
    n, n_job = int(g.integers(3, 12)), int(g.integers(20, 50))
    nodes = np.array([[8, 64], [16, 64]])[g.integers(0, 2, n)]
    on = machine(nodes, np.zeros(n, dtype=np.int64), sets={"part": g.random(n) < 0.7, "all": np.ones(n, dtype=np.bool_)})
    long = g.random(n_job) < 0.4
    limit = np.where(long, g.integers(200, 1500, n_job), g.integers(5, 400, n_job))
    load = Workload.of(
        np.sort(g.integers(0, int(g.choice([60, 600, 2400])), n_job)) * SECOND,
        np.maximum((limit * g.choice([0.3, 0.9, 1], n_job)).astype(np.int64), 1) * SECOND,
        requested=limit * SECOND,
        requests={"nodes": np.minimum(g.choice([1, 1, 2, 4], n_job), n), "cores": g.choice([1, 4, 8, 16], n_job)},
        attributes={"partition": g.choice(["part", "all"], n_job)},
    )
    settings = {
        "bf_window": int(g.choice([1, 5, 20, 60])), "bf_interval": int(g.choice([7, 15, 30])),
        "bf_resolution": int(g.choice([1, 7, 60, 90])), "bf_max_job_test": int(g.choice([5, 500])),
    }  # fmt: skip
    order = [make("orders", "sjf"), make("orders", "fcfs"), Stepped()][seed % 3]
    return load, on, ListScheduler(order, SlurmBackfill(None, settings), make("placements", "first_fit"))


@pytest.mark.parametrize("seed", range(4700, 4706))
def test_plans_hold_while_the_window_moves(seed: int) -> None:
    check_plans(seed)


@pytest.mark.long
@pytest.mark.further
@pytest.mark.parametrize("seed", range(4706, 4730))
def test_further_plans_hold_while_the_window_moves(seed: int) -> None:
    check_plans(seed)


def check_plans(seed: int) -> None:
    """Compare the engines on a study."""
    load, on, how = study(seed)
    plain, fast = (simulate(load, on, how, engine=engine) for engine in ("reference", "compiled"))
    assert fast.engine == "compiled"
    assert difference(plain.schedule, fast.schedule) == ""
