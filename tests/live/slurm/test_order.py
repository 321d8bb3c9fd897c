"""Tests of the priorities that order mode writes: decreasing, with as few changes as possible."""

from itertools import pairwise

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from poolwise.live.slurm.order_mode import HIGHEST, LOWEST, priorities

VALUES = st.one_of(st.integers(0, 20), st.integers(LOWEST - 2, LOWEST + 12), st.integers(LOWEST, HIGHEST))


def longest_decreasing(now: list[int]) -> int:
    """Return the length of a longest strictly decreasing subsequence within the bounds, by brute force."""
    best = [0] * len(now)
    for k, value in enumerate(now):
        if LOWEST < value < HIGHEST:
            best[k] = 1 + max((best[i] for i in range(k) if now[i] > value), default=0)
    return max(best, default=0)


@settings(max_examples=60, deadline=None)
@given(st.lists(VALUES, max_size=20))
def test_priorities_decrease_and_few_change(now: list[int]) -> None:
    computed = priorities(now)
    assert all(a > b for a, b in pairwise(computed)) and all(LOWEST < value < HIGHEST for value in computed)
    same = sum(a == b for a, b in zip(now, computed, strict=True))
    apart = all(
        a - b > 64 for a, b in pairwise([HIGHEST, *sorted((v for v in now if LOWEST < v < HIGHEST), reverse=True), LOWEST])
    )
    if apart:
        assert same == longest_decreasing(now)
    assert priorities(computed) == computed, "decreasing priorities are unchanged"


def test_moving_one_of_many_jobs_changes_one_priority() -> None:
    now = priorities([0] * 1000)
    moved = [now[700], *now[:700], *now[701:]]
    assert sum(a != b for a, b in zip(moved, priorities(moved), strict=True)) == 1
    assert len(set(np.diff(now).tolist())) <= 2, "priorities are evenly spaced"
