"""Memory use over time: runs stall without the memory they use, and are killed beyond their request."""

from dataclasses import dataclass, field, replace

import numpy as np
import pytest

from poolwise.engines import simulate
from poolwise.errors import InputError, PolicyError
from poolwise.interfaces import Dispatcher, Scheduler
from poolwise.model import (
    Changes,
    Decision,
    Decisions,
    Machine,
    Outcome,
    Placement,
    Queue,
    Resize,
    RunStalled,
    Snapshot,
    Start,
    Stop,
)
from poolwise.performance.remote_memory import RemoteMemory, sld_factor
from poolwise.quantities import SECOND
from poolwise.schedulers.list import ListScheduler
from tests.helpers.memory_over_time import check_memory, machine_with, using
from tests.helpers.remote_split import split_machine

NODES, MEMORY = 0, 1


def held(remote: int) -> Placement:
    rows = [(0, 0, NODES, 1)] + ([(0, 1, MEMORY, remote)] if remote else [])
    return Placement.of(rows)


@dataclass
class GivenDecisions(Scheduler, Dispatcher):
    """Returns given decisions at given seconds, and records the stalled runs."""

    plans: dict[int, list[Decision]]
    seen: list[tuple[int, dict[int, int], dict[int, int]]] = field(default_factory=list)

    def open(self, machine: Machine, seed: int) -> "GivenDecisions":
        return self

    def schedule(self, queue: Queue, snapshot: Snapshot, changes: Changes) -> Decisions:
        assert snapshot.in_use is not None
        second = snapshot.now // SECOND
        self.seen.append((second, dict(snapshot.in_use.used), {k: at // SECOND for k, at in snapshot.stalled.items()}))
        later = [time * SECOND for time in self.plans if time > second]
        return Decisions(tuple(self.plans.pop(second, [])), min(later, default=None))


GROWING = using([80], [[(0, 20), (50, 80)]], [100])


def test_run_stalls_until_it_gets_the_memory_it_uses() -> None:
    given_decisions = GivenDecisions({0: [Start(0, (0,), held(30))], 70: [Resize(0, held(70))]})
    schedule = simulate(GROWING, machine_with(100), given_decisions).schedule
    assert schedule.end.tolist() == [120 * SECOND]
    assert [(stall.begin, stall.end) for stall in schedule.stalls] == [(50 * SECOND, 70 * SECOND)]
    assert (50, {0: 80}, {0: 50}) in given_decisions.seen  # the stall triggers a pass
    check_memory(schedule)


def test_memory_step_within_the_placement_triggers_no_pass() -> None:
    given_decisions = GivenDecisions({0: [Start(0, (0,), held(70))]})
    schedule = simulate(GROWING, machine_with(100), given_decisions).schedule
    assert [second for second, _, _ in given_decisions.seen] == [0, 100]
    assert [(step.time // SECOND, step.memory) for step in schedule.memory_steps] == [(0, 20), (50, 80)]


def test_taking_used_memory_stalls_a_run() -> None:
    given_decisions = GivenDecisions({0: [Start(0, (0,), held(10))], 20: [Resize(0, held(9))], 30: [Resize(0, held(70))]})
    schedule = simulate(GROWING, machine_with(100), given_decisions).schedule
    assert schedule.end.tolist() == [110 * SECOND]
    check_memory(schedule)


def test_start_with_too_little_memory_stalls_at_once() -> None:
    given_decisions = GivenDecisions({0: [Start(0, (0,), held(0))], 5: [Resize(0, held(70))]})
    schedule = simulate(GROWING, machine_with(100), given_decisions).schedule
    assert schedule.end.tolist() == [105 * SECOND] and (0, {0: 20}, {0: 0}) in given_decisions.seen
    check_memory(schedule)


def test_stopping_a_stalled_run_counts_as_out_of_memory() -> None:
    given_decisions = GivenDecisions({0: [Start(0, (0,), held(10))], 60: [Stop(0, False, "over")]})
    schedule = simulate(GROWING, machine_with(100), given_decisions).schedule
    assert schedule.outcome == (Outcome.OUT_OF_MEMORY,) and schedule.end.tolist() == [60 * SECOND]
    check_memory(schedule)


def test_stopping_a_working_run_does_not_count_as_out_of_memory() -> None:
    given_decisions = GivenDecisions({0: [Start(0, (0,), held(10))], 40: [Stop(0, False, "over")]})
    assert simulate(GROWING, machine_with(100), given_decisions).schedule.outcome == (Outcome.STOPPED,)


@pytest.mark.parametrize(("asked", "outcome"), [(79, Outcome.OUT_OF_MEMORY), (80, Outcome.FINISHED)])
def test_run_beyond_its_request_is_killed(asked: int, outcome: Outcome) -> None:
    jobs = using([asked], [[(0, 20), (50, 80)]], [100])
    schedule = simulate(jobs, machine_with(100), ListScheduler()).schedule
    assert schedule.outcome == (outcome,) and schedule.waiting == ()
    assert schedule.end.tolist() == [(50 if asked < 80 else 100) * SECOND]


def test_run_may_use_the_entire_memory_of_its_nodes() -> None:
    schedule = simulate(using([2], [[(0, 10)]], [100]), machine_with(100), ListScheduler()).schedule
    assert schedule.outcome == (Outcome.FINISHED,)


def test_scheduler_that_ignores_stalled_runs_is_an_error() -> None:
    with pytest.raises(PolicyError, match=r"1 runs \(the first of job 1\) use more memory than they hold"):
        simulate(GROWING, machine_with(100), GivenDecisions({0: [Start(0, (0,), held(10))]}))


def test_slowdown_follows_memory_use() -> None:
    jobs = using([80], [[(0, 5), (50, 40)]], [100])
    jobs = replace(jobs, attributes={"u": np.array([0.5])})
    schedule = simulate(jobs, machine_with(100), ListScheduler(), model=RemoteMemory()).schedule
    slowdown = sld_factor(0.5, 180) * (40 - 10) / 40
    assert schedule.end[0] == pytest.approx((50 + 50 * (1 + slowdown)) * SECOND, abs=2)


def test_memory_steps_are_delayed_by_slowdown() -> None:
    jobs = replace(using([80], [[(0, 40), (50, 60)]], [100]), attributes={"u": np.array([0.9])})
    schedule = simulate(jobs, machine_with(100), ListScheduler(), model=RemoteMemory()).schedule
    first = 50 * (1 + sld_factor(0.9, 180) * 30 / 40)
    assert schedule.memory_steps[1].time == pytest.approx(first * SECOND, abs=2)


def test_shared_nodes_and_compiled_engine_are_refused() -> None:
    with pytest.raises(InputError, match="memory_use requires whole nodes"):
        simulate(GROWING, split_machine(), ListScheduler())
    with pytest.raises(InputError, match="the memory use of jobs varies over time"):
        simulate(GROWING, machine_with(100), ListScheduler(), engine="compiled")
    with pytest.raises(InputError, match="cannot be combined with closed_loop"):
        simulate(replace(GROWING, closed_loop=True), machine_with(100), ListScheduler())


def test_one_stall_event_per_step() -> None:
    told = []
    given_decisions = GivenDecisions({0: [Start(0, (0,), held(10))], 70: [Resize(0, held(70))]})
    simulate(GROWING, machine_with(100), given_decisions, observer=lambda batch, outcome, queue: told.extend(batch.events))
    assert told.count(RunStalled(0)) == 1
