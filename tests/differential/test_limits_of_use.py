"""Licenses and limits of QOS on shared nodes: kernels equal the reference engine."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from benchmarks.shared_nodes import shared, shared_jobs
from poolwise.engines import simulate
from poolwise.interfaces import BackfillPolicy, QueuePolicy, Scheduler
from poolwise.model import Machine, Partition, QualityOfService, Workload
from poolwise.model.rules import HeadScope
from poolwise.performance.ideal import Ideal
from poolwise.policies.backfill.slurm import SlurmBackfill
from poolwise.policies.order.priorities import FCFS
from poolwise.policies.placement.nodes.placement import FirstNodes
from poolwise.quantities import SECOND
from poolwise.registry import make
from poolwise.schedulers.list import ListScheduler
from poolwise.schedulers.warm_up import WarmUp
from tests.engines.test_samples import check_versions
from tests.helpers.limits_of_use import with_limits
from tests.helpers.mid_state import check_every_engine, instants
from tests.helpers.node_machines import machine, random_jobs, random_machine
from tests.helpers.random_studies import OWN, Curious, Stepped, at_intervals, difference
from tests.helpers.seeds import few_and_more
from tests.helpers.shared_studies import NAMED, PLACEMENTS

ORDERS = [*NAMED, *OWN, Curious()]
RECALCULATED = [Stepped(), make("orders", "multifactor")]
Draw = Callable[[np.random.Generator], BackfillPolicy]


def draw_run(g: np.random.Generator, seed: int, orders: Sequence[QueuePolicy], filling: Draw) -> tuple:
    """Draw a machine with limits, jobs and a scheduler."""
    on = random_machine(g, 20 if seed % 5 == 0 else 7, pools=False)
    on, load = with_limits(g, on, random_jobs(g, on, int(g.integers(10, 80))))
    how = ListScheduler(orders[int(g.integers(len(orders)))], filling(g), make("placements", PLACEMENTS[seed % 4]))
    return load, on, how


def compare(load: Workload, on: Machine, how: Scheduler, seed: int, *, per_event: bool = False) -> bool:
    """Compare the engines; return whether the limits change the schedule."""
    plain, fast = (simulate(load, on, how, pass_per_event=per_event, engine=engine) for engine in ("reference", "compiled"))
    assert difference(plain.schedule, fast.schedule) == "", f"seed {seed}: {on.name}, {how}"
    free = simulate(load, replace(on, licenses={}, qos=(), associations=()), how, pass_per_event=per_event)
    return bool(difference(free.schedule, fast.schedule))


def study(seed: int, orders: Sequence[QueuePolicy], filling: Draw) -> bool:
    """Compare the engines in a random study; return whether the limits change the schedule."""
    g = np.random.default_rng(seed)
    load, on, how = draw_run(g, seed, orders, filling)
    return compare(load, on, how, seed, per_event=bool(g.random() < 0.2))


@pytest.mark.parametrize("limited", [False, True], ids=["all jobs", "limited depth"])
@pytest.mark.parametrize("seeds", few_and_more(5000, 4, 20))
def test_backfilling_at_intervals(seeds: range, limited: bool) -> None:
    orders = [*ORDERS, *RECALCULATED]
    assert sum(study(seed, orders, partial(at_intervals, limited=limited)) for seed in seeds) > len(seeds) / 2


@pytest.mark.parametrize("name", ["none", "easy", "easy_no_extra"])
@pytest.mark.parametrize("heads", ["partition", "machine"])
@pytest.mark.parametrize("seeds", few_and_more(5100, 3, 12))
def test_queues(seeds: range, name: str, heads: HeadScope) -> None:
    filling = replace(make("backfills", name), heads=heads)
    assert sum(study(seed, ORDERS, lambda g: filling) for seed in seeds) > 0.4 * len(seeds)


def with_tiers(g: np.random.Generator) -> tuple[Machine, Workload]:
    """Draw a machine with partitions of two tiers, and jobs for them."""
    on = random_machine(g, 9, pools=False, devices=False)
    parts = (Partition("long", tier=1), Partition("short", tier=3, max_nodes=2))
    sets = {part.name: g.random(on.n_owner) < 0.7 for part in parts}
    load = random_jobs(g, on, int(g.integers(10, 60)))
    attributes = {column: values for column, values in load.attributes.items() if column != "constraint"}
    load = replace(load, attributes={**attributes, "partition": g.choice(["long", "short", "long,short"], len(load))})
    return replace(on, node_sets=sets, partitions=parts), load


@pytest.mark.parametrize("name", ["none", "easy", "slurm"])
def test_partitions_with_tiers(name: str) -> None:
    changed = 0
    for seed in range(5200, 5208):
        g = np.random.default_rng(seed)
        on, load = with_limits(g, *with_tiers(g))
        filling = at_intervals(g) if name == "slurm" else make("backfills", name)
        changed += compare(load, on, ListScheduler(FCFS(), filling, make("placements", PLACEMENTS[seed % 4])), seed)
    assert changed


@pytest.mark.parametrize("limited", [False, True], ids=["tiers", "limits"])
@pytest.mark.parametrize("name", ["none", "easy", "slurm"])
@pytest.mark.parametrize("seeds", few_and_more(5400, 3, 16))
def test_warm_up(seeds: range, name: str, limited: bool) -> None:
    """Warm-up jobs take counters, and those of a higher tier come first; machines have tiers, limits or both."""
    changed = 0
    for seed in seeds:
        g = np.random.default_rng(seed)
        filling = at_intervals(g) if name == "slurm" else make("backfills", name)
        on, load = with_tiers(g)
        if limited and g.random() < 0.5:
            load, on, _ = draw_run(g, seed, ORDERS, lambda g, filling=filling: filling)
        elif limited:
            on, load = with_limits(g, on, load)
        how = WarmUp.before(
            ListScheduler(make("orders", "multifactor"), filling, make("placements", PLACEMENTS[seed % 4])),
            int(g.integers(1, len(load) + 2)),
        )
        changed += compare(load, on, how, seed, per_event=not limited and bool(g.random() < 0.2))
    assert changed or not limited


@pytest.mark.parametrize("name", ["none", "easy", "slurm"])
@pytest.mark.parametrize("seeds", few_and_more(5300, 2, 6))
def test_full_runs_continue_from_an_intermediate_state(seeds: range, name: str) -> None:
    """Jobs that run at the start use the counters."""
    for seed in seeds:
        g = np.random.default_rng(seed)
        load, on, how = draw_run(g, seed, NAMED, at_intervals if name == "slurm" else lambda g: make("backfills", name))
        whole = simulate(load, on, how, engine="reference").schedule
        for time in instants(whole, 3, g):
            check_every_engine(whole, time, how, Ideal(), None, ("reference", "compiled"))
        assert check_versions(whole, how, Ideal(), None, g) in ("", "SharedSampler")


def on_both(on: Machine, jobs: Workload, filling: BackfillPolicy) -> list[int]:
    """Return the starts (s), which must be the same in both engines."""
    how = ListScheduler(FCFS(), filling, FirstNodes())
    plain, fast = (simulate(jobs, on, how, engine=engine).schedule for engine in ("reference", "compiled"))
    assert difference(plain, fast) == ""
    return (fast.job_start // SECOND).tolist()


FOUR_CORES = machine(np.array([[4, 100]]), np.zeros(1, dtype=np.int64))


@pytest.mark.parametrize("filling", [make("backfills", "none"), make("backfills", "easy"), SlurmBackfill()])
def test_start_that_takes_the_last_license_bars_the_next_job(filling: BackfillPolicy) -> None:
    """Job 2 lacks the license that job 1 takes in the same pass; job 3 passes it."""
    jobs = Workload.of(["0 s"] * 3, "60 s", requests={"cores": [1, 1, 1]}, attributes={"license/a": [1, 1, 0]})
    assert on_both(replace(FOUR_CORES, licenses={"a": 1}), jobs, filling) == [0, 60, 0]


def test_pass_of_limited_depth_counts_again_after_a_start_that_bars_a_job() -> None:
    """A pass considers two jobs. Job 1 bars job 2, so the pass begins again with jobs 3 and 4."""
    jobs = Workload.of(["0 s"] * 4, "50 s", requests={"cores": [1] * 4}, attributes={"license/a": [1, 1, 0, 0]})
    settings = {"default_queue_depth": 1, "bf_interval": 1000, "sched_interval": -1}
    filling = SlurmBackfill(settings=settings, begun=500.0)
    assert on_both(replace(FOUR_CORES, licenses={"a": 1}), jobs, filling) == [0, 50, 0, 0]


def test_users_of_a_qos_are_counted_apart() -> None:
    attributes = {"user": np.array(["ada", "ada", "eve", "ada"]), "qos": np.array(["few", "few", "few", ""])}
    jobs = Workload.of(["0 s"] * 4, "60 s", requests={"cores": [1] * 4}, attributes=attributes)
    on = replace(FOUR_CORES, qos=(QualityOfService("few", per_user=(("jobs", 1),)),))
    assert on_both(on, jobs, SlurmBackfill()) == [0, 60, 0, 0]


@pytest.mark.long
@pytest.mark.parametrize("name", ["easy", "slurm"])
def test_full_day(name: str) -> None:
    g, jobs, nodes = np.random.default_rng(51), 900, 60
    load = shared_jobs(jobs, nodes, 0.95, seed=51)
    limits = (("jobs", 60), ("cores", 1500))
    on = replace(
        shared(nodes),
        licenses={"a": 100, "b": 25},
        qos=(QualityOfService("normal", True, per_user=limits), QualityOfService("small", total=(("nodes", 30),))),
    )
    attributes = {
        "user": np.array([f"u{number % 40}" for number in g.zipf(1.7, jobs).tolist()]),
        "qos": g.choice(["", "small"], jobs, p=[0.8, 0.2]),
        "license/a": np.where(g.random(jobs) < 0.3, g.integers(1, 4, jobs), 0),
        "license/b": np.where(g.random(jobs) < 0.1, 1, 0),
    }
    load = replace(load, attributes=attributes)
    assert compare(load, on, ListScheduler(make("orders", "multifactor"), make("backfills", name), FirstNodes()), 51)
