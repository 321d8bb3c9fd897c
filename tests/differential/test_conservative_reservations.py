"""Conservative backfilling on shared nodes, where most reservations move in each pass: compiled engine against reference."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest

from poolwise.engines import simulate
from poolwise.model import Machine, MachineBuilder, Schedule, Workload
from poolwise.quantities import MINUTE
from poolwise.registry import make
from poolwise.schedulers.list import ListScheduler
from tests.helpers.random_studies import difference

CORES, MEMORY = 64, 256


def overestimated_jobs(seed: int, jobs: int, nodes: int, load: float) -> Workload:
    """Return jobs of one to all cores of a node, one in ten of several nodes, that request one to five times their runtime.

    Runtimes are log-uniform from a minute to a day; submissions are a Poisson process with a load of the machine's cores.
    """
    g = np.random.default_rng(seed)
    parts = np.where(g.random(jobs) < 0.1, g.integers(2, 1 + min(nodes, 8), jobs), 1)
    cores = np.floor(2 ** (6 * g.random(jobs))).astype(np.int64)
    cores = np.where(parts > 1, np.maximum(cores, CORES // 2), cores)
    memory = np.ceil(cores * 4 * g.random(jobs)).astype(np.int64)
    runtime = np.ceil(1440 ** g.random(jobs)).astype(np.int64) * MINUTE
    requested = np.ceil(runtime / MINUTE * 5 ** g.random(jobs)).astype(np.int64) * MINUTE
    gap = float((cores * parts * runtime).mean()) / (load * nodes * CORES)
    submit = np.cumsum(g.exponential(gap, jobs)).astype(np.int64)
    requests = {"nodes": parts, "cores": cores, "memory": memory}
    return Workload.of(submit, runtime, requested=requested, requests=requests)


def run(load: Workload, nodes: int, order: str, placement: str, engine: str = "compiled") -> Schedule:
    """Return the schedule of jobs on shared nodes, four per rack."""
    build = MachineBuilder("shared", ("cores", "memory"))
    for k in range(nodes):
        build.node(f"n{k}", rack=k // 4, type="n", cores=CORES, memory=MEMORY)
    how = ListScheduler(make("orders", order), make("backfills", "conservative"), make("placements", placement))
    return simulate(load, Machine.of(build), how, engine=engine).schedule


def compare(seed: int, jobs: int, order: str) -> None:
    """Run a deep queue in both engines, which must produce the same schedule."""
    nodes, placement = (8, 20, 40)[seed % 3], ("first_fit", "best_fit", "first_fit", "packed", "topology_none")[seed % 5]
    load = overestimated_jobs(seed, jobs, nodes, 1.2 + 0.2 * (seed % 4))
    plain, fast = (run(load, nodes, order, placement, engine) for engine in ("reference", "compiled"))
    assert difference(plain, fast) == "", f"seed {seed}: {order}, {placement}"


@pytest.mark.parametrize(
    ("seed", "placement", "digest"),
    [
        (0, "first_fit", "19a65a716aec579b"),
        (6, "first_fit", "da7a96f662e69706"),
        (1, "best_fit", "3bb475e059451370"),
        (2, "best_fit", "81d96a1db768dc25"),
    ],
)
def test_schedule_of_the_reference_engine(seed: int, placement: str, digest: str) -> None:
    """The reference engine, which takes half a minute for it, produced the same starts."""
    schedule = run(overestimated_jobs(seed, 1200, 40, 1.5), 40, "fcfs", placement)
    assert hashlib.sha256(np.stack([schedule.job, schedule.start]).tobytes()).hexdigest()[:16] == digest


def test_moving_reservations() -> None:
    for seed in range(5):
        compare(seed, 120, "fcfs")


@pytest.mark.long
@pytest.mark.parametrize("order", ["fcfs", "sjf", "wfp3"])
def test_moving_reservations_in_deep_queues(order: str) -> None:
    for seed in range(100, 108):
        compare(seed, 300, order)
