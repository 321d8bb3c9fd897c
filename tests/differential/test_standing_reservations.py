"""Conservative backfilling with cached reservations, compared with rebuilding all of them in each pass."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from poolwise.engines import simulate
from poolwise.engines.compiled_engine import RunSpec
from poolwise.engines.list_scheduling import replay as racks
from poolwise.engines.select import find_engine
from poolwise.interfaces import QueuePolicy
from poolwise.kernels.common import state
from poolwise.model import Machine, Workload
from poolwise.performance.remote_memory import RemoteMemory
from poolwise.platforms.simulated import Disturbance
from poolwise.policies.backfill.conservative import Conservative
from poolwise.policies.order.priorities import Capped
from poolwise.quantities import SECOND
from poolwise.registry import make
from poolwise.schedulers.list import ListScheduler
from poolwise.traces.generators import generate
from tests.helpers.random_studies import OWN, Coarse, Curious, Stepped, difference

NAMED = [make("orders", name) for name in ("fcfs", "sjf", "wfp3", "f1", "fair", "fm")]
ORDERS = [*NAMED, *NAMED, Coarse(), Curious(), Stepped(), Capped(NAMED[1], 30.0, 0.5), *OWN[:5]]

pytestmark = pytest.mark.filterwarnings("ignore:remote latency")


def _crowd(g: np.random.Generator, jobs: int, machine: Machine) -> Workload:
    """Draw jobs of which more than half wait, many narrow and short enough to be backfilled.

    Requests are exact, too long (runs end early) and, in some workloads, too short; ends and arrivals often coincide.
    """
    grid = int(g.choice([1, 7, 20]))
    duration = np.maximum(1, np.ceil(g.choice([1, 5, 20, 60], jobs) * g.uniform(0.5, 2, jobs) / grid).astype(np.int64) * grid)
    nodes = np.minimum(g.choice([1, 1, 2, 3, 6, 12], jobs), int(machine.racks.nodes.size * 6))
    early = g.random(jobs) < g.choice([0.0, 0.1, 0.6])
    overdue = g.random(jobs) < g.choice([0.0, 0.0, 0.05])
    requested = np.where(overdue, np.maximum(duration // 2, 1), np.where(early, duration * g.integers(2, 6, jobs), duration))
    span = max(1, int((nodes * duration).sum() / (6 * machine.racks.nodes.size) / g.choice([1.0, 2.0, 5.0])))
    submit = np.sort(g.integers(0, span, jobs)) // grid * grid
    memory = g.choice([30, 64, 80, 120, 200], jobs) if g.random() < 0.7 else np.full(jobs, 30)
    return Workload.of(
        submit * SECOND,
        duration * SECOND,
        requested=requested * SECOND,
        requests={"nodes": nodes, "memory": memory},
        attributes={"u": g.random(jobs)},
    )


def _study(seed: int, jobs: int) -> tuple[RunSpec, bool]:
    g = np.random.default_rng(seed)
    machine = Machine.of_racks(int(g.integers(1, 5)), 6, local=64, pool=int(g.choice([150, 400, 2000])))
    order: QueuePolicy = ORDERS[int(g.integers(len(ORDERS)))]
    model = RemoteMemory()
    estimate = RemoteMemory(expect=g.choice(["own", "mean", "none"]).item()) if g.random() < 0.3 else model
    scheduler = ListScheduler(
        order, Conservative(), make("placements", "racks", scope="rack" if g.random() < 0.9 else "system")
    )
    parts = RunSpec(_crowd(g, jobs, machine), machine, scheduler, model, estimate)
    if g.random() < 0.15 and order.kind in ("static", "linear"):
        at = int(g.integers(1, 100)) * SECOND
        parts = replace(parts, disturbances=(Disturbance(at, 0, 0, -2), Disturbance(at + 90 * SECOND, 0, 0, 2)))
    return parts, bool(g.random() < 0.1)


def _compare(seed: int, jobs: int) -> None:
    parts, per_event = _study(seed, jobs)
    schedules = [
        simulate(
            parts.workload,
            parts.machine,
            parts.scheduler,
            model=parts.model,
            estimate=parts.estimate,
            disturbances=parts.disturbances,
            pass_per_event=per_event and not parts.disturbances,
            engine=engine,
        ).schedule
        for engine in ("reference", "compiled")
    ]
    assert difference(*schedules) == "", f"seed {seed}"


@given(st.integers(0, 2**32))
@settings(max_examples=30)
def test_crowds_of_waiting_jobs(seed: int) -> None:
    _compare(seed, 50)


@pytest.mark.long
@pytest.mark.parametrize("block", [0, 1, *(pytest.param(k, marks=pytest.mark.further) for k in range(2, 8))])
def test_larger_crowds_of_waiting_jobs(block: int) -> None:
    for seed in range(100 * block, 100 * block + 30):
        _compare(seed, 140)


def _rebuilt(parts: RunSpec) -> tuple[list[int], list[int]]:
    """Return jobs and starts of a run whose kernel discards its cached reservations before each pass."""
    rule = parts.scheduler.rule()
    assert rule is not None
    columns = racks.RunColumns(parts, rule)
    arrays, kernel = columns.arrays(), racks.rack_kernel(parts, rule, waits=True)
    now = arrays.state.now
    now.pause = 1
    while (wanted := kernel("reservations", arrays)) != state.DONE:
        if wanted == state.PAUSED:
            now.pause, now.profile_valid = now.passes + 1, 0
        elif wanted == state.INSTANTS:
            arrays = arrays._replace(profile=columns.profile(2 * int(now.rows)))
            now.ranked = 0
        else:
            arrays = arrays.with_state(runs=racks.with_more_rows(arrays.state.runs, int(now.started), int(now.rows)))
    started = int(now.started)
    return arrays.state.runs.job[:started].tolist(), arrays.state.runs.start[:started].tolist()


@pytest.mark.parametrize("order", ["fcfs", "fm", "sjf"])
@pytest.mark.parametrize("factor", [1.0, 2.5])
@pytest.mark.long
def test_cached_reservations_match_rebuilt_ones_with_scarce_pools(order: str, factor: float) -> None:
    """Cached reservations equal those of a pass from scratch, and some are reused."""
    machine = Machine.of_racks(6, 256, local=65_536, pool=8 << 20)
    jobs = generate("perlmutter_like", jobs=1_500, load=2.0, seed=3, estimate_factor=factor)
    parts = RunSpec(jobs, machine, ListScheduler(make("orders", order), Conservative()), RemoteMemory(), RemoteMemory())
    family, why = find_engine(parts)
    assert family is not None, why
    schedule = simulate(jobs, machine, parts.scheduler, model=parts.model, estimate=parts.estimate, engine="compiled").schedule
    assert (schedule.job.tolist(), schedule.start.tolist()) == _rebuilt(parts)
    waiting = np.searchsorted(np.sort(jobs.submit), schedule.start, side="right") - np.arange(len(schedule.start))
    assert waiting.max() > 60
