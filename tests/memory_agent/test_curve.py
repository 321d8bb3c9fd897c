"""What is known of a workload's slowdown: what is tried next, and what another phase makes of it."""

from dataclasses import replace

import pytest

from poolwise.live.memory_agent.allocation import ObservedWorkload, decide_limits
from poolwise.live.memory_agent.curve import MIB, STEEP, SlowdownCurve

TOTAL = 100 * MIB


def seen(*points: tuple[int, float], total: int = TOTAL) -> SlowdownCurve:
    """A curve of which that was seen: (MiB, slowdown)."""
    curve = SlowdownCurve(total)
    for local, slowdown in points:
        curve = curve.learn(0.0, local * MIB, slowdown)
    return curve


def test_half_of_the_way_to_what_is_too_little_is_tried_where_a_line_would_say_next_to_nothing() -> None:
    cliff = seen((20, 1000.0), (80, 0.2))
    assert cliff.needed(0.25) == 50 * MIB
    slope = seen((20, 1.0), (80, 0.2))
    assert slope.needed(0.8) == 35 * MIB  # nearer than half of the way a line is believed


def test_what_is_tried_is_a_step_from_what_is_too_little_and_rest_is_nearer_than_a_step() -> None:
    assert seen((77, 1000.0), (80, 0.2)).needed(0.25) == 80 * MIB
    assert seen((74, 1000.0), (80, 0.2)).needed(0.25) == 77 * MIB


def test_a_contradiction_is_passed_over_once_and_then_it_is_another_phase_of_which_nothing_else_is_known() -> None:
    first = seen((40, 2.0), (60, 0.5), (80, 0.1))
    once = first.learn(1.0, 60 * MIB, 4.0)
    assert once == replace(first, doubted=True)
    twice = once.learn(2.0, 60 * MIB, 4.0)
    assert twice.phase == 1 and [(point.local // MIB, point.slowdown) for point in twice.seen] == [(60, 4.0)]
    agreed = once.learn(2.0, 60 * MIB, 0.5)
    assert agreed.phase == 0 and len(agreed.seen) == 3 and not agreed.doubted


def test_much_more_or_less_memory_is_another_phase_and_a_little_is_not() -> None:
    first = seen((40, 2.0), (80, 0.1))
    for total in (TOTAL + TOTAL // 8, TOTAL - TOTAL // 8):
        after = first.of_total(total)
        assert (after.total, after.phase, after.seen) == (total, 1, ())
        assert after.at(total // 2) == pytest.approx(STEEP / 2)
    assert first.of_total(TOTAL + TOTAL // 20).seen == first.seen


def test_who_is_unknown_is_tried_although_the_worst_violation_stays() -> None:
    """The first is beyond help: it would need 95 MiB, and the second keeps 90. A little more is believed to cost nobody."""
    hopeless = ObservedWorkload(seen((40, 7.0), (95, 7.0)), 0.25, 40 * MIB, 40 * MIB, 7.0)
    unknown = ObservedWorkload(SlowdownCurve(TOTAL), 0.25, TOTAL, TOTAL, 0.0, least_share=0.9)
    limits = decide_limits(140 * MIB, 2**40, [hopeless, unknown])
    assert limits is not None
    assert limits[0] >= 42 * MIB and 90 * MIB <= limits[1] < 100 * MIB
