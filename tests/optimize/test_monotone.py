"""Monotone search against exhaustive evaluation."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from poolwise.optimize.monotone import below, cheapest, contradictions


class Oracle:
    """Predicate that records its calls."""

    def __init__(self, model):
        self.model, self.calls = model, []

    def __call__(self, element):
        self.calls.append(element)
        return bool(self.model[element])


def exhaustive(cost, model, among=None):
    """Return the first of the cheapest elements at which it holds, by the slow reference."""
    held = model if among is None else model & among
    elements = [e for e in itertools.product(*map(range, cost.shape)) if held[e]]
    return min(elements, key=lambda e: (cost[e], e), default=None)


@st.composite
def grids(draw):
    """Draw costs that never decrease along an axis, often with ties, and everything above some random elements."""
    shape = tuple(draw(st.lists(st.integers(1, 7), min_size=1, max_size=3)))
    cost = np.zeros(shape)
    for axis, n in enumerate(shape):
        steps = np.cumsum(draw(st.lists(st.integers(0, 4), min_size=n, max_size=n)))
        cost += steps.reshape([-1 if k == axis else 1 for k in range(len(shape))])
    model = np.zeros(shape, dtype=bool)
    for corner in draw(st.lists(st.tuples(*(st.integers(0, n - 1) for n in shape)), max_size=4)):
        model[tuple(slice(k, None) for k in corner)] = True
    return cost, model


@given(grids(), st.data())
def test_search_matches_exhaustive_evaluation(grid, data):
    cost, model = grid
    oracle = Oracle(model)
    elements = list(itertools.product(*map(range, cost.shape)))
    answers = {e: bool(model[e]) for e in data.draw(st.lists(st.sampled_from(elements), max_size=3))}
    among = np.array(data.draw(st.lists(st.booleans(), min_size=cost.size, max_size=cost.size))).reshape(cost.shape)
    assert cheapest(cost, oracle, answers, among) == exhaustive(cost, model, among)
    assert len(set(oracle.calls)) == len(oracle.calls) and not set(oracle.calls) & set(answers)
    assert cheapest(cost, Oracle(model)) == exhaustive(cost, model)


@given(st.integers(1, 300), st.data())
def test_search_along_one_axis_is_bisection(n, data):
    first = data.draw(st.integers(0, n))
    oracle = Oracle(np.arange(n) >= first)
    assert cheapest(np.arange(n) * 2.0, oracle) == (None if first == n else (first,))
    assert len(oracle.calls) <= math.floor(math.log2(n)) + 1


def test_search_over_two_axes_evaluates_only_the_boundary():
    n = 40
    x, y = np.mgrid[:n, :n]
    oracle = Oracle(x * y >= 300)
    cost = 3.0 * x + 2.0 * y
    assert cheapest(cost, oracle) == exhaustive(cost, oracle.model)
    assert len(oracle.calls) < 2 * n


@given(grids(), st.data())
def test_result_is_correct_despite_contradictory_answers(grid, data):
    cost, _ = grid
    model = np.array(data.draw(st.lists(st.booleans(), min_size=cost.size, max_size=cost.size))).reshape(cost.shape)
    answers = {e: bool(model[e]) for e in itertools.product(*map(range, cost.shape)) if data.draw(st.booleans())}
    if contradictions(answers):
        oracle = Oracle(model)
        assert cheapest(cost, oracle, answers) == exhaustive(cost, model)
        assert not set(oracle.calls) & set(answers)


def test_contradictions_are_listed():
    assert contradictions({(0, 1): True, (1, 1): False, (1, 0): False}) == [((0, 1), (1, 1))]
    assert below((0, 2), (0, 2)) and not below((0, 2), (1, 1))


def test_decreasing_cost_is_rejected():
    with pytest.raises(ValueError, match="decreases along axis 1"):
        cheapest(np.array([[1.0, 0.5]]), lambda element: True)
    with pytest.raises(ValueError, match="NaN"):
        cheapest(np.array([np.nan]), lambda element: True)
