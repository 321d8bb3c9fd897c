"""Backfill passes that test few of many waiting jobs (bf_max_job_test): kernels on shared nodes equal the reference engine."""

from __future__ import annotations

import numpy as np
import pytest

from poolwise.engines import simulate
from poolwise.policies.backfill.slurm import SlurmBackfill
from poolwise.registry import make
from poolwise.schedulers.list import ListScheduler
from tests.helpers.node_machines import random_jobs, random_machine
from tests.helpers.random_studies import Stepped, difference


@pytest.mark.parametrize("depth", [1, 2, 5, 9])
@pytest.mark.parametrize("seed", [*range(4400, 4404), *(pytest.param(k, marks=pytest.mark.long) for k in range(4404, 4412))])
def test_deep_queues(seed: int, depth: int) -> None:
    g = np.random.default_rng(seed)
    on = random_machine(g, 7, pools=False, devices=False)
    load = random_jobs(g, on, 120)
    order = [make("orders", "sjf"), Stepped()][seed % 2]
    filling = SlurmBackfill(None, {"bf_max_job_test": depth, "bf_interval": int(g.choice([1, 7, 30]))}, 0, 1000, 0)
    how = ListScheduler(order, filling, make("placements", "first_fit"))
    plain, fast = (simulate(load, on, how, engine=engine) for engine in ("reference", "compiled"))
    assert difference(plain.schedule, fast.schedule) == ""
