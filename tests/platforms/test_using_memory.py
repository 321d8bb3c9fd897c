"""Runs that use more than they hold stand still; what uses more than it asked for is over."""

from dataclasses import dataclass, field, replace

import numpy as np
import pytest

from poolwise.engines import simulate
from poolwise.errors import InputError, PolicyError
from poolwise.interfaces import Dispatcher, Scheduler
from poolwise.model import Changes, Decision, Machine, Outcome, Placement, Plan, Queue, Resize, Snapshot, Stalled, Start, Stop
from poolwise.performance.remote_memory import RemoteMemory, sld_factor
from poolwise.schedulers.list import ListScheduler
from poolwise.units import SECOND
from tests.helpers.memory_over_time import check_memory, machine_with, using
from tests.helpers.remote_split import split_machine

NODES, MEMORY = 0, 1


def held(remote: int) -> Placement:
    rows = [(0, 0, NODES, 1)] + ([(0, 1, MEMORY, remote)] if remote else [])
    return Placement.of(rows)


@dataclass
class Said(Scheduler, Dispatcher):
    """Says what it is told to say at given seconds, and notes who stands still."""

    plans: dict[int, list[Decision]]
    seen: list[tuple[int, dict[int, int], dict[int, int]]] = field(default_factory=list)

    def open(self, machine: Machine, seed: int) -> "Said":
        return self

    def schedule(self, queue: Queue, snapshot: Snapshot, changes: Changes) -> Plan:
        assert snapshot.in_use is not None
        second = snapshot.now // SECOND
        self.seen.append((second, dict(snapshot.in_use.used), {k: at // SECOND for k, at in snapshot.stalled.items()}))
        later = [time * SECOND for time in self.plans if time > second]
        return Plan(tuple(self.plans.pop(second, [])), min(later, default=None))


GROWING = using([80], [[(0, 20), (50, 80)]], [100])


def test_a_run_that_grows_beyond_what_it_holds_stands_still_until_it_is_given_more() -> None:
    said = Said({0: [Start(0, (0,), held(30))], 70: [Resize(0, held(70))]})
    schedule = simulate(machine_with(100), GROWING, said).schedule
    assert schedule.end.tolist() == [120 * SECOND]
    assert [(stall.begin, stall.end) for stall in schedule.stalls] == [(50 * SECOND, 70 * SECOND)]
    assert (50, {0: 80}, {0: 50}) in said.seen  # a pass is made as soon as it lacks something
    check_memory(schedule)


def test_no_pass_is_made_where_what_is_held_is_enough() -> None:
    said = Said({0: [Start(0, (0,), held(70))]})
    schedule = simulate(machine_with(100), GROWING, said).schedule
    assert [second for second, _, _ in said.seen] == [0, 100]
    assert [(step.time // SECOND, step.memory) for step in schedule.memory_steps] == [(0, 20), (50, 80)]


def test_what_is_taken_from_a_run_stops_it() -> None:
    said = Said({0: [Start(0, (0,), held(10))], 20: [Resize(0, held(9))], 30: [Resize(0, held(70))]})
    schedule = simulate(machine_with(100), GROWING, said).schedule
    assert schedule.end.tolist() == [110 * SECOND]
    check_memory(schedule)


def test_a_start_with_less_than_is_used_stands_still_at_once() -> None:
    said = Said({0: [Start(0, (0,), held(0))], 5: [Resize(0, held(70))]})
    schedule = simulate(machine_with(100), GROWING, said).schedule
    assert schedule.end.tolist() == [105 * SECOND] and (0, {0: 20}, {0: 0}) in said.seen
    check_memory(schedule)


def test_a_run_that_is_stopped_while_it_stands_still_ran_out_of_memory() -> None:
    said = Said({0: [Start(0, (0,), held(10))], 60: [Stop(0, False, "over")]})
    schedule = simulate(machine_with(100), GROWING, said).schedule
    assert schedule.outcome == (Outcome.OUT_OF_MEMORY,) and schedule.end.tolist() == [60 * SECOND]
    check_memory(schedule)


def test_a_run_that_is_stopped_while_it_works_did_not() -> None:
    said = Said({0: [Start(0, (0,), held(10))], 40: [Stop(0, False, "over")]})
    assert simulate(machine_with(100), GROWING, said).schedule.outcome == (Outcome.STOPPED,)


@pytest.mark.parametrize(("asked", "outcome"), [(79, Outcome.OUT_OF_MEMORY), (80, Outcome.FINISHED)])
def test_who_uses_more_than_was_asked_for_is_over(asked: int, outcome: Outcome) -> None:
    jobs = using([asked], [[(0, 20), (50, 80)]], [100])
    schedule = simulate(machine_with(100), jobs, ListScheduler()).schedule
    assert schedule.outcome == (outcome,) and schedule.waiting == ()
    assert schedule.end.tolist() == [(50 if asked < 80 else 100) * SECOND]


def test_a_node_may_be_used_whole_whatever_was_asked_for() -> None:
    schedule = simulate(machine_with(100), using([2], [[(0, 10)]], [100]), ListScheduler()).schedule
    assert schedule.outcome == (Outcome.FINISHED,)


def test_a_scheduler_that_leaves_a_run_standing_is_found_out() -> None:
    with pytest.raises(PolicyError, match="1 runs, of job 1 first, use more memory than they hold"):
        simulate(machine_with(100), GROWING, Said({0: [Start(0, (0,), held(10))]}))


def test_slowdown_follows_what_is_used() -> None:
    jobs = using([80], [[(0, 5), (50, 40)]], [100])
    jobs = replace(jobs, attributes={"u": np.array([0.5])})
    schedule = simulate(machine_with(100), jobs, ListScheduler(), truth=RemoteMemory()).schedule
    slowdown = sld_factor(0.5, 180) * (40 - 10) / 40
    assert schedule.end[0] == pytest.approx((50 + 50 * (1 + slowdown)) * SECOND, abs=2)


def test_steps_come_later_where_work_is_slower() -> None:
    jobs = replace(using([80], [[(0, 40), (50, 60)]], [100]), attributes={"u": np.array([0.9])})
    schedule = simulate(machine_with(100), jobs, ListScheduler(), truth=RemoteMemory()).schedule
    first = 50 * (1 + sld_factor(0.9, 180) * 30 / 40)
    assert schedule.memory_steps[1].time == pytest.approx(first * SECOND, abs=2)


def test_nodes_that_are_shared_and_kernels_are_refused() -> None:
    with pytest.raises(InputError, match="simulated on whole nodes"):
        simulate(split_machine(), GROWING, ListScheduler())
    with pytest.raises(InputError, match="the memory that jobs use changes"):
        simulate(machine_with(100), GROWING, ListScheduler(), engine="compiled")
    with pytest.raises(InputError, match="a closed loop of jobs"):
        simulate(machine_with(100), replace(GROWING, closed_loop=True), ListScheduler())


def test_the_event_is_told_once_for_each_step() -> None:
    told = []
    said = Said({0: [Start(0, (0,), held(10))], 70: [Resize(0, held(70))]})
    simulate(machine_with(100), GROWING, said, observer=lambda batch, outcome, queue: told.extend(batch.events))
    assert told.count(Stalled(0)) == 1
