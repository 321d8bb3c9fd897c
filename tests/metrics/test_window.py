import numpy as np
import pytest

from poolwise.errors import InputError
from poolwise.metrics import Window, common_population, paper_population
from poolwise.metrics.window import after_warm_up
from poolwise.quantities import SECOND

NEVER = float("nan")


def test_window_and_population_match_a_hand_computation(example):
    assert Window.of(example, 2) == Window(20 * SECOND, 144 * SECOND)  # the second job starts at 20, the last at 144
    assert Window.of(example, 2).length_s == 124
    assert Window.whole(example) == Window(0, 194 * SECOND)
    # the third job ends at 144, as the last one starts; the fourth ends after it
    np.testing.assert_array_equal(paper_population(example, 2), [False, False, True, False, False, False])
    np.testing.assert_array_equal(common_population([example], 2), [False, False, True, True, False, False])


def test_last_warm_up_job_is_the_one_that_starts_last(outcomes_of):
    run = outcomes_of([(0, 30, 50, 20, 1, 0), (1, 5, 9, 4, 1, 0), (2, 40, 45, 5, 1, 0), (3, 35, 60, 25, 1, 0)])
    assert Window.of(run, 2) == Window(30 * SECOND, 40 * SECOND)  # the window ends with the last start, that of an earlier job


def test_rejected_jobs_count_as_warm_up(outcomes_of):
    run = outcomes_of([(0, None, None, 9, 9, 0), (1, 5, 9, 4, 1, 0), (2, 8, 9, 1, 1, 0)])
    np.testing.assert_array_equal(after_warm_up(run, 2), [False, False, True])
    assert Window.of(run, 2).begin == 5 * SECOND


def test_degenerate_runs_have_empty_windows(outcomes_of):
    empty = outcomes_of([])
    idle = outcomes_of([(7, NEVER, NEVER, 9, 9, 0)])
    for run in (empty, idle):
        for window in (Window.of(run, 0), Window.of(run, 5), Window.whole(run)):
            assert window.length_s == 0
        assert not paper_population(run, 0).any()
    everyone_warms_up = outcomes_of([(0, 0, 5, 5, 1, 0), (0, 9, 12, 3, 1, 0)])
    assert Window.of(everyone_warms_up, 10).length_s == 0


def test_common_population_excludes_jobs_unfinished_in_any_run(outcomes_of):
    first = outcomes_of([(0, 0, 5, 5, 1, 0), (1, 5, 9, 4, 1, 0), (2, None, None, 1, 1, 0), (3, 9, 10, 1, 1, 0)])
    second = outcomes_of([(0, 0, 5, 5, 1, 0), (1, NEVER, NEVER, 4, 1, 0), (2, 9, 10, 1, 1, 0), (3, 9, 10, 1, 1, 0)])
    np.testing.assert_array_equal(common_population([first, second], 0), [True, False, False, True])
    np.testing.assert_array_equal(common_population([first, second], 1), [False, False, False, True])


def test_runs_of_different_jobs_are_rejected(outcomes_of):
    first, other = outcomes_of([(0, 0, 5, 5, 1, 0)]), outcomes_of([(1, 1, 5, 4, 1, 0)])
    with pytest.raises(InputError, match="different jobs"):
        common_population([first, other], 0)
    with pytest.raises(InputError, match="no runs"):
        common_population([], 0)
