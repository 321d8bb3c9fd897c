"""Limits of a backfill pass on the jobs of a group, such as bf_max_job_user, and on the jobs for which it reserves nodes.

Kernels on shared nodes equal the reference engine.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from poolwise.arrays import FloatArray, IntArray
from poolwise.engines import simulate
from poolwise.interfaces import RecalculatedOrder
from poolwise.model import Accounting
from poolwise.quantities import SECOND
from poolwise.registry import make
from poolwise.schedulers.list import ListScheduler
from tests.differential.test_backfill_components import check_components, random_chains
from tests.helpers.limits_of_use import with_limits
from tests.helpers.node_machines import random_jobs, random_machine
from tests.helpers.random_studies import OWN, Coarse, Stepped, at_intervals, difference
from tests.helpers.seeds import few_and_more
from tests.helpers.shared_studies import NAMED, PLACEMENTS

GROUPS = ("bf_max_job_user", "bf_max_job_part", "bf_max_job_assoc")


class Falling(RecalculatedOrder):
    """A user-defined order by submission, whose priorities all fall by one at each recalculation."""

    def last(self, now: int) -> int:
        return now // (100 * SECOND) * 100 * SECOND

    def following(self, recalculated: int) -> int:
        return recalculated + 100 * SECOND

    def at(self, recalculated: int, jobs: IntArray, accounting: Accounting) -> FloatArray:
        return 20 - recalculated // (100 * SECOND) - jobs / 10


def draw_settings(g: np.random.Generator) -> dict[str, int]:
    """Draw some of the limits, at least one."""
    drawn = {name: int(g.integers(1, 5)) for name in GROUPS if g.random() < 0.5}
    if g.random() < 0.4:
        drawn["bf_job_part_count_reserve"] = int(g.integers(1, 4))
    if g.random() < 0.3 or not drawn:
        drawn["bf_min_prio_reserve"] = int(g.integers(1, 12))
    return drawn


def check_limits(seed: int) -> bool:
    """Compare the engines in a random study; return whether the limits change the schedule."""
    g = np.random.default_rng(seed)
    if seed % 3:
        on = random_machine(g, 8, pools=False)
        load = random_jobs(g, on, int(g.integers(60, 120)))
    else:
        on, names = random_chains(g)
        load = random_jobs(g, on, int(g.integers(60, 120)))
        names += [f"{names[0]},{names[-1]}"]
        load = replace(load, attributes={"partition": g.choice(names, len(load))})
    if g.random() < 0.3:
        on, load = with_limits(g, on, load)
    drawn = {"user": g.choice(["ann", "bo", "cy", ""], len(load)), "account": g.choice(["x", "y"], len(load))}
    load = replace(load, attributes={**load.attributes, **drawn})
    orders = [*NAMED, *OWN, Stepped(), make("orders", "multifactor")]
    filling = at_intervals(g, limited=g.random() < 0.3)
    filling = replace(filling, settings={**filling.settings, "bf_interval": int(g.choice([1, 2, 7])), "bf_max_job_test": 1000})
    limited = replace(filling, settings={**filling.settings, **draw_settings(g)})
    order, placement = orders[int(g.integers(len(orders)))], make("placements", PLACEMENTS[seed % 4])
    how = ListScheduler(order, limited, placement)
    plain, fast = (simulate(load, on, how, engine=engine) for engine in ("reference", "compiled"))
    assert difference(plain.schedule, fast.schedule) == "", f"seed {seed}: {on.name}, {how}"
    return bool(difference(simulate(load, on, replace(how, backfill=filling)).schedule, fast.schedule))


def check_reservations(seed: int) -> bool:
    """Compare the engines with few reservations for wide jobs; return whether this changes the schedule."""
    g = np.random.default_rng(seed)
    order = [Coarse(), [Stepped(), Falling()][seed % 2], None][seed % 3]
    limits = {"bf_min_prio_reserve": [1, int(g.integers(1, 17))][seed % 3]} if seed % 3 < 2 else {}
    if seed % 3 == 2 or g.random() < 0.3:
        limits["bf_job_part_count_reserve"] = int(g.integers(1, 4))
    limited = check_components(seed, 60, limits, order)
    return bool(difference(check_components(seed, 60, None, order), limited))


@pytest.mark.parametrize("seeds", few_and_more(0, 3, 9))
def test_jobs_without_reservations_equal_the_reference(seeds: range) -> None:
    assert sum(check_reservations(seed) for seed in seeds) > len(seeds) / 4


@pytest.mark.long
@pytest.mark.further
def test_jobs_without_reservations_equal_the_reference_in_further_studies() -> None:
    assert sum(check_reservations(seed) for seed in range(9, 24)) > 4


@pytest.mark.parametrize("seeds", few_and_more(16, 6, 24))
def test_limits_equal_the_reference(seeds: range) -> None:
    assert sum(check_limits(seed) for seed in seeds) > len(seeds) / 6


@pytest.mark.long
@pytest.mark.further
def test_limits_equal_the_reference_in_further_studies() -> None:
    assert sum(check_limits(seed) for seed in (*range(8, 16), *range(40, 80))) > 4
