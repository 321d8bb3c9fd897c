"""Random studies on racks with changing capacity, which compare the two engines."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from poolwise.engines import simulate
from poolwise.model import Machine, Schedule, Workload
from poolwise.platforms.simulated import Disturbance
from poolwise.registry import make
from poolwise.schedulers.list import ListScheduler
from tests.helpers.random_studies import EASY_FAMILY, OWN, Draw, difference, machine, model, one_head, workload

NAMED = [make("orders", name) for name in ("fcfs", "sjf", "wfp3", "f1", "fair", "fm")]


def compare_changing(
    seed: int, most: int = 120, backfills: tuple[str, ...] = EASY_FAMILY, draw: Draw | None = None
) -> Schedule:
    """Run one random study in both engines, which must produce the same schedule; return it."""
    g = np.random.default_rng(seed)
    if draw is None:
        on = machine(g)
        load = workload(g, on, int(g.integers(1, most)))
    else:
        on, load = draw(g, int(g.integers(1, most)))
    orders = [*NAMED, *OWN]
    how = ListScheduler(
        orders[int(g.integers(len(orders)))],
        one_head(make("backfills", g.choice(backfills).item())),
        make("placements", "racks", scope=g.choice(["rack", "system"]).item()),
    )
    truth, estimate = model(g), None if g.random() < 0.5 else model(g)
    changes, requeue = list(random_changes(g, load, on)), bool(g.random() < 0.7)
    plain, fast = (
        simulate(load, on, how, model=truth, estimate=estimate, disturbances=changes, requeue=requeue, engine=engine)
        for engine in ("reference", "compiled")
    )
    assert (plain.engine, fast.engine) == ("reference", "compiled")
    assert difference(plain.schedule, fast.schedule) == "", f"seed {seed}: {on.name}, {how}"
    return fast.schedule


def random_changes(g: np.random.Generator, load: Workload, on: Machine) -> Iterator[Disturbance]:
    """Yield losses of nodes and memory, most of them repaired, many at an arrival or end, in random order."""
    layout = on.racks
    times = np.concatenate([load.submit, load.submit + load.duration, load.submit + load.requested])
    times = np.minimum(times, 2 * int(load.submit.max()) + int(np.median(load.duration)) + 5)
    for _ in range(int(g.integers(1, 25))):
        r, down, up = int(g.integers(len(layout.nodes))), *np.sort(g.choice(times, 2)).tolist()
        owner, column = int(layout.nodes[r]), layout.node_column
        if layout.pools[r] >= 0 and g.random() < 0.4:
            owner, column = int(layout.pools[r]), layout.memory_column
        has = int(on.capacity[owner, column])
        amount = int(g.integers(1, max(2, has // int(g.choice([1, 1, 4])) + 1)))
        yield Disturbance(down, owner, column, -amount)
        if g.random() < 0.85:
            yield Disturbance(up, owner, column, amount + int(g.random() < 0.1))
