"""Tests of the allocation on simulated workloads: sums, fairness, settling, swap."""

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from poolwise.performance.profiles import find_profile
from poolwise_agents.memory_agent.allocation import ObservedWorkload, decide_limits, fair_limits
from poolwise_agents.memory_agent.curve import MIB, SlowdownCurve
from tests.helpers.pretended_workloads import SimulatedWorkload, simulate, simulated_workloads

STEPS = 150
"""Control steps after which limits have settled in all cases tried."""
several = st.lists(simulated_workloads, min_size=1, max_size=6)
shares = st.floats(0.3, 1.3)


def assert_settles_fairly(workloads: Sequence[SimulatedWorkload], share: float) -> None:
    """Check that limits settle, and that a single violated workload cannot be helped any more.

    Memory that others could give up, up to the resolution of curves, is less than the violated workload lacks.
    """
    memory = int(share * sum(workload.total for workload in workloads))
    simulate(memory, workloads, STEPS)
    assert simulate(memory, workloads, 20, start=STEPS) == []
    assert sum(workload.limit or 0 for workload in workloads) <= memory
    beyond = [workload for workload in workloads if not workload.within(workload.local)]
    if len(beyond) > 1:
        return  # memory for one violated workload may be missing for another
    others = [workload for workload in workloads if workload.within(workload.local)]
    could_give = sum(
        max(0, workload.local - max(workload.need + 3 * workload.curve.step, workload.total // 4)) for workload in others
    )
    lacking = sum(workload.need + 3 * workload.curve.step - workload.local for workload in beyond)
    assert not beyond or could_give < lacking


@settings(max_examples=6, deadline=None)
@given(several, shares)
@pytest.mark.long
def test_limits_settle_and_a_single_violation_cannot_be_helped(workloads: list[SimulatedWorkload], share: float) -> None:
    assert_settles_fairly(workloads, share)


@pytest.mark.long
@pytest.mark.further
@settings(max_examples=300, deadline=None)
@given(several, shares)
def test_limits_settle_for_many_more_workloads(workloads: list[SimulatedWorkload], share: float) -> None:
    assert_settles_fairly(workloads, share)


def test_everything_is_local_if_it_fits() -> None:
    workloads = [SimulatedWorkload(100 * MIB, 0.0, ((0.0, 9.0),)), SimulatedWorkload(50 * MIB, 1.0, ((0.0, 9.0),))]
    assert simulate(200 * MIB, workloads, 20) == [0]
    assert [workload.limit // MIB for workload in workloads] == [125, 74]


def test_streaming_workload_gets_all_memory_and_others_give() -> None:
    streams = SimulatedWorkload(100 * MIB, 0.25, ((0.0, 7.0), (0.97, 7.0)))
    rests = SimulatedWorkload(100 * MIB, 0.25, ((0.0, 3.0), (0.3, 0.0)))
    moved = simulate(150 * MIB, [streams, rests], 40)
    assert streams.local == streams.total and rests.within(rests.local)
    assert len(moved) <= 6


def test_profile_avoids_exploration() -> None:
    profiled = SimulatedWorkload(200 * MIB, 0.25, ((0.0, 9.0), (0.5, 0.0)))
    streams = SimulatedWorkload(100 * MIB, 0.1, ((0.0, 7.0), (0.97, 7.0)))
    profiled.curve = SlowdownCurve(profiled.total, (), find_profile("kmeans"))
    assert simulate(280 * MIB, [profiled, streams], 20) == [0]
    assert streams.local == streams.total and profiled.within(profiled.local)


def test_unknown_workload_gives_memory_once_another_is_violated() -> None:
    beyond, unknown = observed(60, 3.0), observed(None)
    known_limit = replace(unknown, limit=100 * MIB)
    assert known_limit.curve.unknown
    limits = decide_limits(160 * MIB, 2**40, [beyond, known_limit])
    assert limits is not None and limits[0] > 60 * MIB and limits[1] < 100 * MIB


def test_phase_change_takes_memory_from_workloads_that_can_give() -> None:
    growing = SimulatedWorkload(100 * MIB, 0.25, ((0.0, 3.0), (0.3, 0.0)))
    shrinking = SimulatedWorkload(100 * MIB, 0.25, ((0.0, 3.0), (0.6, 0.0)))
    simulate(120 * MIB, [growing, shrinking], 30)
    assert all(each.within(each.local) for each in (growing, shrinking))
    growing.knots, shrinking.knots = ((0.0, 3.0), (0.7, 0.0)), ((0.0, 3.0), (0.3, 0.0))
    moved = simulate(120 * MIB, [growing, shrinking], 30, start=30)
    assert all(each.within(each.local) for each in (growing, shrinking)) and len(moved) <= 8


def test_unavoidable_violation_does_not_keep_limits_moving() -> None:
    workloads = [SimulatedWorkload(100 * MIB, 0.1, ((0.0, 7.0), (0.97, 7.0))) for _ in range(3)]
    assert len(simulate(150 * MIB, workloads, 60)) < 15
    assert simulate(150 * MIB, workloads, 30, start=60) == []


def test_exploration_steps_of_different_sizes_do_not_oscillate() -> None:
    large, small = SimulatedWorkload(1462 * MIB, 1.0, ((0.22, 7.13),)), SimulatedWorkload(261 * MIB, 3.0, ((0.22, 0.0),))
    simulate(982 * MIB, [large, small], 100)
    assert simulate(982 * MIB, [large, small], 20, start=100) == []


def observed(limit: int | None, slowdown: float = 0.0, total: int = 100, **others: int) -> ObservedWorkload:
    held = total if limit is None else min(limit, total)
    curve = SlowdownCurve(total * MIB).add_sample(0.0, held * MIB, slowdown)
    return ObservedWorkload(curve, 0.25, held * MIB, None if limit is None else limit * MIB, slowdown, **others)


def test_limits_stay_while_all_workloads_are_within_their_tolerances() -> None:
    assert decide_limits(160 * MIB, 2**40, [observed(80, 0.24), observed(80, 0.01)]) is None


def test_moves_are_scaled_down_to_free_swap() -> None:
    limits = decide_limits(160 * MIB, 10 * MIB, [observed(60, 3.0), observed(100, 0.0)])
    assert limits is not None and sum(limits) <= 160 * MIB
    assert 90 * MIB < limits[1] < 92 * MIB and limits[0] > 60 * MIB
    assert decide_limits(160 * MIB, 0, [observed(60, 3.0), observed(100, 0.0)]) is None


def test_no_limit_exceeds_the_limit_before_the_agent() -> None:
    limits = fair_limits(1000 * MIB, [observed(80, 0.1, max_limit=90 * MIB), observed(None)])
    assert limits[0] == 90 * MIB and limits[1] > 105 * MIB


def test_limits_beyond_the_memory_are_lowered() -> None:
    limits = decide_limits(100 * MIB, 2**40, [observed(80), observed(80)])
    assert limits is not None and sum(limits) <= 100 * MIB


@pytest.mark.parametrize("memory", [0, 1, 4096, 5 * MIB])
def test_insufficient_memory_is_shared(memory: int) -> None:
    limits = decide_limits(memory, 2**40, [observed(None), observed(None, total=300)])
    assert limits is not None and sum(limits) <= memory


def test_unused_memory_goes_to_a_workload_that_can_use_it() -> None:
    idle, squeezed = observed(150, total=50), observed(60, 0.2)
    limits = decide_limits(210 * MIB, 2**40, [idle, squeezed])
    assert limits is not None and limits[0] >= 50 * MIB and limits[1] >= 100 * MIB


def test_no_workloads_means_no_limits() -> None:
    assert decide_limits(100, 100, []) is None
