import numpy as np
import pytest

from poolwise.metrics.throughput import makespan_s, overlap_s, throughput_per_100s, utilization
from poolwise.metrics.window import Window
from poolwise.quantities import SECOND

S = SECOND


def test_throughput_of_the_whole_run_matches_a_hand_computation(example):
    whole = Window.whole(example)
    assert throughput_per_100s(example, whole) == pytest.approx(400 / 194)
    # 2 x 100 + 2 x 120 + 4 x 4 + 1 x 50 node-seconds of 4 x 194
    assert utilization(example, whole) == pytest.approx(506 / 776)
    assert makespan_s(example) == 194


def test_throughput_inside_a_window_matches_a_hand_computation(example):
    window = Window(20 * S, 144 * S)
    assert throughput_per_100s(example, window) == pytest.approx(300 / 124)  # ends at 100, 140 and 144
    np.testing.assert_array_equal(overlap_s(example, window), [80, 120, 4, 0, 0, 0])
    assert utilization(example, window) == pytest.approx((160 + 240 + 16) / (4 * 124))


def test_adjacent_windows_count_each_end_once(example):
    first, second = Window(0, 100 * S), Window(100 * S, 194 * S)
    assert throughput_per_100s(example, first) == pytest.approx(1.0)  # the end at 100 belongs to the first
    assert throughput_per_100s(example, second) == pytest.approx(300 / 94)


def test_undefined_is_nan(example, outcomes_of):
    empty, point = outcomes_of([]), Window(5, 5)
    assert np.isnan(makespan_s(empty))
    for run, window in ((example, point), (empty, Window.whole(empty))):
        assert np.isnan(throughput_per_100s(run, window))
        assert np.isnan(utilization(run, window))
    shared = outcomes_of([(0, 0, 10, 10, 1, 0)], whole_nodes=False)
    assert np.isnan(utilization(shared, Window.whole(shared)))


def test_makespan_counts_from_the_first_submission(outcomes_of):
    assert makespan_s(outcomes_of([(7, None, None, 1, 9, 0), (10, 12, 20, 8, 1, 0)])) == 13
