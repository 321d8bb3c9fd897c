"""Caps on the waiting time, and a separate order for backfill candidates."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from poolwise.engines import simulate
from poolwise.errors import InputError
from poolwise.files.component import Component
from poolwise.loop import run_loop
from poolwise.model import Changes, Decisions, Machine, Queue, Snapshot, WaitCause, Workload
from poolwise.model.run_table import RunTable
from poolwise.performance.ideal import Ideal
from poolwise.platforms.simulated import Simulation
from poolwise.policies.backfill.easy import Easy
from poolwise.policies.order.priorities import FCFS, SJF, Capped, SmallestArea
from poolwise.quantities import SECOND
from poolwise.schedulers.list import ListDispatcher, ListScheduler
from poolwise.traces.generators import generate
from tests.helpers.random_studies import difference


@given(
    st.lists(st.tuples(st.integers(0, 100), st.integers(1, 50), st.integers(1, 8)), min_size=1, max_size=8),
    st.floats(0, 100),
    st.floats(0, 5),
)
def test_jobs_beyond_the_cap_come_first(jobs: list[tuple[int, int, int]], patience: float, backlogs: float) -> None:
    """A job that has waited w is beyond the cap if w > patience + backlogs * node-seconds / nodes; ties are not tested."""
    jobs = sorted(jobs)
    submit, length, nodes = (np.array(column) for column in zip(*jobs, strict=True))
    load = Workload.of(submit * SECOND, length * SECOND, requests={"nodes": nodes})
    machine, queue = Machine.of_racks(2, 4), Queue(load.table)
    for row in range(len(jobs)):
        queue.add(row)
    now = 100 * SECOND
    view = Snapshot(now, machine, load.table, machine.capacity, machine.capacity, RunTable(machine.capacity.size), Ideal())
    values = Capped(SJF(), patience, backlogs).priority(queue, view)
    cap = patience + backlogs * float((nodes * length).sum()) / 8
    for row, value in enumerate(values.tolist()):
        if abs(100 - submit[row] - cap) > 1e-6:
            assert value == (np.inf if 100 - submit[row] > cap else -length[row])


@pytest.mark.parametrize("capped", [Capped(SmallestArea(), backlogs=0.5), Capped(SJF(), 3600.0), Capped(FCFS(), backlogs=1.0)])
@pytest.mark.parametrize("backfill_order", [None, SJF()])
def test_engines_agree_on_a_busy_machine(capped: Capped, backfill_order: SJF | None) -> None:
    load = generate("perlmutter_like", jobs=200, seed=4)
    machine = Machine.of_racks(4, 100, local=2**19, pool=2**22)
    how = ListScheduler(capped, Easy(order=backfill_order))
    slow, fast = (simulate(load, machine, how, engine=engine) for engine in ("reference", "compiled"))
    assert (slow.engine, fast.engine) == ("reference", "compiled")
    assert difference(slow.schedule, fast.schedule) == ""


def test_zero_cap_is_fcfs_and_a_long_cap_has_no_effect() -> None:
    load = generate("perlmutter_like", jobs=600, seed=4)
    machine = Machine.of_racks(4, 100, local=2**19, pool=2**22)

    def starts(how: ListScheduler) -> list[tuple[int, int]]:
        schedule = simulate(load, machine, how).schedule
        return list(zip(schedule.job.tolist(), schedule.start.tolist(), strict=True))

    uncapped, fcfs = starts(ListScheduler(SmallestArea())), starts(ListScheduler(FCFS()))
    between = starts(ListScheduler(Capped(SmallestArea(), 3 * 3600.0)))
    assert starts(ListScheduler(Capped(SmallestArea(), 1e9))) == uncapped
    assert starts(ListScheduler(Capped(SmallestArea(), 0.0))) == fcfs
    assert len({str(schedule) for schedule in (uncapped, fcfs, between, starts(ListScheduler(FCFS(), Easy(order=SJF()))))}) == 4


def test_component_settings_build_capped_orders() -> None:
    written = Component(name="capped", order="area", backlogs=2.0).make("orders")
    assert written == Capped(SmallestArea(), backlogs=2.0)
    assert Component(name="easy", order={"name": "capped", "order": "sjf", "patience_s": 60.0}).make("backfills") == Easy(
        order=Capped(SJF(), 60.0)
    )
    with pytest.raises(InputError, match="backlogs must be at least 0"):
        Component(name="capped", backlogs=-1.0).make("orders")


def test_every_wait_has_a_reason_under_a_backfill_order() -> None:
    load = generate("perlmutter_like", jobs=110, seed=4, estimate_factor=2.0)
    machine = Machine.of_racks(4, 40, local=2**19, pool=2**22)
    rules = set[WaitCause]()

    class ExplainingDispatcher(ListDispatcher):
        def schedule(self, queue: Queue, snapshot: Snapshot, changes: Changes) -> Decisions:
            decisions = super().schedule(queue, snapshot, replace(changes, explain=frozenset(queue.jobs.tolist())))
            rules.update(reason.cause for reason in decisions.reasons.values())
            assert len(decisions.reasons) + len(decisions.starts) == len(queue) or decisions.rejected
            return decisions

    class ExplainingScheduler(ListScheduler):
        def open(self, machine: Machine, seed: int) -> ExplainingDispatcher:
            return ExplainingDispatcher(self)

    run_loop(Simulation(load, machine, Ideal()), ExplainingScheduler(FCFS(), Easy(order=SJF())))
    assert rules == {WaitCause.SHORT, WaitCause.RESERVATION}
