"""Column generation and refinement: valid bounds, and consistent parts."""

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from poolwise.batch.methods import place
from poolwise.batch.methods.method import Limit
from poolwise.batch.methods.place import Place
from poolwise.batch.problem.check import check_assignment
from poolwise.batch.search import refine
from poolwise.batch.search.column_generation import choose_whole, dive, first_columns, generate_columns
from poolwise.batch.search.costs import costs_of, part_of
from poolwise.batch.search.effort import Effort
from poolwise.batch.search.packing import PackingPrices, fit, most_items, rebuild
from tests.helpers.batch_problems import brute_force, linear_bound, problems, set_cost

pytestmark = pytest.mark.long


@settings(max_examples=40, deadline=None)
@given(problems(most=5, modules=4))
def test_configuration_bound_is_between_the_linear_bound_and_the_optimum(problem):
    best = brute_force(problem)
    costs = costs_of(problem)
    start, _ = fit(costs, PackingPrices.of(costs))
    assume(best is not None and not start.left)
    columns = generate_columns(first_columns(costs, problem.remote, PackingPrices.of(costs), start), 1e9, lambda: False)
    assert columns.closed
    assert columns.bound <= best.objective + 1e-6
    linear = linear_bound(problem, fixed=False)
    assert math.isnan(linear) or linear - 1e-4 <= columns.bound  # GLOP fails on some programs without remote memory
    for packing in (
        dive(columns, 1e9, lambda: False),
        dive(columns, 1e9, lambda: False, 1),
        dive(columns, 1e4, lambda: False),
        choose_whole(columns, start, None, 1000),
    ):
        if packing is not None and not packing.left:
            assert rebuild(costs, packing, most_items(costs)).where.min() >= 0


@settings(max_examples=40, deadline=None)
@given(problems(most=7, modules=4), st.data())
def test_part_has_the_same_costs_as_the_whole(problem, data):
    n = len(problem.batch)
    rows = np.array(sorted(data.draw(st.sets(st.integers(0, n - 1), min_size=1))))
    some = np.array(sorted(data.draw(st.sets(st.integers(0, len(rows) - 1), min_size=1))))
    costs = costs_of(problem)
    part = part_of(costs, rows, problem.groups.count)
    for g in range(len(problem.groups)):
        assert set_cost(part, g, some) == pytest.approx(set_cost(costs, g, rows[some]), abs=1e-12)
        for w in range(len(rows)):
            assert (part.owner[g, part.rank[g, w]] == w).all()


@settings(max_examples=25, deadline=None)
@given(problems(most=8, modules=6))
def test_large_batch_is_refined_part_by_part_and_never_worse(problem):
    method, limit = Place(few=0), Limit.by_work(0.1)
    whole = method.solve(problem, limit)
    patched = pytest.MonkeyPatch()
    with patched.context() as patch:
        patch.setattr(place, "LARGE", 2)
        patch.setattr(refine, "PART", 3)
        parts = method.solve(problem, limit)
        search_only = replace(problem)
        patch.setattr(place, "refine_parts", lambda costs, remote, packing, effort: packing)
        before = method.solve(search_only, limit)
    assert parts.dropped == before.dropped
    assert check_assignment(problem, parts.assignment, partial=True).valid
    assert parts.objective <= before.objective + 1e-9
    if not parts.dropped and not whole.dropped and len(problem.batch) > 2:
        assert parts.bound_of == "DWLP (linear program)"
        assert parts.bound <= whole.objective + 1e-6


def test_clock_ends_the_search_only_with_the_guard_and_adds_a_note():
    problem = place.example()
    late = Limit(1.0, itertools.count().__next__)  # a second passes with each reading
    assert Place(few=0).solve(problem, late).notes == (place.CUT,)
    assert Place(guard=False, few=0).solve(problem, late).notes == ()
    assert check_assignment(problem, Place(few=0).solve(problem, late).assignment).valid


def test_effort_scales_with_the_limit_within_bounds():
    short, long = Effort.of(Limit(1e-3)), Effort.of(Limit(1e3))
    assert (short.moves, short.exchanges, short.whole) == (700, 2, False)
    assert (long.moves, long.exchanges, long.whole) == (400_000, 20, True)
    assert Effort.of(Limit(2.0), pace=0.5).arithmetic == Effort.of(Limit.by_work(1.0)).arithmetic
