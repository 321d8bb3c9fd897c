"""Slurm's own placements, topology_tree and topology_none: kernels on shared nodes equal the reference engine."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from poolwise.engines import simulate
from poolwise.errors import InputError
from poolwise.interfaces import BackfillPolicy
from poolwise.model import Machine, Workload
from poolwise.policies.placement.nodes.placement import ConsecutiveNodes
from poolwise.quantities import SECOND
from poolwise.registry import make
from poolwise.schedulers.list import ListScheduler
from tests.helpers.node_machines import machine
from tests.helpers.random_studies import Stepped, at_intervals, backfill, difference

NAMES = "topology_tree", "topology_none"
BACKFILLS = "none", "easy", "easy_no_extra", "conservative", "slurm"


def study(g: np.random.Generator, placement: str, name: str) -> tuple[Workload, Machine, ListScheduler]:
    """Draw nodes of two sizes in several racks, some in a partition, and jobs with many parts.

    Some nodes have devices, and nodes have different weights, where kernels support these.
    """
    n, n_job = int(g.integers(4, 40)), int(g.integers(40, 80))
    rack = g.integers(-1, 6, n) if g.random() < 0.3 else np.sort(g.integers(0, 6, n))
    kind = "gpu" if name == "slurm" else "fpga"
    devices = [(k, kind) for k in np.flatnonzero(g.random(n) < 0.5).tolist()] if name != "conservative" else []
    sets = {"part": g.random(n) < 0.7, "all": np.ones(n, bool)}
    on = machine(np.array([[8, 64], [16, 128]])[g.integers(0, 2, n)], rack, devices=devices, sets=sets)
    if placement == "topology_none" and g.random() < 0.6:
        on = replace(on, attributes={"weight": g.choice([1.0, 2.0, np.nan], on.n_owner)})
    duration = g.integers(1, 200, n_job) * SECOND
    requests = {
        "nodes": np.minimum(g.choice([1, 1, 2, 3, 5, 9, 14], n_job), n), "cores": g.choice([1, 2, 4, 8, 16], n_job),
        "memory": g.choice([1, 8, 64, 128], n_job),
    }  # fmt: skip
    if devices:
        requests[kind] = (g.random(n_job) < 0.2).astype(np.int64)
    load = Workload.of(
        np.sort(g.integers(0, int(g.integers(60, 900)), n_job)) * SECOND,
        duration,
        requested=duration * g.choice([1, 2, 10], n_job),
        requests=requests,
        attributes={"partition": g.choice(["part", "all"], n_job)},
    )
    filling: BackfillPolicy = at_intervals(g) if name == "slurm" else backfill(name)
    order = [make("orders", "sjf"), make("orders", "fcfs"), make("orders", "fm"), Stepped()][int(g.integers(4))]
    chosen = ConsecutiveNodes(gpu_weights=False) if placement == "topology_none" else make("placements", placement)
    return load, on, ListScheduler(order, filling, chosen)


def check_engines(seed: int, placement: str, name: str) -> bool:
    """Compare the engines in a random study; return whether the placement changes the nodes of any job."""
    load, on, how = study(np.random.default_rng(seed), placement, name)
    plain, fast = (simulate(load, on, how, engine=engine) for engine in ("reference", "compiled"))
    assert fast.engine == "compiled"
    assert difference(plain.schedule, fast.schedule) == "", f"seed {seed}: {on.name}, {how}"
    return bool(difference(simulate(load, on, replace(how, placement=make("placements", "first_fit"))).schedule, fast.schedule))


@pytest.mark.parametrize("name", BACKFILLS)
@pytest.mark.parametrize("placement", ["topology_tree", pytest.param("topology_none", marks=pytest.mark.long)])
def test_random_studies(placement: str, name: str) -> None:
    assert sum(check_engines(seed, placement, name) for seed in range(6000, 6003)) > 1


def test_weights_of_gpus_have_no_kernel() -> None:
    load, on, how = study(np.random.default_rng(6000), "topology_none", "slurm")
    with pytest.raises(InputError, match="supported with gpu_weights = false"):
        simulate(load, on, replace(how, placement=ConsecutiveNodes()), engine="compiled")


@pytest.mark.parametrize("seed", [6004, 6014, 6016])
def test_packed_job_moves_when_a_node_of_another_rack_is_taken(seed: int) -> None:
    check_engines(seed, "packed", "conservative")


@pytest.mark.long
@pytest.mark.further
@pytest.mark.parametrize("name", BACKFILLS)
@pytest.mark.parametrize("placement", NAMES)
def test_further_random_studies(placement: str, name: str) -> None:
    assert sum(check_engines(seed, placement, name) for seed in range(6003, 6030)) > 14
