import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from poolwise.metrics.intervals import mean_interval, paired_block_bootstrap, student_t
from poolwise.random import uniform


@pytest.mark.parametrize(
    ("level", "freedom", "quantile"),
    [  # published tables
        (0.95, 1, 12.706), (0.95, 2, 4.303), (0.95, 3, 3.182), (0.95, 4, 2.776), (0.95, 10, 2.228), (0.95, 29, 2.045),
        (0.99, 1, 63.657), (0.99, 7, 3.499), (0.99, 30, 2.750), (0.90, 5, 2.015), (0.95, 120, 1.980), (0.95, 1000, 1.962),
    ],
)  # fmt: skip
def test_quantiles_of_student_t_match_tables(level, freedom, quantile):
    assert student_t(level, freedom) == pytest.approx(quantile, abs=5.1e-4)


def test_mean_interval_matches_a_hand_computation():
    interval = mean_interval([1.0, 2.0, 3.0, 4.0, 5.0])  # s = sqrt(2.5), t(4) = 2.776
    half = 2.776445 * math.sqrt(2.5) / math.sqrt(5)
    assert (interval.mean, interval.low, interval.high) == pytest.approx((3, 3 - half, 3 + half), rel=1e-6)
    assert (interval.level, interval.n) == (0.95, 5)


def test_too_few_values_have_no_bounds():
    for interval in (mean_interval, paired_block_bootstrap):
        assert math.isnan(interval([]).mean)
        alone = interval([3.0])
        assert alone.mean == 3 and math.isnan(alone.low) and math.isnan(alone.high)


def test_invalid_arguments_are_rejected():
    for level in (0, 1, 95):
        with pytest.raises(ValueError, match="level"):
            mean_interval([1.0, 2.0], level)
    with pytest.raises(ValueError, match="blocks"):
        paired_block_bootstrap([1.0, 2.0], blocks=1)


@given(st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=80), st.integers(2, 40), st.floats(-1e3, 1e3))
def test_bootstrap_is_deterministic_and_shift_equivariant(values, blocks, shift):
    series = np.array(values)
    interval = paired_block_bootstrap(series, blocks, draws=100, seed=4)
    assert interval == paired_block_bootstrap(series, blocks, draws=100, seed=4)
    assert interval.low <= interval.high
    assert series.min() - 1e-6 <= interval.low and interval.high <= series.max() + 1e-6
    moved = paired_block_bootstrap(series + shift, blocks, draws=100, seed=4)
    assert (moved.low, moved.high) == pytest.approx((interval.low + shift, interval.high + shift), rel=1e-6, abs=1e-3)


@given(st.lists(st.floats(-100, 100), min_size=3, max_size=40), st.integers(2, 12))
def test_samples_are_blocks_of_the_circular_series(values, blocks):
    series = np.array(values) - np.mean(values)
    n, length = len(series), math.ceil(len(series) / blocks)
    count = math.ceil(n / length)
    wanted = []
    for draw in range(20):
        starts = [int(u * n) for u in uniform(7, "block_bootstrap", draw, np.arange(count))]
        rows = [(start + k) % n for start in starts for k in range(length)]
        wanted.append(series[rows[:n]].mean())
    interval = paired_block_bootstrap(series, blocks, draws=20, seed=7, level=0.5)
    tail = 0.5 * math.erfc(math.sqrt(count / (count - 1)) * student_t(0.5, count - 1) / math.sqrt(2))
    assert (interval.low, interval.high) == pytest.approx(np.quantile(wanted, [tail, 1 - tail]), abs=1e-9)


def test_blocks_as_long_as_the_trend_widen_the_interval():
    series = np.repeat([-1.0, 1.0] * 10, 60)  # blocks of 60 equal jobs
    apart = paired_block_bootstrap(series, blocks=1200)
    together = paired_block_bootstrap(series, blocks=20)
    assert together.high - together.low > 3 * (apart.high - apart.low)


def _autoregressive(phi: float, n: int, many: int) -> np.ndarray:
    """Return (many, n) stationary series x_i = phi x_{i-1} + e_i with mean 0."""
    noise = np.random.default_rng(20).normal(size=(many, n))
    series = noise / math.sqrt(1 - phi**2)
    for i in range(1, n):
        series[:, i] = phi * series[:, i - 1] + noise[:, i]
    return series


@pytest.mark.parametrize(("phi", "least"), [(0.0, 0.895), (0.5, 0.885), (0.9, 0.86)])
def test_coverage_under_autocorrelation(phi, least):
    # 250 series: the standard error of the coverage is 1.4 %; blocks of 50 miss part of the correlation at phi = 0.9
    series = _autoregressive(phi, 1500, 250)
    intervals = [paired_block_bootstrap(row, draws=400, seed=k) for k, row in enumerate(series)]
    assert least <= np.mean([f.low <= 0 <= f.high for f in intervals]) <= 0.99
    if phi == 0.9:  # without blocks, the coverage is lower, which shows that this test is sensitive
        assert np.mean([i.low <= 0 <= i.high for i in map(mean_interval, series)]) < 0.6
