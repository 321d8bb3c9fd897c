import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from poolwise.errors import InputError
from poolwise.metrics.fairness import (
    benefit,
    discrimination,
    extreme_discrimination,
    extreme_marginal_discrimination,
    marginal_discrimination,
    waiting_benefit_s,
)


@pytest.fixture(scope="module")
def baseline(outcomes_of):
    return outcomes_of(
        [
            (0, 0, 100, 100, 2, 50),  # waits 0 s under both
            (10, 40, 140, 100, 2, 150),  # 30 s, example 10 s: gains 20 s
            (20, 80, 84, 4, 4, 0),  # 60 s, example 120 s: loses 60 s
            (30, 134, 184, 50, 1, 100),  # 104 s, example 114 s: loses 10 s
            (40, 50, 110, 60, 9, 0),
            (50, None, None, 10, 1, 0),
        ]
    )


def test_fairness_matches_a_hand_computation(example, baseline):
    b = waiting_benefit_s(example, baseline)
    np.testing.assert_array_equal(b, [0, 20, -60, -10, np.nan, np.nan])
    b = b[:4]
    assert (benefit(b), discrimination(b), marginal_discrimination(b)) == (20, 70, 50)
    # a quarter of four jobs is one: the one that loses 60, and the one that gains 20
    assert (extreme_discrimination(b, 25), extreme_marginal_discrimination(b, 25)) == (60, 40)
    assert (extreme_discrimination(b, 50), extreme_marginal_discrimination(b, 50)) == (70, 50)
    # a tenth is rounded up to one
    assert (extreme_discrimination(b, 10), extreme_marginal_discrimination(b, 10)) == (60, 40)


def test_extreme_shares_count_all_jobs():
    b = np.array([-5.0, -3.0, *[1.0] * 18])
    assert extreme_discrimination(b, 5) == 5  # one job of twenty
    assert extreme_discrimination(b, 20) == 8  # four, of which two lose
    assert extreme_marginal_discrimination(b, 20) == 8 - 4


def test_runs_of_different_jobs_are_rejected(example, outcomes_of):
    with pytest.raises(InputError, match="different jobs"):
        waiting_benefit_s(example, outcomes_of([(0, 0, 1, 1, 1, 0)]))


def test_invalid_percent_is_rejected():
    for percent in (0, -1, 101):
        with pytest.raises(ValueError, match="percent"):
            extreme_discrimination(np.array([-1.0]), percent)


@given(arrays(np.float64, st.integers(0, 40), elements=st.integers(-(10**6), 10**6)), st.floats(0.01, 100), st.randoms())
def test_fairness_invariants(b, percent, random):
    gain, loss = benefit(b), discrimination(b)
    assert gain >= 0 and loss >= 0
    assert marginal_discrimination(b) == loss - gain == -b.sum()
    assert 0 <= extreme_discrimination(b, percent) <= loss == extreme_discrimination(b, 100)
    assert extreme_marginal_discrimination(b, 100) == marginal_discrimination(b)
    assert benefit(-b) == loss
    shuffled = b.tolist()
    random.shuffle(shuffled)
    shuffled = np.array(shuffled, dtype=np.float64)
    assert extreme_marginal_discrimination(shuffled, percent) == extreme_marginal_discrimination(b, percent)
    # no other set of the same number of jobs loses more
    k = max(1, int(np.ceil(len(b) * percent / 100)))
    assert discrimination(shuffled[:k]) <= extreme_discrimination(b, percent)
