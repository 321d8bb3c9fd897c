"""Exchanges compared with every permutation: never worse, no item lost."""

from itertools import permutations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from poolwise.batch.search.costs import costs_of
from poolwise.batch.search.packing import PackingPrices, exchange_all, fit
from poolwise.kernels.batch.exchange import BARRED, assign, empty_exchange
from poolwise.kernels.python_code import python_code
from tests.helpers.batch_problems import problems, set_cost


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_assignment_is_optimal(data):
    n = data.draw(st.integers(1, 5))
    m = n + data.draw(st.integers(0, 2))
    values = st.one_of(st.integers(-9, 9).map(float), st.just(BARRED))
    cost = np.array(data.draw(st.lists(values, min_size=n * m, max_size=n * m))).reshape(n, m)
    scratch = empty_exchange(n, m)
    scratch.cost[:] = cost
    python_code(assign)(scratch, n, m)
    column = scratch.column
    assert len(set(column.tolist())) == n
    best = min(sum(cost[r, c] for r, c in enumerate(chosen)) for chosen in permutations(range(m), n))
    assert cost[np.arange(n), column].sum() == pytest.approx(best)


@settings(max_examples=40, deadline=None)
@given(problems(most=8, modules=5, remote=1e9), st.integers(0, 5))
def test_exchange_never_increases_cost_or_loses_items(problem, seed):
    costs = costs_of(problem)
    start, _ = fit(costs, PackingPrices.of(costs))
    assume(not start.left)
    exchanged = exchange_all(costs, start, 6, seed, lambda: False)
    assert exchanged.cost <= start.cost + 1e-12
    assert (exchanged.slot >= 0).all()
    assert sum(set_cost(costs, g, items)[0] for g, items in exchanged.sets()) == pytest.approx(exchanged.cost, abs=1e-9)
    used = np.bincount([g for g, _ in exchanged.sets()], minlength=len(costs.available))
    assert (used <= costs.available).all()
    for g, items in exchanged.sets():
        assert costs.load[items].sum() <= costs.capacity[g]
        assert costs.allowed[g, items].all()
        assert costs.need[g, items].sum() <= costs.room[g] * (1 + 1e-6)
