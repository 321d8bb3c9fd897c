from statistics import NormalDist

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from poolwise.traces.generators.lublin import gamma_share
from poolwise.traces.generators.variates import Quantiles, exponential, gamma, normal, until_accepted

N = 20_000
JOBS = np.arange(N)
KOLMOGOROV = 1.95 / np.sqrt(N)  # distance that a correct sample exceeds once in a thousand


def distance(sample, share_below):
    """Return the Kolmogorov-Smirnov distance of a sample from a distribution function, at 400 points of the sample."""
    points = np.sort(sample)[:: len(sample) // 400]
    return max(abs(float((sample <= x).mean()) - share_below(float(x))) for x in points)


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_normal_variates_are_normal(seed):
    assert distance(normal(seed, "here", JOBS), NormalDist().cdf) < KOLMOGOROV


def test_exponential_variates_are_exponential():
    assert distance(exponential(4, "here", JOBS), lambda x: 1 - np.exp(-x)) < KOLMOGOROV


@pytest.mark.parametrize(("shape", "scale"), [(1.0, 2.0), (4.2, 0.94), (10.46, 0.4871), (312.0, 0.03)])
def test_gamma_variates_are_gamma(shape, scale):
    sample = gamma(5, "here", JOBS, shape, scale)
    assert distance(sample, lambda x: gamma_share(shape, x / scale)) < KOLMOGOROV
    assert sample.mean() == pytest.approx(shape * scale, rel=5 / np.sqrt(N * shape))


def test_small_gamma_shape_is_rejected():
    with pytest.raises(ValueError, match="at least 1"):
        gamma(0, "here", JOBS, 0.9, 1.0)


@given(st.integers(0, 2**63), st.lists(st.integers(0, 10**9), min_size=1, max_size=20, unique=True))
@settings(max_examples=30, deadline=None)
def test_variates_of_a_job_do_not_depend_on_other_jobs(seed, jobs):
    jobs = np.array(jobs)
    together = gamma(seed, "here", jobs, 4.2, 0.94)
    alone = [gamma(seed, "here", jobs[k : k + 1], 4.2, 0.94)[0] for k in range(len(jobs))]
    assert together.tolist() == alone


def test_streams_and_seeds_are_independent():
    drawn = [normal(seed, stream, JOBS) for seed in (0, 1) for stream in ("here", "there")]
    correlation = np.corrcoef(drawn)
    assert np.abs(correlation - np.eye(4)).max() < 5 / np.sqrt(N)


def test_rejected_rows_are_redrawn_with_the_next_attempt():
    drawn = until_accepted(3, lambda rows, count: (rows * 10.0 + count, rows <= count))
    assert drawn.tolist() == [0.0, 11.0, 22.0]


def test_quantiles_interpolate_points_and_are_constant_beyond():
    curve = Quantiles({0.1: 2.0, 0.5: 8.0, 0.9: 8.0, 0.99: 100.0})
    scores = np.array([-9.0, *(NormalDist().inv_cdf(share) for share in (0.1, 0.5, 0.7, 0.99)), 9.0])
    assert curve.at(scores) == pytest.approx([2.0, 2.0, 8.0, 8.0, 100.0, 100.0])


def test_values_between_two_points_are_lognormal():
    curve = Quantiles({0.001: np.exp(NormalDist(3, 2).inv_cdf(0.001)), 0.999: np.exp(NormalDist(3, 2).inv_cdf(0.999))})
    assert np.log(curve.at(np.array([-1.5, 0.0, 1.5]))) == pytest.approx([0.0, 3.0, 6.0])


@pytest.mark.parametrize("points", [{0.5: 1, 0.4: 2}, {0.4: 2, 0.5: 1}])
def test_quantiles_must_ascend(points):
    with pytest.raises(ValueError, match="ascend"):
        Quantiles(points)
