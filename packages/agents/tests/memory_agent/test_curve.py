"""Tests of the slowdown curve: exploration steps and phase changes."""

from dataclasses import replace

import pytest

from poolwise_agents.memory_agent.allocation import ObservedWorkload, decide_limits
from poolwise_agents.memory_agent.curve import DEFAULT_SLOPE, MIB, SlowdownCurve

TOTAL = 100 * MIB


def curve_of(*points: tuple[int, float], total: int = TOTAL) -> SlowdownCurve:
    """Return a curve with samples (MiB, slowdown)."""
    curve = SlowdownCurve(total)
    for local, slowdown in points:
        curve = curve.add_sample(0.0, local * MIB, slowdown)
    return curve


def test_exploration_goes_at_most_half_way_to_an_insufficient_sample() -> None:
    cliff = curve_of((20, 1000.0), (80, 0.2))
    assert cliff.needed(0.25) == 50 * MIB
    slope = curve_of((20, 1.0), (80, 0.2))
    assert slope.needed(0.8) == 35 * MIB  # interpolation applies closer to the insufficient sample


def test_exploration_keeps_one_step_away_from_an_insufficient_sample() -> None:
    assert curve_of((77, 1000.0), (80, 0.2)).needed(0.25) == 80 * MIB
    assert curve_of((74, 1000.0), (80, 0.2)).needed(0.25) == 77 * MIB


def test_second_contradiction_starts_a_new_phase_without_samples() -> None:
    first = curve_of((40, 2.0), (60, 0.5), (80, 0.1))
    once = first.add_sample(1.0, 60 * MIB, 4.0)
    assert once == replace(first, contradicted=True)
    twice = once.add_sample(2.0, 60 * MIB, 4.0)
    assert twice.phase == 1 and [(point.local // MIB, point.slowdown) for point in twice.samples] == [(60, 4.0)]
    agreed = once.add_sample(2.0, 60 * MIB, 0.5)
    assert agreed.phase == 0 and len(agreed.samples) == 3 and not agreed.contradicted


def test_only_a_large_change_of_the_total_starts_a_new_phase() -> None:
    first = curve_of((40, 2.0), (80, 0.1))
    for total in (TOTAL + TOTAL // 8, TOTAL - TOTAL // 8):
        after = first.with_total(total)
        assert (after.total, after.phase, after.samples) == (total, 1, ())
        assert after.at(total // 2) == pytest.approx(DEFAULT_SLOPE / 2)
    assert first.with_total(TOTAL + TOTAL // 20).samples == first.samples


def test_unknown_workload_is_explored_although_the_worst_violation_remains() -> None:
    """The first workload would need 95 MiB, but the second keeps 90; a little more is estimated to harm no workload."""
    hopeless = ObservedWorkload(curve_of((40, 7.0), (95, 7.0)), 0.25, 40 * MIB, 40 * MIB, 7.0)
    unknown = ObservedWorkload(SlowdownCurve(TOTAL), 0.25, TOTAL, TOTAL, 0.0, least_share=0.9)
    limits = decide_limits(140 * MIB, 2**40, [hopeless, unknown])
    assert limits is not None
    assert limits[0] >= 42 * MIB and 90 * MIB <= limits[1] < 100 * MIB
