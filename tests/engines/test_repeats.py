"""Repeated runs under other schedulers in the same arrays equal independent runs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from poolwise.engines import simulate
from poolwise.engines.compiled_engine import RunSpec
from poolwise.engines.repeats import Repeats
from poolwise.interfaces import QueuePolicy
from poolwise.model.failures import Failures, Outage
from poolwise.performance.remote_memory import RemoteMemory
from poolwise.platforms.simulated import Disturbance
from poolwise.policies.backfill.conservative import Conservative
from poolwise.policies.backfill.easy import Easy
from poolwise.policies.backfill.none import NoBackfill
from poolwise.policies.backfill.slurm import SlurmBackfill
from poolwise.policies.order.priorities import FCFS, FM, SJF, Capped
from poolwise.quantities import NEVER
from poolwise.schedulers.list import ListScheduler
from poolwise.schedulers.warm_up import WarmUp
from tests.helpers import random_studies


@pytest.mark.parametrize("seed", range(6))
def test_repeated_runs_match_independent_runs(seed: int) -> None:
    """Alternating orders, caps, backfills and warm-ups, some with callbacks."""
    g = np.random.default_rng(seed)
    machine = random_studies.machine(g)
    load = random_studies.workload(g, machine, 60)
    orders: list[QueuePolicy] = [FM(), SJF(), *random_studies.OWN, random_studies.Curious()]
    first = ListScheduler(FCFS())
    repeats = Repeats(RunSpec(load, machine, first, RemoteMemory(), RemoteMemory()))
    for _ in range(25):
        order = orders[int(g.integers(len(orders)))]
        if g.random() < 0.4:
            order = Capped(order, float(g.choice([0.0, 30.0])), float(g.choice([0.0, 0.5])))
        backfills = Easy(), Easy(), Easy(order=SJF()), Easy(order=FM()), NoBackfill(), Conservative(), SlurmBackfill()
        backfill = backfills[int(g.integers(len(backfills)))]
        listed = ListScheduler(order, backfill)
        scheduler = WarmUp.before(listed, 10) if g.random() < 0.2 else listed
        repeated = repeats.under(scheduler)
        alone = simulate(load, machine, scheduler, model=RemoteMemory()).schedule
        start, end = np.full(len(load), NEVER), np.full(len(load), NEVER)
        start[alone.job], end[alone.job] = alone.start, alone.end
        assert np.array_equal(repeated.start, start) and np.array_equal(repeated.end, end), scheduler


@pytest.mark.parametrize("by_machine", [True, False])
def test_failures_apply_to_each_repeated_run(by_machine: bool) -> None:
    """Changes of capacity come from the machine or from the run specification."""
    g = np.random.default_rng(5)
    machine = random_studies.machine(g)
    load = random_studies.workload(g, machine, 60)
    node = int(machine.racks.nodes[0])
    change = Disturbance(int(load.submit[5]), node, machine.racks.node_column, -int(machine.capacity[node].max()))
    if by_machine:
        outage = Outage((node,), int(load.submit[5]), NEVER)
        machine = replace(machine, failures=Failures(outages=(outage,)))
    changes = () if by_machine else (change,)
    scheduler = ListScheduler(FM())
    repeats = Repeats(RunSpec(load, machine, ListScheduler(FCFS()), RemoteMemory(), RemoteMemory(), disturbances=changes))
    repeated = repeats.under(scheduler)
    alone = simulate(load, machine, scheduler, model=RemoteMemory(), disturbances=changes).schedule
    whole = simulate(load, replace(machine, failures=None), scheduler, model=RemoteMemory()).schedule
    start, last = np.full(len(load), NEVER), np.full(len(load), NEVER)
    start[alone.job[::-1]], last[whole.job] = alone.start[::-1], whole.start
    assert np.array_equal(repeated.start, start)
    assert not np.array_equal(start, last)  # the failure affects the schedule
