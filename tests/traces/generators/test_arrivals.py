import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from poolwise.traces.generators.arrivals import BUCKETS, DAY_S, DailyCycle, poisson

WEIGHTS = st.lists(st.floats(0.01, 100.0), min_size=BUCKETS, max_size=BUCKETS).map(np.array)
POINTS = st.lists(st.floats(0.0, 30 * DAY_S), min_size=1, max_size=30).map(lambda values: np.array(sorted(values)))


@given(WEIGHTS, POINTS)
@settings(max_examples=60, deadline=None)
def test_time_conversions_are_inverse_and_monotonic(weights, points):
    cycle = DailyCycle(weights)
    times = cycle.to_time(points)
    assert cycle.to_operational(times) == pytest.approx(points, abs=1e-3)
    assert (np.diff(times) >= 0).all()


@given(WEIGHTS, st.integers(0, 1000))
@settings(max_examples=30, deadline=None)
def test_whole_days_are_unchanged(weights, day):
    assert DailyCycle(weights).to_time(np.array([day * DAY_S])) == pytest.approx([day * DAY_S], abs=1e-6)


@given(WEIGHTS)
@settings(max_examples=30, deadline=None)
def test_each_bucket_gets_its_share_of_uniform_points(weights):
    points = np.linspace(0.0, DAY_S, 20_000, endpoint=False)
    counts = np.bincount((DailyCycle(weights).to_time(points) // (DAY_S / BUCKETS)).astype(int), minlength=BUCKETS)
    assert counts[:BUCKETS] / 20_000 == pytest.approx(weights / weights.sum(), abs=2 / 20_000)


def test_zero_amplitude_is_identity_and_full_amplitude_empties_the_night():
    points = np.linspace(0.0, 3 * DAY_S, 10_000)
    assert DailyCycle.wave(0.0, 14.0).to_time(points) == pytest.approx(points)
    hours = (DailyCycle.wave(1.0, 14.0).to_time(points) % DAY_S) // 3600
    counts = np.bincount(hours.astype(int), minlength=24)
    assert int(counts.argmax()) in (13, 14)
    assert counts[1:3].max() < counts.max() / 20


@given(st.floats(1.0, 40 * DAY_S), WEIGHTS)
@settings(max_examples=30, deadline=None)
def test_last_job_arrives_at_the_requested_time(last, weights):
    arrivals = DailyCycle(weights).arrivals(np.array([0.0, 5.0, 70.0]), last)
    assert arrivals[0] == 0
    assert arrivals[-1] == pytest.approx(last, abs=0.51)


@pytest.mark.parametrize("jobs", [0, 1])
def test_short_sequences_are_not_stretched(jobs):
    assert DailyCycle.wave(0.5, 14.0).arrivals(np.zeros(jobs), 100.0).tolist() == [0] * jobs


@pytest.mark.parametrize("seed", range(3))
def test_poisson_gaps_are_exponential(seed):
    gaps = np.diff(poisson(seed, "here", np.arange(50_000)))
    assert gaps.mean() == pytest.approx(1.0, abs=0.02)
    assert gaps.std() == pytest.approx(1.0, abs=0.03)
    assert (gaps < np.log(2)).mean() == pytest.approx(0.5, abs=0.01)
    assert abs(np.corrcoef(gaps[1:], gaps[:-1])[0, 1]) < 0.02
