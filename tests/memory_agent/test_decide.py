"""The decision alone: sums, fairness, rest, swap; on workloads whose true curves it has to find out."""

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from poolwise.live.memory_agent.allocation import ObservedWorkload, decide_limits, fair_limits
from poolwise.live.memory_agent.curve import MIB, SlowdownCurve
from poolwise.performance.profiles import find_profile
from tests.helpers.pretended_workloads import PretendedWorkload, play, pretended

LOOKS = 150
"""Looks after which limits rest, in any of the cases tried."""
several = st.lists(pretended, min_size=1, max_size=6)
shares = st.floats(0.3, 1.3)


def play_to_rest(workloads: Sequence[PretendedWorkload], share: float) -> None:
    """Play until limits must rest, see that they do, and that nobody who alone is beyond its tolerance could still be helped.

    What others could give, but for what is not told apart, is less than what it lacks.
    """
    memory = int(share * sum(one.total for one in workloads))
    play(memory, workloads, LOOKS)
    assert play(memory, workloads, 20, start=LOOKS) == []
    assert sum(one.limit or 0 for one in workloads) <= memory
    beyond = [one for one in workloads if not one.within(one.local)]
    if len(beyond) > 1:
        return  # what one of them gets another may lack
    others = [one for one in workloads if one.within(one.local)]
    could_give = sum(max(0, one.local - max(one.need + 3 * one.known.step, one.total // 4)) for one in others)
    lacking = sum(one.need + 3 * one.known.step - one.local for one in beyond)
    assert not beyond or could_give < lacking


@settings(max_examples=6, deadline=None)
@given(several, shares)
def test_limits_rest_and_nobody_alone_is_beyond_its_tolerance_while_others_could_give(
    workloads: list[PretendedWorkload], share: float
) -> None:
    play_to_rest(workloads, share)


@pytest.mark.long
@settings(max_examples=300, deadline=None)
@given(several, shares)
def test_many_more_of_them_rest(workloads: list[PretendedWorkload], share: float) -> None:
    play_to_rest(workloads, share)


def test_everything_is_local_where_it_fits() -> None:
    workloads = [PretendedWorkload(100 * MIB, 0.0, ((0.0, 9.0),)), PretendedWorkload(50 * MIB, 1.0, ((0.0, 9.0),))]
    assert play(200 * MIB, workloads, 20) == [0]
    assert [one.limit // MIB for one in workloads] == [125, 74]


def test_who_streams_through_its_memory_gets_all_and_who_does_not_gives() -> None:
    streams = PretendedWorkload(100 * MIB, 0.25, ((0.0, 7.0), (0.97, 7.0)))
    rests = PretendedWorkload(100 * MIB, 0.25, ((0.0, 3.0), (0.3, 0.0)))
    moved = play(150 * MIB, [streams, rests], 40)
    assert streams.local == streams.total and rests.within(rests.local)
    assert len(moved) <= 6


def test_a_profile_tells_at_once_what_must_be_found_out_without() -> None:
    knows = PretendedWorkload(200 * MIB, 0.25, ((0.0, 9.0), (0.5, 0.0)))
    streams = PretendedWorkload(100 * MIB, 0.1, ((0.0, 7.0), (0.97, 7.0)))
    knows.known = SlowdownCurve(knows.total, (), find_profile("kmeans"))
    assert play(280 * MIB, [knows, streams], 20) == [0]
    assert streams.local == streams.total and knows.within(knows.local)


def test_who_is_unknown_gives_once_another_is_beyond_its_tolerance() -> None:
    beyond, unknown = observed(60, 3.0), observed(None)
    known_limit = replace(unknown, limit=100 * MIB)
    assert known_limit.curve.unknown
    limits = decide_limits(160 * MIB, 2**40, [beyond, known_limit])
    assert limits is not None and limits[0] > 60 * MIB and limits[1] < 100 * MIB


def test_another_phase_takes_memory_from_those_who_can_give() -> None:
    one = PretendedWorkload(100 * MIB, 0.25, ((0.0, 3.0), (0.3, 0.0)))
    two = PretendedWorkload(100 * MIB, 0.25, ((0.0, 3.0), (0.6, 0.0)))
    play(120 * MIB, [one, two], 30)
    assert all(each.within(each.local) for each in (one, two))
    one.knots, two.knots = ((0.0, 3.0), (0.7, 0.0)), ((0.0, 3.0), (0.3, 0.0))
    moved = play(120 * MIB, [one, two], 30, start=30)
    assert all(each.within(each.local) for each in (one, two)) and len(moved) <= 8


def test_a_violation_that_cannot_be_helped_does_not_keep_memory_moving() -> None:
    workloads = [PretendedWorkload(100 * MIB, 0.1, ((0.0, 7.0), (0.97, 7.0))) for _ in range(3)]
    assert len(play(150 * MIB, workloads, 60)) < 15
    assert play(150 * MIB, workloads, 30, start=60) == []


def test_steps_of_workloads_of_different_sizes_do_not_alternate() -> None:
    large, small = PretendedWorkload(1462 * MIB, 1.0, ((0.22, 7.13),)), PretendedWorkload(261 * MIB, 3.0, ((0.22, 0.0),))
    play(982 * MIB, [large, small], 100)
    assert play(982 * MIB, [large, small], 20, start=100) == []


def observed(limit: int | None, slowdown: float = 0.0, total: int = 100, **others: int) -> ObservedWorkload:
    held = total if limit is None else min(limit, total)
    curve = SlowdownCurve(total * MIB).learn(0.0, held * MIB, slowdown)
    return ObservedWorkload(curve, 0.25, held * MIB, None if limit is None else limit * MIB, slowdown, **others)


def test_limits_stay_where_all_are_within_their_tolerances() -> None:
    assert decide_limits(160 * MIB, 2**40, [observed(80, 0.24), observed(80, 0.01)]) is None


def test_moves_go_as_far_as_swap_reaches() -> None:
    limits = decide_limits(160 * MIB, 10 * MIB, [observed(60, 3.0), observed(100, 0.0)])
    assert limits is not None and sum(limits) <= 160 * MIB
    assert 90 * MIB < limits[1] < 92 * MIB and limits[0] > 60 * MIB
    assert decide_limits(160 * MIB, 0, [observed(60, 3.0), observed(100, 0.0)]) is None


def test_no_limit_exceeds_what_there_was_before() -> None:
    limits = fair_limits(1000 * MIB, [observed(80, 0.1, most=90 * MIB), observed(None)])
    assert limits[0] == 90 * MIB and limits[1] > 105 * MIB


def test_too_much_that_is_given_out_is_taken_back() -> None:
    limits = decide_limits(100 * MIB, 2**40, [observed(80), observed(80)])
    assert limits is not None and sum(limits) <= 100 * MIB


@pytest.mark.parametrize("memory", [0, 1, 4096, 5 * MIB])
def test_too_little_for_anybody_is_shared(memory: int) -> None:
    limits = decide_limits(memory, 2**40, [observed(None), observed(None, total=300)])
    assert limits is not None and sum(limits) <= memory


def test_memory_that_nobody_holds_goes_to_who_can_use_it_and_costs_nobody() -> None:
    idle, squeezed = observed(150, total=50), observed(60, 0.2)
    limits = decide_limits(210 * MIB, 2**40, [idle, squeezed])
    assert limits is not None and limits[0] >= 50 * MIB and limits[1] >= 100 * MIB


def test_nobody_means_nothing() -> None:
    assert decide_limits(100, 100, []) is None
