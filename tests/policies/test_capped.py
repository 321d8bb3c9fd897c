"""Caps on the time waited, and an order of its own beside the head."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from poolwise.engines import simulate
from poolwise.errors import InputError
from poolwise.files.component import Component
from poolwise.loop import run_loop
from poolwise.model import Changes, Machine, Plan, Queue, Rule, Snapshot, Workload
from poolwise.model.run_table import RunTable
from poolwise.performance.ideal import Ideal
from poolwise.platforms.simulated import Simulation
from poolwise.policies.backfill.easy import Easy
from poolwise.policies.order.areas import SmallestArea
from poolwise.policies.order.capped import Capped
from poolwise.policies.order.priorities import FCFS, SJF
from poolwise.schedulers.list import ListDispatcher, ListScheduler
from poolwise.traces.generators import generate
from poolwise.units import SECOND
from tests.helpers.random_studies import difference


@given(
    st.lists(st.tuples(st.integers(0, 100), st.integers(1, 50), st.integers(1, 8)), min_size=1, max_size=8),
    st.floats(0, 100),
    st.floats(0, 5),
)
def test_who_is_beyond_the_cap_comes_first(jobs: list[tuple[int, int, int]], patience: float, backlogs: float) -> None:
    """Of a job that has waited w: w > patience + backlogs * node-seconds / nodes, by plain arithmetic; not at the very edge."""
    jobs = sorted(jobs)
    submit, length, nodes = (np.array(column) for column in zip(*jobs, strict=True))
    load = Workload.of(submit * SECOND, length * SECOND, requests={"nodes": nodes})
    machine, queue = Machine.of_racks(2, 4), Queue(load.table)
    for row in range(len(jobs)):
        queue.add(row)
    now = 100 * SECOND
    view = Snapshot(now, machine, load.table, machine.capacity, machine.capacity, RunTable(machine.capacity.size), Ideal())
    found = Capped(SJF(), patience, backlogs).priority(queue, view)
    cap = patience + backlogs * float((nodes * length).sum()) / 8
    for row, value in enumerate(found.tolist()):
        if abs(100 - submit[row] - cap) > 1e-6:
            assert value == (np.inf if 100 - submit[row] > cap else -length[row])


@pytest.mark.parametrize("capped", [Capped(SmallestArea(), backlogs=0.5), Capped(SJF(), 3600.0), Capped(FCFS(), backlogs=1.0)])
@pytest.mark.parametrize("beside", [None, SJF()])
def test_a_busy_machine_in_both_engines(capped: Capped, beside: SJF | None) -> None:
    load = generate("perlmutter_like", jobs=200, seed=4)
    machine = Machine.of_racks(4, 100, local=2**19, pool=2**22)
    how = ListScheduler(capped, Easy(order=beside))
    slow, fast = (simulate(machine, load, how, engine=engine) for engine in ("reference", "compiled"))
    assert (slow.engine, fast.engine) == ("reference", "compiled")
    assert difference(slow.schedule, fast.schedule) == ""


def test_a_cap_of_nothing_is_first_come_first_served_and_a_long_one_is_none() -> None:
    load = generate("perlmutter_like", jobs=600, seed=4)
    machine = Machine.of_racks(4, 100, local=2**19, pool=2**22)

    def starts(how: ListScheduler) -> list[tuple[int, int]]:
        schedule = simulate(machine, load, how).schedule
        return list(zip(schedule.job.tolist(), schedule.start.tolist(), strict=True))

    uncapped, fcfs = starts(ListScheduler(SmallestArea())), starts(ListScheduler(FCFS()))
    between = starts(ListScheduler(Capped(SmallestArea(), 3 * 3600.0)))
    assert starts(ListScheduler(Capped(SmallestArea(), 1e9))) == uncapped
    assert starts(ListScheduler(Capped(SmallestArea(), 0.0))) == fcfs
    assert len({str(found) for found in (uncapped, fcfs, between, starts(ListScheduler(FCFS(), Easy(order=SJF()))))}) == 4


def test_a_file_says_them_in_tables() -> None:
    written = Component(name="capped", order="area", backlogs=2.0).make("orders")
    assert written == Capped(SmallestArea(), backlogs=2.0)
    assert Component(name="easy", order={"name": "capped", "order": "sjf", "patience_s": 60.0}).make("backfills") == Easy(
        order=Capped(SJF(), 60.0)
    )
    with pytest.raises(InputError, match="backlogs must be at least 0"):
        Component(name="capped", backlogs=-1.0).make("orders")


def test_what_waits_is_told_why_by_the_order_in_which_it_was_tried() -> None:
    """A reason is given for each job in each pass: none, by the rule that is followed in saying why, should have started."""
    load = generate("perlmutter_like", jobs=110, seed=4, estimate_factor=2.0)
    machine = Machine.of_racks(4, 40, local=2**19, pool=2**22)
    rules = set[Rule]()

    class Asked(ListDispatcher):
        def schedule(self, queue: Queue, snapshot: Snapshot, changes: Changes) -> Plan:
            plan = super().schedule(queue, snapshot, changes)
            waits = set(queue.jobs.tolist()) - {start.job for start in plan.starts} - set(plan.rejected)
            rules.update(super(Asked, self).why(job, queue, snapshot, plan).rule for job in waits)
            return plan

    class Asking(ListScheduler):
        def open(self, machine: Machine, seed: int) -> Asked:
            return Asked(self)

    run_loop(Simulation(machine, load, Ideal()), Asking(FCFS(), Easy(order=SJF())))
    assert {Rule.SHORT, Rule.RESERVATION} <= rules
