"""Limited passes of Slurm's main scheduler (default_queue_depth, sched_interval): kernels equal the reference engine."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from poolwise.engines import simulate
from poolwise.model import Machine, Partition, Workload
from poolwise.policies.backfill.slurm import SlurmBackfill
from poolwise.registry import make
from poolwise.schedulers.list import ListScheduler
from tests.helpers.node_machines import random_jobs, random_machine
from tests.helpers.random_studies import UNITS, at_intervals, difference, machine, workload
from tests.helpers.shared_studies import NAMED, PLACEMENTS


def differs(load: Workload, on: Machine, g: np.random.Generator, seed: int, placement: str) -> bool:
    """Compare the engines; return whether the limit changes the schedule."""
    filling = at_intervals(g, limited=True)
    how = ListScheduler(NAMED[int(g.integers(len(NAMED)))], filling, make("placements", placement))
    plain, fast = (simulate(load, on, how, engine=engine) for engine in ("reference", "compiled"))
    assert difference(plain.schedule, fast.schedule) == "", f"seed {seed}: {on.name}, {how}"
    settings = {name: value for name, value in filling.settings.items() if name.startswith("bf_")}
    whole = SlurmBackfill(None, settings, filling.begun, filling.every, filling.looked)
    return bool(difference(simulate(load, on, replace(how, backfill=whole)).schedule, fast.schedule))


def test_on_shared_nodes() -> None:
    changed = 0
    for seed in range(4100, 4112):
        g = np.random.default_rng(seed)
        on = random_machine(g, 7, pools=False, devices=True)
        changed += differs(random_jobs(g, on, int(g.integers(20, 60))), on, g, seed, PLACEMENTS[seed % 4])
    assert changed


def test_on_shared_nodes_with_several_heads() -> None:
    for seed in range(4200, 4208):
        g = np.random.default_rng(seed)
        on = random_machine(g, 7, pools=False, devices=False)
        load = random_jobs(g, on, int(g.integers(20, 60)))
        sets = {name: g.random(on.n_owner) < 0.7 for name in ("left", "right")}
        on = replace(on, node_sets=sets, partitions=tuple(Partition(name) for name in sets))
        attributes = {name: values for name, values in load.attributes.items() if name != "constraint"}
        load = replace(load, attributes={**attributes, "partition": g.choice([*sets], len(load))})
        differs(load, on, g, seed, "first_fit")


def test_on_whole_nodes() -> None:
    changed = 0
    for seed in range(4300, 4312):
        g = np.random.default_rng(seed)
        on = machine(g)
        changed += differs(workload(g, on, int(g.integers(20, 60)), UNITS[:3]), on, g, seed, "racks")
    assert changed
