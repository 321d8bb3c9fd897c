"""Priorities that make an order, with as few changes as can be."""

from itertools import pairwise

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from poolwise.live.slurm.order_mode import HIGHEST, LOWEST, priorities

VALUES = st.one_of(st.integers(0, 20), st.integers(LOWEST - 2, LOWEST + 12), st.integers(LOWEST, HIGHEST))


def most_that_fall(now: list[int]) -> int:
    """Length of a longest strictly falling sequence within the bounds, the slow way."""
    best = [0] * len(now)
    for k, value in enumerate(now):
        if LOWEST < value < HIGHEST:
            best[k] = 1 + max((best[i] for i in range(k) if now[i] > value), default=0)
    return max(best, default=0)


@settings(max_examples=60, deadline=None)
@given(st.lists(VALUES, max_size=20))
def test_they_fall_and_few_are_changed(now: list[int]) -> None:
    found = priorities(now)
    assert all(a > b for a, b in pairwise(found)) and all(LOWEST < value < HIGHEST for value in found)
    same = sum(a == b for a, b in zip(now, found, strict=True))
    apart = all(
        a - b > 64 for a, b in pairwise([HIGHEST, *sorted((v for v in now if LOWEST < v < HIGHEST), reverse=True), LOWEST])
    )
    if apart:
        assert same == most_that_fall(now)
    assert priorities(found) == found, "an order that holds is left alone"


def test_one_job_moved_among_many_is_one_change() -> None:
    now = priorities([0] * 1000)
    moved = [now[700], *now[:700], *now[701:]]
    assert sum(a != b for a, b in zip(moved, priorities(moved), strict=True)) == 1
    assert len(set(np.diff(now).tolist())) <= 2, "they are spread evenly"
