"""Parts of a forecast, each compared with a naive implementation."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from poolwise.forecasting.backtest import brier, covered, pinball
from poolwise.forecasting.recalibration import LEVELS, Recalibration, chance_within, moved, sample_quantiles
from poolwise.forecasting.runtimes import JobFeatures, RuntimeModel, kaplan_meier, mean_of
from poolwise.forecasting.scenarios import draw_arrivals
from poolwise.quantities import DAY, HOUR, NEVER, SECOND


def naive_survival(times: list[int], over: list[bool], at: int) -> float:
    """Return the Kaplan-Meier product over the distinct end times."""
    alive = 1.0
    for end in sorted({t for t, done in zip(times, over, strict=True) if done and t <= at}):
        risk = sum(t >= end for t in times)
        ended = sum(t == end and done for t, done in zip(times, over, strict=True))
        alive *= 1 - ended / risk
    return alive


@settings(max_examples=200, deadline=None)
@given(st.lists(st.tuples(st.integers(1, 12), st.booleans()), min_size=1, max_size=30))
def test_kaplan_meier_matches_the_naive_product(seen: list[tuple[int, bool]]) -> None:
    times, over = [t for t, _ in seen], [done for _, done in seen]
    estimator = kaplan_meier(np.array(times, dtype=np.float64), np.array(over))
    for at in range(14):
        assert np.isclose(1 - estimator.mass[estimator.value <= at].sum(), naive_survival(times, over, at))
    assert np.isclose(estimator.beyond, naive_survival(times, over, 99))


def model_of(user: list[int], request: list[float], seen: list[float], over: list[bool]) -> tuple[RuntimeModel, JobFeatures]:
    features = JobFeatures(np.array(user), np.ones(len(user), dtype=np.int64), np.array(request))
    return RuntimeModel(features.classes(), np.array(seen, dtype=np.float64), np.array(over)), features


def test_own_jobs_of_a_user_weigh_most_and_others_fill_in() -> None:
    user = [1] * 30 + [2] * 30 + [1, 2, 3]
    seen = [100.0] * 30 + [1000.0] * 30 + [0.0] * 3
    model, _ = model_of(user, [3600.0] * 63, seen, [True] * 60 + [False] * 3)
    first, second, new = (mean_of(model.lifetimes(row, 3600.0)) for row in (60, 61, 62))
    assert 100 <= first < 150 and 900 < second <= 1000
    assert 500 < new < 600  # the third user is unknown: the jobs of all users count


def test_running_and_overrunning_jobs_last_longer_than_their_elapsed_time() -> None:
    seen = [100.0, 200.0, 300.0, 400.0, 250.0, 900.0]
    model, _ = model_of([1] * 6, [500.0] * 6, seen, [True] * 4 + [False] * 2)
    assert model.lifetimes(4, 500.0, 250.0).value.min() > 250
    overrun = model.lifetimes(5, 500.0, 900.0)  # beyond its request, and beyond all observed runtimes
    assert overrun.value.min() > 900 and np.isclose(overrun.mass.sum(), 1.0)


def test_running_jobs_lengthen_estimated_runtimes() -> None:
    estimate = model_of([1] * 6, [np.inf] * 6, [10.0] * 5 + [0.0], [True] * 5 + [False])[0].lifetimes(5, np.inf)
    more = model_of([1] * 8, [np.inf] * 8, [10.0] * 5 + [0.0, 5e3, 5e3], [True] * 5 + [False] * 3)[0].lifetimes(5, np.inf)
    assert estimate.beyond < 1e-9 < more.beyond


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 20))
def test_arrivals_are_copies_of_earlier_jobs_at_the_same_time_of_day(seed: int, days: int) -> None:
    g = np.random.default_rng(seed)
    now = days * DAY + int(g.integers(0, DAY))
    submit = np.sort(g.integers(0, now, 200))
    arrivals = draw_arrivals(submit, now, 3 * DAY, np.random.default_rng(seed + 1))
    assert len(arrivals.like) == len(arrivals.submit)
    if not len(arrivals.like):
        return
    assert arrivals.submit.min() > now and arrivals.submit.max() <= now + 3 * DAY
    assert (np.diff(arrivals.submit) >= 0).all() and arrivals.like.max() < len(submit)
    if now - int(submit[0]) >= 2 * DAY:
        assert ((arrivals.submit - submit[arrivals.like]) % DAY == 0).all()


def test_corrections_use_no_future_data() -> None:
    """A start after the present may be at any time: only the wait so far is known."""
    ours, g = Recalibration(2.0), np.random.default_rng(1)
    now, job = 100 * HOUR, np.arange(40)
    ours.remember(50 * HOUR, job, np.sort(g.integers(1, 80 * 3600, (40, len(LEVELS))).astype(np.float64), axis=1))
    start = 50 * HOUR + g.integers(1, 100 * HOUR, 40)
    later = np.where(start > now, start + g.integers(0, 900 * HOUR, 40), start)
    assert (later != start).any()
    assert np.array_equal(ours.moves(now, start), ours.moves(now, later))


def test_forecasts_that_were_too_short_are_lengthened() -> None:
    ours, job = Recalibration(0.01), np.arange(200)
    ours.remember(0, job, np.full((200, len(LEVELS)), 3600.0))
    truth = np.linspace(3600, 4 * 3600, 200)
    moves = ours.moves(100 * HOUR, (truth * SECOND).astype(np.int64))
    better = moved(np.full((1, len(LEVELS)), 3600.0), moves)[0]
    for level in (0.1, 0.5, 0.9):
        at = int(np.searchsorted(LEVELS, level))
        assert abs(better[at] / np.quantile(truth, level) - 1) < 0.06


def test_sample_quantiles_and_probabilities() -> None:
    starts = (np.arange(1, 1001) * SECOND)[:, None]
    quantiles = sample_quantiles(starts, 0)
    assert np.allclose(quantiles[0], 1 + LEVELS * 999)
    assert abs(chance_within(quantiles, 300.0)[0] - 0.3) < 0.01
    assert chance_within(quantiles, 0.5)[0] < 0.02 and chance_within(quantiles, 5000.0)[0] == 1.0
    never = sample_quantiles(np.where(starts > 600 * SECOND, NEVER, starts), 0)
    assert np.isinf(never[0, -1]) and np.isfinite(never[0, 5])


def test_scores_match_hand_computed_values() -> None:
    truth = np.array([10.0])
    assert pinball(np.array([[8.0]]), np.array([0.9]), truth)[0] == 1.8
    assert np.isclose(pinball(np.array([[12.0]]), np.array([0.9]), truth)[0], 0.2)
    assert brier(np.array([0.25]), np.array([True]))[0] == 0.5625
    assert covered(np.array([1.0, 1.0]), np.array([10.0, 9.0]), np.array([10.0, 10.0])).tolist() == [True, False]
