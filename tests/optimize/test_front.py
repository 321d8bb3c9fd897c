"""Pareto fronts against pairwise comparison, and the front search against evaluating everything."""

import itertools

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from poolwise.optimize.front import front, layers, search_front

POINTS = arrays(np.float64, st.tuples(st.integers(0, 12), st.integers(1, 3)), elements=st.sampled_from([0, 1, 2, 3, np.nan]))


def dominated(points, k):
    """Return whether a point is dominated, by the slow reference."""
    return any(
        all(a <= b for a, b in zip(other, points[k], strict=True)) and any(a < b for a, b in zip(other, points[k], strict=True))
        for other in points
        if not np.isnan(other).any()
    )


@given(POINTS)
def test_front_contains_the_nondominated_points(points):
    expected = [not np.isnan(points[k]).any() and not dominated(points, k) for k in range(len(points))]
    assert front(points).tolist() == expected


@given(POINTS)
def test_layers_are_successive_fronts(points):
    depths = layers(points)
    left = np.arange(len(points))
    for depth in itertools.count():
        here = left[front(points[left])]
        if not len(here):
            break
        assert set(left[depths[left] == depth].tolist()) == set(here.tolist())
        left = np.setdiff1d(left, here)
    assert np.isnan(points[left]).any(axis=1).all() and (depths[left] == len(points)).all()


def test_search_finds_a_smooth_front_without_evaluating_everything():
    grid = list(itertools.product(range(30), range(30)))
    evaluated = []

    def measure(elements, rung):
        if rung == 2:
            evaluated.extend(elements)
        noise = 3 * (2 - rung)  # lower rungs are less exact
        return np.array([[x + y + noise * ((7 * x + 3 * y) % 5), (29 - x) ** 2 + (29 - y)] for x, y in elements], dtype=float)

    tried = search_front(grid, measure, 3, 60, seed=0)
    assert sorted(tried) == sorted(evaluated) and len(set(evaluated)) == len(evaluated) < len(grid)
    model = {grid[k] for k in np.flatnonzero(front(measure(grid, 2))).tolist()}
    mine = {tried[k] for k in np.flatnonzero(front(measure(tried, 2))).tolist()}
    assert mine == model
    evaluated.clear()
    assert search_front(grid, measure, 3, 60, seed=0) == tried
