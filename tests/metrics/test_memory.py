import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from poolwise.metrics.memory import (
    Steps,
    degradation,
    degradation_histogram,
    memory_dollars,
    memory_utilization,
    share_remote,
    share_under_5pct,
    throughput_per_memory_dollar,
    throughput_per_memory_dollar_gain,
    utilization_histogram,
)
from poolwise.metrics.window import Window
from poolwise.quantities import SECOND


def test_utilization_matches_a_hand_computation(example):
    steps = memory_utilization(example, Window.whole(example))
    # MiB in use: 2 x 50; with 2 x 150; 2 x 150 alone; nothing; 1 x 100; of 4 x 100 + 200
    np.testing.assert_array_equal(steps.time // SECOND, [0, 20, 100, 140, 144, 194])
    np.testing.assert_array_equal(steps.value, np.array([100, 400, 300, 0, 100]) / 600)
    assert steps.mean() == pytest.approx((100 * 20 + 400 * 80 + 300 * 40 + 100 * 50) / (600 * 194))
    shares = utilization_histogram(steps)
    np.testing.assert_allclose(shares.share * 194, [4, 70, 0, 0, 0, 40, 80, 0, 0, 0], atol=1e-9)
    np.testing.assert_allclose(shares.edges, np.arange(11) / 10)


def test_utilization_inside_a_window(example):
    steps = memory_utilization(example, Window(90 * SECOND, 150 * SECOND))
    assert steps.mean() == pytest.approx((400 * 10 + 300 * 40 + 100 * 6) / (600 * 60))


def test_edges_fall_into_the_upper_bin_and_full_memory_into_the_last(outcomes_of):
    run = outcomes_of([(0, 0, 10, 10, 4, 150), (0, 10, 20, 10, 4, 45)])
    shares = utilization_histogram(memory_utilization(run, Window.whole(run)))
    np.testing.assert_array_equal(shares.share, [0, 0, 0, 0.5, 0, 0, 0, 0, 0, 0.5])  # 180/600 = 0.3 and 600/600 = 1


def test_degradation_matches_a_hand_computation(example):
    np.testing.assert_allclose(degradation(example), [0, 0.2, 0, 0, np.nan, np.nan], rtol=1e-15)
    everyone = np.ones(6, dtype=bool)
    histogram = degradation_histogram(example, everyone)
    np.testing.assert_allclose(histogram.edges, [0, 0.05, 0.1, 0.15, 0.2, 0.25])
    np.testing.assert_array_equal(histogram.share, [0.75, 0, 0, 0, 0.25])
    assert share_under_5pct(example, everyone) == 0.75
    assert share_remote(example, example.finished) == 0.25


def test_bins_include_their_lower_edges():
    value = np.arange(100) / 100  # 0.29 * 100 is 28.999999999999996
    shares = utilization_histogram(Steps(np.arange(101), value), bins=100)
    np.testing.assert_allclose(shares.share, 0.01)


@pytest.mark.parametrize("percent", [0, 5, 10, 15, 30, 35, 55, 115])
def test_degradation_at_an_edge_is_in_the_upper_bin(outcomes_of, percent):
    run = outcomes_of([(0, 0, 100 + percent, 100, 1, 0)])
    everyone = np.ones(1, dtype=bool)
    assert degradation_histogram(run, everyone).share.argmax() == percent // 5
    assert share_under_5pct(run, everyone) == (percent < 5)


def test_memory_dollars_match_a_hand_computation(example, outcomes_of):
    assert memory_dollars(example) == pytest.approx(600 / 1024 * 4.9)
    assert memory_dollars(example, dollars_per_gb=1024) == pytest.approx(600)
    window = Window.whole(example)
    assert throughput_per_memory_dollar(example, window) == pytest.approx((400 / 194) / (600 / 1024 * 4.9))
    big = outcomes_of([(0, 0, 100, 100, 1, 0)], node_memory=2400, pool_memory=0)  # 1 job per 100 s, four times the memory
    gain = throughput_per_memory_dollar_gain(example, window, big, Window.whole(big))
    assert gain == pytest.approx(400 / 194 * 4)


def test_undefined_is_nan(example, outcomes_of):
    no_jobs = np.zeros(6, dtype=bool)
    assert np.isnan(share_under_5pct(example, no_jobs)) and np.isnan(share_remote(example, no_jobs))
    assert not len(degradation_histogram(example, no_jobs).share)
    bare = outcomes_of([(0, 0, 10, 10, 1, 0)], node_memory=0, pool_memory=0)
    steps = memory_utilization(bare, Window.whole(bare))
    assert np.isnan(steps.mean()) and not len(utilization_histogram(steps).share)
    assert np.isnan(throughput_per_memory_dollar(bare, Window.whole(bare)))
    assert np.isnan(throughput_per_memory_dollar_gain(example, Window.whole(example), bare, Window.whole(bare)))


times = st.integers(0, 30)


@given(st.lists(st.tuples(times, times, st.integers(1, 20), st.integers(1, 4), st.integers(0, 99)), min_size=1), times, times)
def test_steps_match_sampling_every_second(outcomes_of, jobs, begin, length):
    jobs.sort()
    run = outcomes_of([(s, s + w, s + w + d, d, n, m) for s, w, d, n, m in jobs])
    steps = memory_utilization(run, Window(begin * SECOND, (begin + length) * SECOND))
    seen = [sum(n * m for s, w, d, n, m in jobs if s + w <= t < s + w + d) / 600 for t in range(begin, begin + length)]
    if not length:
        assert np.isnan(steps.mean())
        return
    assert steps.mean() == pytest.approx(np.mean(seen))
    assert utilization_histogram(steps).share.sum() == pytest.approx(1)
    at = np.searchsorted(steps.time, np.arange(begin, begin + length) * SECOND, side="right") - 1
    np.testing.assert_allclose(steps.value[at], seen)


@given(st.lists(st.tuples(st.integers(1, 1000), st.integers(-300, 3000)), min_size=1))
def test_degradation_bins_partition_the_jobs(outcomes_of, jobs):
    run = outcomes_of([(0, 0, max(d + more, 1), d, 1, 0) for d, more in jobs])
    histogram = degradation_histogram(run, run.finished)
    assert histogram.share.sum() == pytest.approx(1)
    assert len(histogram.edges) == len(histogram.share) + 1
    assert histogram.share[histogram.edges[:-1] < 0.05 - 1e-9].sum() == pytest.approx(share_under_5pct(run, run.finished))


@given(
    st.lists(st.tuples(st.integers(1, 10**12), st.floats(0, 1)), max_size=12),
    st.integers(1, 300),
    st.integers(-(10**12), 10**12),
)
def test_means_of_equal_parts_preserve_the_mean_and_the_ends(pieces, parts, begin):
    time = begin + np.cumsum([0, *(length for length, _ in pieces)])
    steps = Steps(time, np.array([value for _, value in pieces], dtype=np.float64))
    coarse = steps.means(parts)
    assert len(coarse.value) <= max(parts, 0) and len(coarse.value) == len(coarse.time) - 1
    assert (coarse.time[0], coarse.time[-1]) == (time[0], time[-1])
    assert coarse.mean() == pytest.approx(steps.mean(), nan_ok=True)


def test_means_match_a_hand_computation():
    steps = Steps(np.array([100, 140, 200]), np.array([0.5, 1.0]))
    coarse = steps.means(2)
    assert coarse.time.tolist() == [100, 150, 200]
    assert coarse.value == pytest.approx([(40 * 0.5 + 10 * 1.0) / 50, 1.0])
