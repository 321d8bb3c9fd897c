"""Random studies on shared nodes, which compare the two engines."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from poolwise.engines import simulate
from poolwise.interfaces import QueuePolicy, Scheduler
from poolwise.model import Failures, Kind, Machine, Outage, ReservedWindow, Schedule, Workload
from poolwise.quantities import SECOND
from poolwise.registry import make
from poolwise.schedulers.list import ListScheduler
from poolwise.schedulers.warm_up import WarmUp
from tests.helpers.node_machines import machine, random_jobs, random_machine
from tests.helpers.random_studies import OWN, difference, model, one_head, scheduler

PLACEMENTS = ("first_fit", "best_fit", "worst_fit", "packed")
EASY_FAMILY = ("none", "easy", "easy", "easy_no_extra")


def compare_shared(
    seed: int,
    backfills: tuple[str, ...] = EASY_FAMILY,
    most: int = 120,
    *,
    pools: bool = False,
    nodes: int = 9,
    orders: Sequence[QueuePolicy] | None = None,
) -> None:
    """Run one random study in both engines, which must produce the same schedule."""
    g = np.random.default_rng(seed)
    jobs = int(g.integers(1, most))
    on = random_machine(g, nodes, pools=pools, devices="conservative" not in backfills)
    load, drawn = random_jobs(g, on, jobs), scheduler(g, jobs, backfills, orders)
    listed = drawn.then if isinstance(drawn, WarmUp) else drawn
    assert isinstance(listed, ListScheduler)
    filling = listed.backfill
    if filling.backfill_order is not None:  # which has no kernel on shared nodes
        filling = replace(filling, order=None)
    filling = one_head(filling) if pools else filling
    how: Scheduler = replace(listed, backfill=filling, placement=make("placements", PLACEMENTS[seed % 4]))
    if isinstance(drawn, WarmUp):
        how = WarmUp.before(how, drawn.jobs)
    per_event = bool(g.random() < 0.25)
    truth = model(g) if pools else None
    estimate = model(g) if pools and g.random() < 0.5 else None
    plain, fast = (
        simulate(load, on, how, model=truth, estimate=estimate, pass_per_event=per_event, engine=engine)
        for engine in ("reference", "compiled")
    )
    assert (plain.engine, fast.engine) == ("reference", "compiled")
    assert difference(plain.schedule, fast.schedule) == "", f"seed {seed}: {on.name}, {how}"


def compare_failing(
    seed: int, most: int = 80, backfills: tuple[str, ...] = EASY_FAMILY, *, pools: bool = False, nodes: int = 9
) -> Schedule:
    """Run one random study with failing nodes in both engines, which must produce the same schedule; return it."""
    g = np.random.default_rng(seed)
    devices = "conservative" not in backfills
    on, orders = random_machine(g, nodes, pools=pools, devices=devices), [*NAMED, *OWN]
    load = random_jobs(g, on, int(g.integers(1, most)))
    on = replace(on, failures=random_failures(g, load, on))
    filling, placement = one_head(make("backfills", g.choice(backfills).item())), make("placements", PLACEMENTS[seed % 4])
    how = ListScheduler(orders[int(g.integers(len(orders)))], filling, placement)
    truth = model(g) if pools else None
    estimate = model(g) if pools and g.random() < 0.5 else None
    plain, fast = (
        simulate(load, on, how, model=truth, estimate=estimate, seed=seed, engine=engine)
        for engine in ("reference", "compiled")
    )
    assert difference(plain.schedule, fast.schedule) == "", f"seed {seed}: {on.name}, {how}"
    return fast.schedule


NAMED = [make("orders", name) for name in ("fcfs", "sjf", "wfp3", "f1", "fair", "fm")]


def random_failures(g: np.random.Generator, load: Workload, on: Machine) -> Failures:
    """Draw outages, many of which begin or end with an arrival or end of a job, and random failure rates."""
    own = np.flatnonzero(on.kind == Kind.NODE)
    times = np.concatenate([load.submit, load.submit + load.duration, load.submit + load.requested, [0]])
    outages = list[Outage]()
    for _ in range(int(g.integers(2, 25))):
        down, up = np.sort(g.choice(times, 2)).tolist()
        hit = np.unique(g.choice(own, int(g.integers(1, 1 + len(own))))) if g.random() < 0.3 else g.choice(own, 1)
        outages.append(Outage(tuple(hit.tolist()), down, up + int(g.integers(0, 2))))
    span = int(times.max()) + 1
    drawn = tuple(own.tolist()) if g.random() < 0.5 else ()
    return Failures(tuple(outages), drawn, span // 4 + 1, span // 40 + 1, requeue=g.random() < 0.7)


def compare_windows(seed: int, most: int = 80, *, nodes: int = 9) -> Schedule:
    """Run one random study with windows in both engines, which must produce the same schedule; return it."""
    g = np.random.default_rng(seed)
    on, orders = random_machine(g, nodes, pools=False), [*NAMED, *OWN]
    load = random_jobs(g, on, int(g.integers(1, most)))
    users = g.choice(["ada", "bob", "cay"], len(load))
    load = replace(load, attributes={**load.attributes, "user": users})
    on = replace(on, windows=tuple(random_windows(g, load, on)))
    filling, placement = one_head(make("backfills", g.choice(EASY_FAMILY).item())), make("placements", PLACEMENTS[seed % 4])
    how = ListScheduler(orders[int(g.integers(len(orders)))], filling, placement)
    plain, fast = (simulate(load, on, how, engine=engine) for engine in ("reference", "compiled"))
    assert difference(plain.schedule, fast.schedule) == "", f"seed {seed}: {on.name}, {how}"
    return fast.schedule


def random_windows(g: np.random.Generator, load: Workload, on: Machine) -> Iterator[ReservedWindow]:
    """Yield windows on up to three sets of nodes, many of which begin or end when a job does."""
    times = np.concatenate([load.submit, load.submit + load.duration, load.submit + load.requested])
    sets = [(g.random(on.n_owner) < share) & (on.kind == Kind.NODE) for share in g.random(int(g.integers(1, 4)))]
    if g.random() < 0.5:
        sets = [inside | ((on.home >= 0) & inside[on.home]) for inside in sets]  # including the devices of these nodes
    for k in range(int(g.integers(1, 9))):
        start, end = np.sort(g.choice(times, 2)).tolist()
        if g.random() < 0.5:
            end = start + int(np.ceil((end - start) / 10))
        users = frozenset(["ada"] if g.random() < 0.4 else [])
        yield ReservedWindow(f"w{k}", start, end + int(start == end), sets[int(g.integers(len(sets)))], users)


def compare_recurring(seed: int, jobs: int = 60) -> None:
    """Run jobs of few kinds and any length with recurring windows, accessible to some users, in both engines."""
    g = np.random.default_rng(seed)
    on = machine(np.array([[4, 100]] * 8), np.arange(8) // 4 if seed % 3 else np.arange(8) % 2)
    inside = [np.arange(8) < 4, np.arange(8) % 2 == 0]
    windows = tuple(
        ReservedWindow(f"w{k}", at * SECOND, (at + 4) * SECOND, inside[k % 2], frozenset(["ada", "bob"][: k % 3]))
        for k, at in enumerate(range(5, 90, 12))
    )
    load = Workload.of(
        np.sort(g.integers(0, jobs, jobs)) * SECOND,
        g.integers(1, 8, jobs) * SECOND,
        requested=g.integers(8, 30, jobs) * SECOND,
        requests={"cores": g.choice([1, 3], jobs), "nodes": g.choice([1, 1, 3], jobs)},
        attributes={"user": g.choice(["ada", "bob", "cay"], jobs)},
    )
    how = ListScheduler(NAMED[seed % len(NAMED)], placement=make("placements", PLACEMENTS[seed % 4]))
    on = replace(on, windows=windows)
    plain, fast = (simulate(load, on, how, engine=engine) for engine in ("reference", "compiled"))
    assert difference(plain.schedule, fast.schedule) == "", f"seed {seed}: {how}"
