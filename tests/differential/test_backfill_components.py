"""Backfill passes plan only partitions in which a job could start now: kernels on shared nodes equal the reference engine."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest

from poolwise.engines import simulate
from poolwise.interfaces import QueuePolicy
from poolwise.model import Machine, Schedule, Workload
from poolwise.policies.backfill.slurm import SlurmBackfill
from poolwise.quantities import SECOND
from poolwise.registry import make
from poolwise.schedulers.list import ListScheduler
from tests.helpers.node_machines import machine
from tests.helpers.random_studies import difference

CHAINS = (("a",), ("b",), ("c", "d"), ("e", "f"))
"""Partitions by component: those of a component share a node with the next one."""


def random_chains(g: np.random.Generator) -> tuple[Machine, list[str]]:
    """Return up to eight nodes for each component, and the names of partitions."""
    chosen = [CHAINS[k] for k in g.choice(len(CHAINS), int(g.integers(2, 5)), replace=False)]
    sizes = g.integers(2, 8, len(chosen))
    n, sets = int(sizes.sum()), {}
    for chain, end, size in zip(chosen, sizes.cumsum().tolist(), sizes.tolist(), strict=True):
        cut, begin = int(g.integers(1, size)), end - size
        for k, name in enumerate(chain):
            bounds = (begin, end) if len(chain) == 1 else ((begin, begin + cut + 1) if k == 0 else (begin + cut, end))
            sets[name] = (np.arange(n) >= bounds[0]) & (np.arange(n) < bounds[1])
    nodes = np.array([[8, 64], [16, 64]])[g.integers(0, 2, n)]
    return machine(nodes, np.zeros(n, dtype=np.int64), sets={name: sets[name] for name in g.permutation(list(sets))}), list(
        sets
    )


def check_components(
    seed: int, jobs: int = 60, limits: Mapping[str, int] | None = None, order: QueuePolicy | None = None
) -> Schedule:
    """Compare the engines on long runs, wide jobs that wait for them, and short jobs that arrive all the time.

    Some jobs name two partitions, which joins their components. Backfill passes also have the given limits.
    Return the schedule.
    """
    g = np.random.default_rng(seed)
    on, names = random_chains(g)
    partitions = [*names, *([f"{names[0]},{names[-1]}"] if g.random() < 0.3 else [])]
    kind = g.choice(3, jobs, p=[0.3, 0.3, 0.4])
    limit = np.choose(kind, [g.integers(300, 1200, jobs), g.integers(100, 900, jobs), g.integers(5, 300, jobs)])
    submit = np.where(kind == 0, g.integers(0, 400, jobs), g.integers(0, 1500, jobs))
    rows = np.argsort(submit, kind="stable")
    duration = np.maximum((limit * g.choice([0.5, 0.95, 1], jobs)).astype(np.int64), 1)
    nodes = np.choose(kind, [1 + (g.random(jobs) < 0.2), g.choice([2, 3, 4], jobs), 1])
    cores = np.choose(kind, [16, g.choice([4, 8, 16], jobs), g.choice([4, 8, 16], jobs)])
    load = Workload.of(
        submit[rows] * SECOND,
        duration[rows] * SECOND,
        requested=limit[rows] * SECOND,
        requests={"nodes": nodes[rows], "cores": cores[rows]},
        attributes={"partition": g.choice(partitions, jobs)},
    )
    settings = {
        "bf_window": int(g.choice([20, 60])), "bf_interval": int(g.choice([7, 15])),
        "bf_resolution": int(g.choice([1, 60])), "bf_max_job_test": int(g.choice([20, 500])),
    }  # fmt: skip
    settings |= limits or {}
    order = order or make("orders", ("fcfs", "fcfs", "sjf")[seed % 3])
    how = ListScheduler(order, SlurmBackfill(None, settings), make("placements", "first_fit"))
    plain, fast = (simulate(load, on, how, engine=engine) for engine in ("reference", "compiled"))
    assert fast.engine == "compiled"
    assert difference(plain.schedule, fast.schedule) == "", f"seed {seed}"
    return fast.schedule


@pytest.mark.parametrize("seed", [0, 1, 2, 78, 1069])
def test_components_are_planned_apart(seed: int) -> None:
    """With seed 78, a plan continues after a pass that has planned one component only; with 1069, other areas change starts."""
    check_components(seed)


@pytest.mark.long
@pytest.mark.further
@pytest.mark.parametrize("seed", range(3, 60))
def test_further_components_are_planned_apart(seed: int) -> None:
    check_components(seed)
