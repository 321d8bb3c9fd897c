"""Exclusive jobs on shared nodes: no job joins their nodes, in the reference engine and in the kernels alike."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from poolwise.engines import simulate
from poolwise.model import Kind, Machine, Partition, Schedule, Workload
from poolwise.registry import make
from poolwise.schedulers.list import ListScheduler
from tests.helpers.node_machines import random_jobs, random_machine
from tests.helpers.random_studies import difference
from tests.helpers.shared_studies import NAMED, PLACEMENTS, random_failures


def study(seed: int, backfill: str, most: int = 50) -> tuple[Workload, Machine, ListScheduler]:
    """Return a random study in which some jobs are exclusive, by their attribute or by their partition."""
    g = np.random.default_rng(seed)
    on = random_machine(g, 7, pools=False, devices=backfill != "conservative")
    load = random_jobs(g, on, int(g.integers(10, most)))
    alone = (g.random(len(load)) < g.choice([0.1, 0.5, 1.0])).astype(np.int64)
    load = replace(load, attributes={**load.attributes, "exclusive": alone})
    order = NAMED[int(g.integers(len(NAMED)))]
    return load, on, ListScheduler(order, make("backfills", backfill), make("placements", PLACEMENTS[seed % 4]))


def shared_with_exclusive(schedule: Schedule, alone: np.ndarray) -> list[tuple[int, int]]:
    """Return pairs of runs that overlap on a node of an exclusive job."""
    rows, nodes = schedule.holdings, schedule.machine.kind == Kind.NODE
    shared = []
    for k in np.flatnonzero(nodes[rows.owner]).tolist():
        if not alone[schedule.job[rows.run[k]]]:
            continue
        overlap = (rows.owner == rows.owner[k]) & (rows.begin < rows.end[k]) & (rows.end > rows.begin[k])
        shared += [(int(rows.run[k]), int(other)) for other in np.unique(rows.run[overlap]) if other != rows.run[k]]
    return shared


@pytest.mark.parametrize("backfill", ["none", "easy", "conservative", "slurm"])
def test_engines_agree_and_exclusive_jobs_are_alone(backfill: str) -> None:
    joined = 0
    for seed in range(3100, 3106):
        load, on, how = study(seed, backfill)
        plain, fast = (simulate(load, on, how, engine=engine) for engine in ("reference", "compiled"))
        assert difference(plain.schedule, fast.schedule) == "", f"seed {seed}: {on.name}, {how}"
        schedule = fast.schedule
        assert schedule.machine.resources == on.resources and schedule.workload is load
        assert int(schedule.resource.max()) < len(on.resources)
        alone = load.attributes["exclusive"] == 1
        assert shared_with_exclusive(schedule, alone) == []
        ordinary = replace(load, attributes={k: v for k, v in load.attributes.items() if k != "exclusive"})
        joined += len(shared_with_exclusive(simulate(ordinary, on, how).schedule, alone))
    assert joined  # the same jobs share nodes if none is exclusive


def test_engines_agree_with_failing_nodes() -> None:
    for seed in range(3200, 3204):
        load, on, how = study(seed, "easy")
        failing = replace(on, failures=random_failures(np.random.default_rng(seed), load, on))
        plain, fast = (simulate(load, failing, how, seed=seed, engine=engine) for engine in ("reference", "compiled"))
        assert difference(plain.schedule, fast.schedule) == "", f"seed {seed}: {on.name}, {how}"
        assert shared_with_exclusive(plain.schedule, load.attributes["exclusive"] == 1) == []


def test_workload_of_ordinary_jobs_keeps_its_schedule() -> None:
    load, on, how = study(3300, "easy")
    never = replace(load, attributes={**load.attributes, "exclusive": np.zeros(len(load), dtype=np.int64)})
    without = replace(load, attributes={k: v for k, v in load.attributes.items() if k != "exclusive"})
    never_exclusive, other = (simulate(jobs, on, how).schedule for jobs in (never, without))
    assert difference(never_exclusive, other) == ""


def test_exclusive_partition_equals_the_attribute() -> None:
    load, on, how = study(3400, "easy")
    names = np.where(load.attributes["exclusive"] == 1, "alone", "open")
    everywhere = np.ones(on.n_owner, dtype=np.bool_)
    divided = replace(
        on,
        node_sets={**on.node_sets, "alone": everywhere, "open": everywhere},
        partitions=(Partition("alone", exclusive=True), Partition("open")),
    )
    attributes = {
        name: values for name, values in load.attributes.items() if name not in ("exclusive", "partition", "constraint")
    }
    by_partition = replace(load, attributes={**attributes, "partition": names})
    ordinary = replace(divided, partitions=(Partition("alone"), Partition("open")))
    by_attribute = replace(by_partition, attributes={**by_partition.attributes, "exclusive": load.attributes["exclusive"]})
    exclusive_partition, other = simulate(by_partition, divided, how).schedule, simulate(by_attribute, ordinary, how).schedule
    assert difference(exclusive_partition, other) == ""
