"""Samplers: variants of a run in the same arrays start jobs as independent simulations do."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

from poolwise.engines import simulate
from poolwise.engines.compiled_engine import RunSpec
from poolwise.engines.list_sampling import RackSampler, SharedSampler
from poolwise.engines.list_scheduling import columns, loading
from poolwise.engines.samples import PlainSampler, sampler_of
from poolwise.engines.select import ENGINES
from poolwise.engines.shared_nodes import replay as shared_nodes
from poolwise.interfaces import Scheduler
from poolwise.model import Initial, Machine, Schedule, Workload
from poolwise.performance.ideal import Ideal
from poolwise.quantities import NEVER, SECOND
from poolwise.registry import make
from poolwise.schedulers.list import ListScheduler
from tests.engines.test_initial import BACKFILLS, ORDERS, with_u
from tests.helpers.mid_state import cut, instants
from tests.helpers.node_machines import random_jobs, random_machine
from tests.helpers.random_studies import Curious, Stepped, backfill, machine, model, workload
from tests.helpers.share_trees import random_multifactor
from tests.helpers.shared_studies import PLACEMENTS

pytestmark = pytest.mark.filterwarnings("ignore:remote latency")


def other_version(load: Workload, initial: Initial, g: np.random.Generator) -> Workload:
    """Vary durations and later submit times of the same jobs; current runs end no earlier than the state."""
    elapsed = np.zeros(len(load), dtype=np.int64)
    for run in initial.runs:
        elapsed[run.job] = initial.now - run.start
    submit = load.submit.copy()
    later = submit > initial.now
    submit[later] = initial.now + np.cumsum(g.integers(1, 60, int(later.sum()))) * SECOND // 10
    factor = g.choice([0.2, 0.5, 1.0, 2.0, 5.0], len(load))
    return replace(load, submit=submit, duration=elapsed + np.maximum(1, (load.duration * factor).astype(np.int64)))


def check_versions(whole: Schedule, how: Scheduler, model: object, estimate: object, g: np.random.Generator) -> str:
    (time,) = instants(whole, 1, g)
    load, initial = cut(whole, time)
    if not len(load):
        return ""
    parts = RunSpec(load, whole.machine, how, model, estimate or model, initial=initial)
    awaited = np.sort(g.choice(len(load), int(g.integers(1, len(load) + 1)), replace=False))
    until = NEVER if g.random() < 0.5 else time + int(g.integers(1, 400)) * SECOND
    sampler, _ = sampler_of(parts, awaited, until)
    plain = PlainSampler(parts, awaited, until)
    for _ in range(4):
        version = other_version(load, initial, g)
        assert sampler.starts(version).tolist() == plain.starts(version).tolist()
    return type(sampler).__name__


@pytest.mark.long
@pytest.mark.parametrize("deep", [0, 8, 10_000])
def test_sampled_variants_on_racks_match_simulations(deep: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(columns, "DEEP_QUEUE", deep)
    used = set()
    for seed in range(8000 + deep, 8024 + deep):
        g = np.random.default_rng(seed)
        on = machine(g)
        load = with_u(workload(g, on, int(g.integers(2, 70))), g)
        orders = [*(make("orders", name) for name in ORDERS), Curious(), Stepped()]
        how = ListScheduler(
            orders[int(g.integers(len(orders)))],
            backfill(g.choice([*BACKFILLS, "kept"]).item()),
            make("placements", "racks", scope=g.choice(["rack", "system"]).item()),
        )
        truth, estimate = model(g), model(g) if g.random() < 0.5 else None
        whole = simulate(load, on, how, model=truth, estimate=estimate).schedule
        used.add(check_versions(whole, how, truth, estimate, g))
    assert RackSampler.__name__ in used


@pytest.mark.long
def test_sampled_variants_on_shared_nodes_match_simulations() -> None:
    used = set()
    for seed in range(8100, 8140):
        g = np.random.default_rng(seed)
        pools, name = bool(seed % 2), g.choice(["none", "easy", "easy_no_extra", "conservative", "slurm"]).item()
        pools = pools and name not in ("conservative", "slurm")
        on = random_machine(g, 9, pools=pools, devices=name != "conservative")
        load = with_u(random_jobs(g, on, int(g.integers(2, 60))), g)
        order = Curious() if seed % 5 == 0 else make("orders", g.choice(ORDERS).item())
        how = ListScheduler(order, backfill(name), make("placements", PLACEMENTS[seed % 4]))
        truth = model(g) if pools else make("models", "ideal")
        whole = simulate(load, on, how, model=truth).schedule
        used.add(check_versions(whole, how, truth, None, g))
    assert SharedSampler.__name__ in used


@pytest.mark.filterwarnings("ignore:.*without a share")
@pytest.mark.long
def test_each_sampled_variant_has_its_own_usage(tmp_path: Path) -> None:
    """Simulations of the same engine, which begins in new arrays, are the reference."""
    ideal, n_run = make("models", "ideal"), 0
    for seed in range(20):
        g = np.random.default_rng(seed)
        on, jobs = random_machine(g, 4, pools=False), int(g.integers(40, 70))
        order, columns = random_multifactor(g, jobs, tmp_path)
        load = random_jobs(g, on, jobs)
        load = replace(load, attributes={**load.attributes, **columns})
        how = ListScheduler(order, backfill("slurm"), make("placements", "first_fit"))
        whole = simulate(load, on, how, model=ideal).schedule
        load, initial = cut(whole, int(np.quantile(whole.start, 0.3)))
        sampler, _ = sampler_of(RunSpec(load, on, how, ideal, ideal, initial=initial), np.arange(len(load)), NEVER)
        assert isinstance(sampler, SharedSampler)
        for _ in range(3):
            version = other_version(load, initial, g)
            alone = simulate(version, on, how, model=ideal, initial=initial, engine="compiled").schedule
            starts = np.full(len(load), NEVER)
            starts[alone.job] = alone.start
            assert sampler.starts(version).tolist() == starts.tolist()
            n_run += len(alone.job)
    assert n_run > 1000


def test_unsupported_variants_use_the_reference_engine() -> None:
    second = np.full(3, SECOND, dtype=np.int64)
    load = Workload.of(second, second)
    how = ListScheduler(backfill=make("backfills", "skip"))
    parts = RunSpec(load, Machine.flat(1), how, make("models", "ideal"), make("models", "ideal"), initial=Initial(SECOND, []))
    sampler, obstacle = sampler_of(parts, np.arange(3), 2 * SECOND)
    assert isinstance(sampler, PlainSampler) and obstacle is not None
    assert sampler.starts(load).tolist() == [SECOND, 2 * SECOND, NEVER]


@pytest.mark.parametrize("family", ["list_scheduling", "shared_nodes"])
@pytest.mark.long
def test_loading_an_engine_compiles_the_resume_kernel(family: str) -> None:
    """`poolwise compile` loads the signature that samplers call; another one would be compiled at the first forecast."""
    engines = [engine for engine in ENGINES if engine.name.replace(" ", "_").startswith(family)]
    for load in (shared_nodes.load,) if family == "shared_nodes" else (loading.load_all, partial(loading.load_all, True)):
        load()
    resume = import_module(f"poolwise.kernels.{family}.resume").resume
    assert len(resume.signatures) == len(engines)
    (test_sampled_variants_on_shared_nodes_match_simulations if family == "shared_nodes" else _one_on_racks)()
    assert len(resume.signatures) == len(engines)


def _one_on_racks() -> None:
    g = np.random.default_rng(8000)
    on = machine(g)
    load, how = (
        with_u(workload(g, on, 60), g),
        ListScheduler(make("orders", "fm"), backfill("easy"), make("placements", "racks")),
    )
    ideal = Ideal()
    assert check_versions(simulate(load, on, how).schedule, how, ideal, ideal, g) == RackSampler.__name__
