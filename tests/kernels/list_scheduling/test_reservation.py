"""Search for the head's reservation from the last shadow time, compared with a search from now."""

from __future__ import annotations

import numpy as np
import pytest

from poolwise.engines.compiled_engine import RunSpec
from poolwise.engines.list_scheduling.columns import RunColumns
from poolwise.interfaces.user_class import rule_of
from poolwise.kernels.jit import entry
from poolwise.kernels.list_scheduling.racks import fits, place
from poolwise.kernels.list_scheduling.reservation import reserve
from poolwise.kernels.list_scheduling.runs import end_first, start
from poolwise.model import Machine, Workload
from poolwise.performance.ideal import Ideal
from poolwise.quantities import SECOND
from poolwise.schedulers.list import ListScheduler

pytestmark = pytest.mark.long

LOCAL, RACKS = 100, 3


@entry
def _reserve_both_ways(heads, state, tracked, found):
    """Start each job at its submission if it fits then, and reserve for a head at that instant in both ways.

    Records whether the search could resume from the last reservation and, for each way, the shadow time, the window and the
    free capacity of each rack at that time; nothing if the head does not wait.
    """
    jobs, rules, racks, runs, now = state.jobs, state.rules, state.racks, state.runs, state.now
    for k in range(heads.size):
        now.time = jobs.submit[k]
        while now.running > 0 and runs.end[runs.ending[0]] <= now.time:
            end_first(state)
        if place(k, jobs, rules.anywhere, racks.free, racks.pool, racks.take, racks.borrow):
            start(k, state)
            now.head = -1
        head = heads[k]
        if fits(head, jobs.nodes[head], jobs.remote[head], rules.anywhere, None, racks.free, racks.pool):
            continue
        tracked[k] = now.shadow_tracked
        for way in range(2):
            if way == 1:
                now.head, now.shadow_tracked = -1, 0
            reserve(head, state)
            found[k, way, 0], found[k, way, 1] = now.shadow, now.window
            for r in range(racks.free.size):
                found[k, way, 2 + 2 * r], found[k, way, 3 + 2 * r] = racks.shadow_free[r], racks.shadow_pool[r]


def test_resumed_reservation_search_matches_a_search_from_scratch() -> None:
    """Runs end early, on time or late; the head stays or changes; started jobs end before or after the shadow time."""
    g = np.random.default_rng(3)
    resumed, moved = 0, 0
    for _ in range(300):
        n = 60
        machine = Machine.of_racks(RACKS, int(g.integers(2, 9)), local=LOCAL, pool=int(g.choice([0, 300, 1000])))
        duration = g.integers(1, 60, n)
        late = g.random() < 0.3
        requested = np.maximum(duration * g.choice([0.6, 1.0, 2.0] if late else [1.0, 1.0, 1.5, 3.0], n), 1).astype(np.int64)
        load = Workload.of(
            np.cumsum(g.integers(0, 8, n)) * SECOND,
            duration * SECOND,
            requested=requested * SECOND,
            requests={"nodes": g.integers(1, 9, n), "memory": g.choice([50, 100, 150, 200], n)},
        )
        scheduler = ListScheduler()
        rule = rule_of(scheduler)
        assert rule is not None
        arrays = RunColumns(RunSpec(load, machine, scheduler, Ideal(), Ideal()), rule).arrays()
        able = np.flatnonzero(arrays.state.jobs.able)
        if not len(able):
            continue
        heads = np.repeat(g.choice(able, n), int(g.integers(1, 4)))[:n]
        tracked, reserved = np.zeros(n, dtype=np.int64), np.zeros((n, 2, 2 + 2 * RACKS), dtype=np.int64)
        _reserve_both_ways(heads, arrays.state, tracked, reserved)
        assert np.array_equal(reserved[:, 0], reserved[:, 1])
        resumed += int(tracked.sum())
        moved += int((np.diff(reserved[:, 0, 0][tracked > 0]) < 0).sum())
    assert resumed > 3000 and moved > 300  # searches resume, and the shadow time also moves back
