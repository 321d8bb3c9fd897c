"""Random studies on shared nodes on which the two engines are compared."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from poolwise.engines import simulate
from poolwise.interfaces import QueuePolicy, Scheduler
from poolwise.registry import make
from poolwise.schedulers.list import ListScheduler
from poolwise.schedulers.warm_up import WarmUp
from tests.helpers.node_machines import random_jobs, random_machine
from tests.helpers.random_studies import difference, model, scheduler

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
    """Run one random study on both engines and insist on the same schedule."""
    g = np.random.default_rng(seed)
    jobs = int(g.integers(1, most))
    on = random_machine(g, nodes, pools=pools, devices="conservative" not in backfills)
    load, drawn = random_jobs(g, on, jobs), scheduler(g, jobs, backfills, orders)
    listed = drawn.then if isinstance(drawn, WarmUp) else drawn
    assert isinstance(listed, ListScheduler)
    filling = listed.backfill
    if filling.own_order is not None:  # which has no kernel on shared nodes
        filling = replace(filling, order=None)
    how: Scheduler = replace(listed, backfill=filling, placement=make("placements", PLACEMENTS[seed % 4]))
    if isinstance(drawn, WarmUp):
        how = WarmUp.before(how, drawn.jobs)
    per_event = bool(g.random() < 0.25)
    truth = model(g) if pools else None
    estimate = model(g) if pools and g.random() < 0.5 else None
    plain, fast = (
        simulate(on, load, how, truth=truth, estimate=estimate, pass_per_event=per_event, engine=engine)
        for engine in ("reference", "compiled")
    )
    assert (plain.engine, fast.engine) == ("reference", "compiled")
    assert difference(plain.schedule, fast.schedule) == "", f"seed {seed}: {on.name}, {how}"
