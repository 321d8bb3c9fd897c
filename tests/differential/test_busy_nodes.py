"""Reservations on nodes in use (bf_busy_nodes): kernels on shared nodes equal the reference engine."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from poolwise.engines import simulate
from poolwise.model import Machine, Workload
from poolwise.policies.backfill.slurm import LINEAR, SlurmBackfill
from poolwise.quantities import SECOND
from poolwise.registry import make
from poolwise.schedulers.list import ListScheduler
from tests.helpers.node_machines import machine
from tests.helpers.random_studies import Stepped, difference


def study(seed: int, placement: str, *, busy: int = 1) -> tuple[Workload, Machine, ListScheduler]:
    """Draw nodes of three sizes, some in a partition and some with GPUs, and jobs that end long before their limits."""
    g = np.random.default_rng(seed)
    n, n_job = int(g.integers(6, 24)), int(g.integers(50, 90))
    size = g.integers(0, 3, n)
    nodes = np.array([[8, 64], [16, 64], [16, 128]])[size]
    gpus = [(k, "gpu") for k in np.flatnonzero(g.random(n) < 0.3).tolist() for _ in range(2)]
    on = machine(nodes, np.zeros(n, dtype=np.int64), devices=gpus, sets={"part": g.random(n) < 0.6, "all": np.ones(n, bool)})
    if placement == "first_fit":
        on = replace(on, attributes={"weight": g.choice([1.0, 2.0, np.nan], on.n_owner)})
    duration = g.integers(1, 90, n_job) * SECOND
    few = np.minimum(g.choice([1, 1, 1, 2, 3, 5], n_job), n)
    load = Workload.of(
        np.sort(g.integers(0, int(g.integers(60, 300)), n_job)) * SECOND,
        duration,
        requested=duration * g.choice([1, 2, 10], n_job),
        requests={
            "nodes": few, "cores": g.choice([1, 2, 4, 8, 16], n_job), "memory": g.choice([1, 8, 64, 128], n_job),
            "gpu": (g.random(n_job) < 0.1) * g.integers(1, 3, n_job),
        },
        attributes={"partition": g.choice(["part", "all"], n_job)},
    )  # fmt: skip
    settings = {"bf_busy_nodes": busy, "bf_interval": int(g.choice([7, 15, 30])), "bf_resolution": int(g.choice([1, 60]))}
    order = [make("orders", "sjf"), make("orders", "fcfs"), Stepped()][seed % 3]
    return load, on, ListScheduler(order, SlurmBackfill(None, settings), make("placements", placement))


@pytest.mark.parametrize("placement", ["first_fit", "best_fit", "worst_fit"])
@pytest.mark.parametrize("seed", [4600, *(pytest.param(seed, marks=pytest.mark.long) for seed in (4601, 4602))])
def test_reservations_on_nodes_of_several_sizes(seed: int, placement: str) -> None:
    check_engines(seed, placement, busy=1)


@pytest.mark.long
@pytest.mark.further
@pytest.mark.parametrize("seed", range(4603, 4609))
def test_further_reservations_on_nodes_of_several_sizes(seed: int) -> None:
    for placement in ("first_fit", "best_fit", "worst_fit"):
        for busy in (0, 1):
            check_engines(seed, placement, busy=busy)


def check_engines(seed: int, placement: str, *, busy: int) -> None:
    """Compare the engines on a study."""
    load, on, how = study(seed, placement, busy=busy)
    plain, fast = (simulate(load, on, how, engine=engine) for engine in ("reference", "compiled"))
    assert fast.engine == "compiled"
    assert difference(plain.schedule, fast.schedule) == ""


@pytest.mark.parametrize("seed", range(4620, 4632))
def test_ends_of_runs_one_by_one_as_with_select_linear(seed: int) -> None:
    load, on, how = study(seed, "first_fit", busy=0)
    assert isinstance(how.backfill, SlurmBackfill)
    single = replace(how, backfill=replace(how.backfill, select_type=LINEAR))
    plain, fast = (simulate(load, on, single, engine=engine) for engine in ("reference", "compiled"))
    assert difference(plain.schedule, fast.schedule) == ""


def test_schedules_depend_on_the_plugin_that_selects_nodes() -> None:
    studies = [study(seed, "first_fit", busy=0) for seed in range(4600, 4612)]
    backfills = [(how.backfill, replace(how.backfill, select_type=LINEAR)) for *_, how in studies]
    schedules = [
        [simulate(load, on, replace(how, backfill=each)).schedule for each in pair]
        for (load, on, how), pair in zip(studies, backfills, strict=True)
    ]
    assert sum(difference(*pair) != "" for pair in schedules) >= 6


def test_schedules_depend_on_the_setting() -> None:
    """In the kernel, which equals the reference."""
    schedules = [[simulate(*study(seed, "first_fit", busy=busy)).schedule for busy in (0, 1)] for seed in range(4600, 4612)]
    assert sum(difference(*pair) != "" for pair in schedules) >= 6
