"""Kernels of batch placement: water filling, pricing and the totals of the search, compared with direct computation."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from poolwise.batch.search.costs import costs_of
from poolwise.batch.search.packing import BinPacking, PackingPrices, assignment_of, fit, improve, most_items, rebuild
from poolwise.kernels.batch.price import BestSets, price_out
from poolwise.kernels.batch.search import total
from tests.helpers.batch_problems import fill, problems, set_cost


@settings(max_examples=40, deadline=None)
@given(problems(modules=2))
def test_water_filling_is_optimal(problem):
    costs = costs_of(problem)
    rows = list(range(len(problem.batch)))
    wanted = fill(problem, 0, rows)
    assume(wanted is not None)
    items, g = np.array(rows), int(problem.groups.of_module[0])
    together = BinPacking(np.zeros(len(rows), dtype=np.int64), np.full(len(rows), g), 0.0, 0)
    ours = assignment_of(problem, costs, together).local
    groups = np.full(len(rows), g)
    assert problem.slowdown(items, groups, ours).sum() == pytest.approx(problem.slowdown(items, groups, wanted).sum(), abs=1e-9)
    assert (ours * costs.size).sum() == pytest.approx((wanted * costs.size).sum())
    slowdown, energy = problem.weights
    static, dynamic = problem.groups.static[g], problem.groups.dynamic[g] * problem.batch.cores.sum() / problem.groups.cores[g]
    value, outside = set_cost(costs, g, items)
    assert value == pytest.approx(slowdown * problem.slowdown(items, groups, wanted).sum() + energy * (static + dynamic))
    assert outside == pytest.approx(max(0.0, float(costs.size.sum() - costs.room[g])))


@settings(max_examples=40, deadline=None)
@given(problems(most=6, modules=1), st.data())
def test_pricing_finds_the_most_valuable_set(problem, data):
    costs = costs_of(problem)
    n = len(problem.batch)
    prize = np.array(data.draw(st.lists(st.floats(-0.5, 3), min_size=n, max_size=n)))
    best = 0.0
    for size in range(1, n + 1):
        for chosen in combinations(range(n), size):
            items = np.array(chosen)
            if fill(problem, 0, list(chosen)) is not None:
                best = max(best, float(prize[items].sum()) - set_cost(costs, 0, items)[0])
    best_sets = BestSets(np.empty((9, n), dtype=np.int64), np.empty(9, dtype=np.int64), np.empty(9))
    price = np.array([data.draw(st.sampled_from([0.0, 1e-4, 0.01, 1.0]))])  # the result is exact from any initial price
    most, n_set, looked = price_out(costs, 0, prize, 0.0, 10_000, 5, price, best_sets)
    assert looked <= 10_000
    assert most == pytest.approx(best, abs=1e-7)
    for k in range(n_set):
        items = best_sets.items[k, : best_sets.size[k]]
        assert best_sets.value[k] == pytest.approx(float(prize[items].sum()) - set_cost(costs, 0, items)[0], abs=1e-9)
    cut, _, _ = price_out(costs, 0, prize, 0.0, data.draw(st.integers(0, 9)), 5, price, best_sets)
    assert cut >= best - 1e-9  # a valid bound even if the search stops early


@settings(max_examples=25, deadline=None)
@given(problems(most=8, modules=5, remote=1e9), st.integers(0, 5))
def test_local_search_keeps_consistent_totals(problem, seed):
    costs = costs_of(problem)
    start, bins = fit(costs, PackingPrices.of(costs))
    assume(not start.left)
    improved, done = improve(costs, start, bins, 4000, seed, lambda: False)
    assert done
    assert improved.cost <= start.cost + 1e-12
    assert total(rebuild(costs, improved, most_items(costs))) == pytest.approx(improved.cost, abs=1e-9)
    assert sum(set_cost(costs, g, items)[0] for g, items in improved.sets()) == pytest.approx(improved.cost, abs=1e-9)
    used = np.bincount([g for g, _ in improved.sets()], minlength=len(costs.available))
    assert (used <= costs.available).all()
    for slot in range(len(bins.place)):  # the annealing's final state is consistent too
        rows = np.flatnonzero(bins.where == slot)
        assert sorted(bins.items[slot, : bins.n_item[slot]].tolist()) == rows.tolist()
        assert bins.load[slot] == costs.load[rows].sum()
