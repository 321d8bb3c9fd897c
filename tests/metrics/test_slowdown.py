import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from poolwise.metrics.slowdown import bounded_slowdown, bounded_slowdown_local, runtime_s, spread, wait_s


def test_slowdowns_match_a_hand_computation(example):
    nan = np.nan
    np.testing.assert_array_equal(wait_s(example), [0, 10, 120, 114, nan, nan])
    np.testing.assert_array_equal(runtime_s(example), [100, 120, 4, 50, nan, nan])
    # max((w + d) / max(d, 10), 1): 100/100, 130/120, 124/10, 164/50
    np.testing.assert_allclose(bounded_slowdown(example), [1, 13 / 12, 12.4, 3.28, nan, nan], rtol=1e-15)
    # the second job over its 100 s with local memory: 130/100
    np.testing.assert_allclose(bounded_slowdown_local(example), [1, 1.3, 12.4, 3.28, nan, nan], rtol=1e-15)


def test_tau_bounds_short_jobs_only(example):
    np.testing.assert_allclose(bounded_slowdown(example, tau_s=1)[:4], [1, 13 / 12, 31, 3.28], rtol=1e-15)
    np.testing.assert_allclose(bounded_slowdown(example, tau_s=1000)[:4], 1)


def test_spread_matches_a_hand_computation():
    # eleven equally spaced values, on which the percentiles fall
    assert spread(np.arange(11.0)[::-1]) == pytest.approx({"mean": 5, "median": 5, "p90": 9, "p99": 9.9})
    assert all(np.isnan(v) for v in spread(np.zeros(0)).values())


seconds = st.integers(0, 10**6)


@given(st.lists(st.tuples(seconds, seconds, st.integers(1, 10**5), st.integers(1, 10**5)), min_size=1), st.floats(0.1, 1e4))
def test_slowdown_is_at_least_one_and_local_variant_is_not_lower(outcomes_of, jobs, tau):
    jobs.sort()
    run = outcomes_of([(s, s + w, s + w + r + extra, r, 1, 0) for s, w, r, extra in jobs])
    slowdown, local = bounded_slowdown(run, tau), bounded_slowdown_local(run, tau)
    assert (slowdown >= 1).all()
    assert (local >= slowdown).all()  # no job ran faster than its duration
    assert (bounded_slowdown(run, tau * 2) <= slowdown).all()
