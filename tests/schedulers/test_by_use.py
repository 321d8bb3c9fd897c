"""Usage-based pool memory: reallocation, margins, and memory shortages."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from poolwise.engines import simulate
from poolwise.errors import InputError
from poolwise.metrics import Outcomes
from poolwise.model import Machine, Outcome, Schedule, Workload
from poolwise.policies.placement.memory.racks import RackPlacement
from poolwise.policies.placement.nodes.placement import NodePlacement
from poolwise.quantities import SECOND
from poolwise.schedulers.list import ListScheduler
from poolwise.schedulers.usage_based import UsageBased
from tests.helpers.memory_over_time import check_memory, machine_with, using

POOL = 1
TWO = using([80, 80], [[(0, 20), (50, 80)], [(0, 20), (60, 80)]], [100, 100])
"""Two jobs that ask for all of the pool but 30 MiB, of which they use little at first."""


def run(scheduler: ListScheduler, workload: Workload = TWO, machine: Machine | None = None) -> Schedule:
    schedule = simulate(workload, machine if machine is not None else machine_with(100), scheduler).schedule
    check_memory(schedule)
    assert not schedule.refused
    return schedule


def seconds(times: np.ndarray) -> list[float]:
    return (times / SECOND).tolist()


def held(schedule: Schedule, run: int) -> list[tuple[float, int]]:
    """Return (seconds, MiB of the pool) of each resize."""
    rows = [(r.time / SECOND, r.placement.amount[r.placement.owner == POOL].sum()) for r in schedule.resizes if r.run == run]
    return [(time, int(amount)) for time, amount in rows]


def test_allocation_by_request_makes_the_second_job_wait() -> None:
    assert seconds(run(ListScheduler()).start) == [0, 100]


def test_unused_memory_is_reallocated_at_the_next_interval() -> None:
    schedule = run(UsageBased(interval_s=10, margin=0.0, patience_s=1000))
    assert seconds(schedule.start) == [0, 10] and schedule.outcome == (Outcome.FINISHED, Outcome.FINISHED)
    assert held(schedule, 0) == [(10, 10), (50, 70)]
    # at 70 s the second job needs 70 MiB, which it receives when the first job ends
    assert held(schedule, 1) == [(20, 10), (100, 70)] and seconds(schedule.end) == [100, 140]
    assert [(s.run, s.begin // SECOND, s.end // SECOND) for s in schedule.stalls] == [(1, 70, 100)]


def test_run_stalled_beyond_patience_restarts_with_its_full_request() -> None:
    schedule = run(UsageBased(interval_s=10, margin=0.0, patience_s=15))
    assert schedule.outcome == (Outcome.FINISHED, Outcome.OUT_OF_MEMORY, Outcome.FINISHED)
    assert seconds(schedule.start) == [0, 10, 100] and seconds(schedule.end) == [100, 85, 200]
    assert held(schedule, 2) == []  # it keeps its request


def test_zero_patience_stops_a_stalled_run_at_once_and_can_lose_it() -> None:
    schedule = run(UsageBased(interval_s=10, margin=0.0, patience_s=0, when_short="lose"))
    assert schedule.outcome == (Outcome.FINISHED, Outcome.OUT_OF_MEMORY) and seconds(schedule.end) == [100, 70]
    assert Outcomes.of(schedule).status.tolist() == [0, 3]


def test_run_keeps_a_margin_up_to_its_request() -> None:
    schedule = run(UsageBased(interval_s=10, margin=0.5, patience_s=1000))
    assert held(schedule, 0)[:2] == [(10, 20), (50, 70)]


def test_margin_is_reclaimed_for_runs_that_need_memory() -> None:
    # at the measurement at 30 s they have 50, 50 and 25 MiB; at 40 s the second needs 20 more, of which 5 are free
    steps = [[(0, 60), (31, 20)], [(0, 60), (40, 80)], [(0, 35)]]
    workload = using([60, 90, 35], steps, [100, 100, 100], submit=[0, 0, 1])
    schedule = run(UsageBased(interval_s=30, margin=0.0, patience_s=0), workload, machine_with(130))
    assert seconds(schedule.start) == [0, 0, 30] and schedule.stalls == ()
    assert held(schedule, 0) == [(40, 10)] and held(schedule, 1) == [(30, 50), (40, 70)]


def test_used_memory_is_granted_if_the_margin_does_not_fit() -> None:
    steps = [[(0, 20), (50, 80)], [(0, 30)], [(0, 25)]]
    workload = using([105, 30, 25], steps, [100, 1000, 1000], submit=[0, 0, 1])
    schedule = run(UsageBased(interval_s=10, margin=0.5), workload, machine_with(115))
    assert held(schedule, 0) == [(10, 20), (50, 70)] and schedule.stalls == ()


@pytest.mark.parametrize(("most", "stalls"), [(40, 0), (41, 1)])
def test_last_mib_of_the_pool_is_granted(most: int, stalls: int) -> None:
    workload = using([80, 50], [[(0, 20), (50, 80)], [(0, 20), (60, most)]], [100, 100])
    schedule = run(UsageBased(interval_s=10, margin=0.0, patience_s=1000), workload)
    assert len(schedule.stalls) == stalls


def test_latest_started_of_two_stalled_runs_is_stopped() -> None:
    steps = [[(0, 20), (50, 30)], [(0, 20), (50, 30)], [(0, 90)]]
    workload = using([60, 60, 90], steps, [100, 100, 200], submit=[0, 0, 1])
    schedule = run(UsageBased(interval_s=10, margin=0.0, patience_s=0), workload)
    assert schedule.outcome[:3] == (Outcome.FINISHED, Outcome.OUT_OF_MEMORY, Outcome.FINISHED)
    assert seconds(schedule.end)[:2] == [100, 50]


def test_without_measurements_it_is_list_scheduling() -> None:
    plain = replace(TWO, memory_use=None)
    by_use, by_request = (simulate(plain, machine_with(100), s).schedule for s in (UsageBased(), ListScheduler()))
    assert by_use.end.tolist() == by_request.end.tolist() and by_use.passes == by_request.passes


def test_any_pool_serves_a_run_in_system_scope() -> None:
    machine = Machine.of_racks(2, 1, local=10, pool=40)
    workload = using([80, 60], [[(0, 20), (50, 80)], [(0, 15)]], [100, 30], submit=[0, 60])
    schedule = run(UsageBased(interval_s=10, margin=0.0, placement=RackPlacement("system")), workload, machine)
    grown = next(resized.placement for resized in schedule.resizes if resized.time == 50 * SECOND)
    assert sorted(grown.amount[grown.resource == 1].tolist()) == [30, 40]


@pytest.mark.parametrize("wrong", [{"margin": -0.1}, {"interval_s": 0.0}, {"patience_s": float("nan")}])
def test_setting_out_of_range_is_rejected(wrong: dict[str, float]) -> None:
    with pytest.raises(InputError, match=next(iter(wrong))):
        simulate(TWO, machine_with(100), UsageBased(**wrong))


def test_other_placement_is_rejected() -> None:
    with pytest.raises(InputError, match="racks of whole nodes only"):
        simulate(TWO, machine_with(100), UsageBased(placement=NodePlacement()))


JOBS = st.lists(
    st.tuples(
        st.integers(0, 60),  # submitted
        st.integers(1, 80),  # seconds
        st.integers(1, 3),  # nodes
        st.integers(0, 12),  # request beyond the peak
        st.lists(st.tuples(st.integers(1, 90), st.integers(0, 40)), max_size=4),
        st.integers(0, 40),
    ),
    min_size=1,
    max_size=8,
)


@settings(max_examples=150, deadline=None)
@given(
    jobs=JOBS,
    interval=st.sampled_from([1.0, 7.0, 30.0]),
    margin=st.sampled_from([0.0, 0.3]),
    patience=st.sampled_from([0.0, 5.0, 40.0]),
    requeue=st.booleans(),
    scope=st.sampled_from(["rack", "system"]),
)
def test_pool_is_never_overcommitted_and_no_job_is_stopped_twice(
    jobs: list[tuple[int, int, int, int, list[tuple[int, int]], int]],
    interval: float,
    margin: float,
    patience: float,
    requeue: bool,
    scope: str,
) -> None:
    jobs = sorted(jobs, key=lambda job: job[0])
    steps = [[(0, first), *sorted(dict(rest).items())] for *_, rest, first in jobs]
    requested = [max(memory for _, memory in job) + more for job, (_, _, _, more, _, _) in zip(steps, jobs, strict=True)]
    workload = using(requested, steps, [j[1] for j in jobs], [j[0] for j in jobs], [j[2] for j in jobs])
    scheduler = UsageBased(
        margin=margin,
        interval_s=interval,
        patience_s=patience,
        when_short="requeue" if requeue else "lose",
        placement=RackPlacement("rack" if scope == "rack" else "system"),
    )
    machine = Machine.of_racks(2, 3, local=10, pool=50)
    schedule = run(scheduler, workload, machine)
    assert schedule.waiting == ()
    stopped = schedule.job[[outcome is Outcome.OUT_OF_MEMORY for outcome in schedule.outcome]].tolist()
    assert len(set(stopped)) == len(stopped)
    done = set(np.flatnonzero(schedule.done).tolist())
    assert done | set(schedule.rejected) | (set() if requeue else set(stopped)) == set(range(len(workload)))
    assert all(stall.end - stall.begin <= patience * SECOND for stall in schedule.stalls)
    pooled = schedule.holdings.resource == machine.resource("memory")
    for resized, amount in zip(schedule.holdings.run[pooled], schedule.holdings.amount[pooled], strict=True):
        job = int(schedule.job[resized])
        assert amount <= max(0, requested[job] - 10) * workload.nodes[job]  # no run holds more than its request
    again = simulate(workload, machine, scheduler).schedule
    assert again.end.tolist() == schedule.end.tolist() and again.resizes == schedule.resizes
