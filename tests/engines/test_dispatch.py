"""Compiled dispatch on more units than a block or a region holds, compared with the reference engine."""

from __future__ import annotations

import numpy as np
import pytest

from poolwise.engines import simulate
from poolwise.engines.dispatch.columns import all_idle
from poolwise.kernels.dispatch.state import RADIX
from poolwise.model import Schedule
from poolwise.policies.placement.units.layout import UnitLayout
from poolwise.schedulers.dispatch import Dispatch
from poolwise.traces import vinesim
from tests.helpers.random_dispatch import TIERED, policy_of
from tests.helpers.random_studies import difference

KINDS = (0, 2, 3)


def case_of(g: np.random.Generator, n_unit: int, n_task: int, places: tuple[int, int], gap: float) -> vinesim.VineSimCase:
    """Build a case with three types of units and tasks, scattered data and few distinct durations, hence many ties."""
    units = [(int(kind), int(g.integers(places[0])), int(g.integers(places[1]))) for kind in g.choice(KINDS, n_unit)]
    rates = np.zeros((6, 7))
    rates[np.ix_(KINDS, [0, 1, 2])] = g.choice([0.0, 1.0, 2.0, 8.0], (3, 3), p=[0.2, 0.3, 0.3, 0.2])
    rates[0, :3] = np.maximum(rates[0, :3], 1.0)
    rows = []
    while len(rows) < n_task:
        kind, size, job = int(g.integers(3)), int(g.choice([0, 0, 1000, 5000])), len(rows)
        place = int(g.integers(places[0])), int(g.integers(places[1]))
        wanted = int(g.choice([*(k for k in KINDS if rates[k, kind] > 0), 5]))
        rows += [(kind, size, *place, int(g.choice([1, 16, 16, 300, 40_000])), wanted, job)] * int(g.integers(1, 6))
    present = [(kind, 0, 0) for kind in KINDS]
    return vinesim.VineSimCase.of(vinesim.UnitList.of(units + present), vinesim.TaskList.of(rows), rates, gap)


def replayed(case: vinesim.VineSimCase, entry: tuple[str, dict[str, object]], seed: int = 0) -> Schedule:
    """Return the schedule of both engines, which must be equal."""
    reference, compiled = (
        simulate(case.workload, case.machine, Dispatch(policy_of(entry)), model=case.model, seed=seed, engine=engine).schedule
        for engine in ("reference", "compiled")
    )
    assert difference(reference, compiled) == "", entry
    return compiled


@pytest.mark.long
@pytest.mark.parametrize("seed", range(4))
def test_dispatch_across_blocks(seed: int) -> None:
    """A few hundred units, sometimes all busy, sometimes almost none."""
    g = np.random.default_rng(seed)
    case = case_of(g, int(g.integers(60, 300)), 400, (4, 3), float(g.choice([0, 0.01, 0.1, 1])))
    for entry in TIERED:
        replayed(case, entry, seed)


@pytest.mark.long
@pytest.mark.parametrize("entry", [("flat", {}), ("high", {}), ("closer_to_data", {})])
def test_dispatch_across_regions(entry: tuple[str, dict[str, object]]) -> None:
    """More units than a region holds, and more simultaneous tasks than units."""
    g = np.random.default_rng(9)
    case = case_of(g, 4_200, 5_500, (60, 2), 0)
    schedule = replayed(case, entry)
    beyond = UnitLayout.of(case.machine).owner[RADIX**2 :]
    assert schedule.start[-1] > 0 and np.isin(schedule.owner, beyond).any()


def test_idle_counts_represent_any_number_of_units() -> None:
    for n in (1, 63, 64, 65, 4_095, 4_096, 64**3, 64**3 + 1):
        idle = all_idle(n)
        assert idle.total[0] == n and len(idle.regions) == max(64, n // 4096 + 1)
        at_end = idle.regions[n >> 12] + idle.blocks[n >> 12, n >> 6 & 63] + idle.units[n >> 6, n & 63]
        assert at_end == n
