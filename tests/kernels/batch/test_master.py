"""The simplex method of column generation compared with a general LP solver."""

import math
from itertools import combinations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from poolwise import catalog
from poolwise.batch.search.column_generation import first_columns, generate_columns
from poolwise.batch.search.costs import costs_of
from poolwise.batch.search.packing import PackingPrices, fit
from poolwise.files.batch import read_batch
from poolwise.kernels.batch import master as kernels
from poolwise.kernels.batch.master import Master, add, empty_master, enlarged, fix_columns, levels, optimize
from poolwise.optimize.linear import LinearProgram
from tests.helpers.batch_problems import fill, problems, set_cost


def all_columns(problem, costs):
    """Yield every set of jobs that fits a module of each group."""
    n = len(problem.batch)
    for g, members in problem.groups.ids():
        for size in range(1, n + 1):
            for chosen in combinations(range(n), size):
                if fill(problem, int(members[0]), list(chosen)) is not None:
                    yield g, np.array(chosen)


def literal(m: Master, costs) -> float:
    """Return the objective of the same program solved by GLOP."""
    program, n, last = LinearProgram(), m.n, len(m.limit) - 1
    for row in range(last + 1):
        program.add_row(float(m.limit[row]) if row < n else -math.inf, float(m.limit[row]))
    for w in range(n):
        program.add_column(float(m.dear[w]), 0, math.inf, [w], [1.0])
    for k in range(int(m.used[0])):
        items = m.items[m.first[k] : m.first[k + 1]].tolist()
        values = [1.0] * (len(items) + 1) + [float(m.far[k])]
        program.add_column(float(m.charge[k]), 0, math.inf, [*items, n + int(m.kind[k]), last], values)
    return program.solve().objective


def solved(m: Master) -> tuple[float, np.ndarray]:
    optimize(m)
    level = np.empty(int(m.used[0]))
    return levels(m, level)[0], level


@settings(max_examples=40, deadline=None)
@given(problems(most=5, modules=4), st.data())
def test_master_matches_lp_solver_as_columns_are_added(problem, data):
    costs = costs_of(problem)
    columns = data.draw(st.permutations(list(all_columns(problem, costs))))
    m = empty_master(costs, problem.remote, 4, 4 * len(problem.batch) + 4)
    cut = data.draw(st.integers(0, len(columns)))
    for part in (columns[:cut], columns[cut:]):
        for g, items in part:
            while m.used[0] + 1 >= len(m.kind) or m.first[m.used[0]] + len(items) > len(m.items):
                m = enlarged(m)
            k = add(costs, m, g, items)
            assert m.cost[k] == pytest.approx(set_cost(costs, g, items)[0], abs=1e-9)
            assert m.far[k] * m.unit[0] == pytest.approx(set_cost(costs, g, items)[1], abs=1e-6)
        value, level = solved(m)
        assert value == pytest.approx(literal(m, costs), abs=1e-6)
        assert (level >= -1e-9).all()
        assert float(m.dual @ m.limit) == pytest.approx(value, abs=1e-6)  # strong duality


@settings(max_examples=25, deadline=None)
@given(problems(most=5, modules=4, remote=1e9))
def test_fixed_columns_evict_others_and_drifted_inverse_is_rebuilt(problem):
    costs = costs_of(problem)
    columns = list(all_columns(problem, costs))
    assume(columns)
    m = empty_master(costs, problem.remote, len(columns) + 1, sum(len(items) for _, items in columns) + 1)
    for g, items in columns:
        add(costs, m, g, items)
    value, level = solved(m)
    m.inverse[:] *= 1 + 1e-3 * np.arange(len(m.limit))  # exaggerated rounding errors
    assert solved(m)[0] == pytest.approx(value, abs=1e-6)
    chosen, covered = int(np.argmax(level)), np.zeros(m.n, dtype=np.bool_)
    fix_columns(m, np.array([chosen]), covered)
    own = set(np.flatnonzero(covered).tolist())
    assert own == set(columns[chosen][1].tolist())
    _, level = solved(m)
    for k, (_, items) in enumerate(columns):
        if k != chosen and own & set(items.tolist()):
            assert level[k] == pytest.approx(0, abs=1e-6)


@pytest.mark.parametrize("theta", ["printed", "relative"])
def test_master_matches_lp_solver_at_full_size(theta):
    problem = read_batch(catalog.find("batches", "batch-150x1200"), seed=3, theta=theta)
    costs = costs_of(problem)
    start, prices = fit(costs, PackingPrices.of(costs))[0], PackingPrices.of(costs)
    m = generate_columns(first_columns(costs, problem.remote, prices, start), 8e6, lambda: False).master
    assert int(m.used[0]) > 300
    value, level = solved(m)
    assert value == pytest.approx(literal(m, costs), rel=1e-6)
    assert level.min() >= -1e-9
    assert float(m.dual @ m.limit) == pytest.approx(value, rel=1e-6)


def test_perturbation_is_below_the_optimality_tolerance():
    from poolwise.batch.search.column_generation import CLOSED

    assert kernels.PERTURBATION < CLOSED
