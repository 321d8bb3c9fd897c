"""Incremental linear programs: same results as programs built at once, and every status."""

import ctypes
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from poolwise.optimize import linear
from poolwise.optimize.linear import LinearProgram

numbers = st.floats(-5, 5).map(lambda v: round(v, 2))


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 4), st.integers(1, 4), st.data())
def test_grown_program_matches_one_built_at_once(n_row, n_column, data):
    matrix = np.array(data.draw(st.lists(numbers, min_size=n_row * n_column, max_size=n_row * n_column))).reshape(n_row, -1)
    cost = data.draw(st.lists(numbers, min_size=n_column, max_size=n_column))
    limit = data.draw(st.lists(st.floats(0, 9), min_size=n_row, max_size=n_row))
    whole, grown = LinearProgram(), LinearProgram()
    for program in (whole, grown):
        for high in limit:
            program.add_row(-math.inf, high)
    for j in range(n_column):
        whole.add_column(cost[j], 0, 3, range(n_row), matrix[:, j])
        grown.add_column(cost[j], 0, 3, range(n_row), matrix[:, j])
        last = grown.solve()
    solved = whole.solve()
    assert solved.status == last.status == "optimal"
    assert solved.objective == pytest.approx(last.objective, abs=1e-6)
    assert (matrix @ solved.values <= np.array(limit) + 1e-6).all()
    # complementary slackness at the optimum: reduced costs of columns inside their bounds are 0
    reduced = np.array(cost) - matrix.T @ solved.duals
    inside = (solved.values > 1e-6) & (solved.values < 3 - 1e-6)
    assert np.abs(reduced[inside]).max(initial=0) < 1e-5


def test_bounds_costs_and_coefficients_can_be_changed():
    program = LinearProgram()
    row = program.add_row(-math.inf, 4)
    x, y = program.add_column(-1, 0, 3, [row], [1]), program.add_column(-1, 0, 3, [row], [1])
    assert program.solve().objective == pytest.approx(-4)
    program.set_bounds(x, 0, 0)
    assert program.solve().values.tolist() == pytest.approx([0, 3])
    program.set_coefficient(row, y, 2)
    assert program.solve().objective == pytest.approx(-2)
    program.set_cost(y, -5)
    assert program.solve().objective == pytest.approx(-10)
    program.set_limit(row, -math.inf, 1)
    assert program.solve().objective == pytest.approx(-2.5)
    assert (program.n_row, program.n_column) == (1, 2)


def test_infeasible_and_unbounded_programs_are_reported():
    impossible = LinearProgram()
    impossible.add_row(5, math.inf, [impossible.add_column(1, 0, 1)], [1])
    assert impossible.solve().status == "infeasible"
    unbounded = LinearProgram()
    unbounded.add_column(-1, 0, math.inf)
    assert unbounded.solve().status in ("unbounded", "infeasible")
    assert math.isnan(unbounded.solve().objective)


@pytest.mark.parametrize("solver", ["highs", "scip"])
def test_integer_programs_are_solved(solver):
    program = LinearProgram(solver)
    row = program.add_row(-math.inf, 7.5)
    for cost, size in ((-3, 2), (-4, 3), (-5, 4)):
        program.add_column(cost, 0, 1, [row], [size], integer=True)
    answer = program.solve(seconds=10, gap=0)
    assert answer.status == "optimal"
    assert answer.objective == pytest.approx(-9)
    assert answer.bound == pytest.approx(-9)


def test_false_infeasibility_of_presolve_is_retried_without_presolve():
    """Two steps of savings without bounds of their own, and rows that only tie them: GLOP's presolve is wrong here."""
    from poolwise.batch.problem.definition import Batch, Modules, Problem
    from poolwise.performance.profiles import Profile
    from tests.helpers.batch_problems import linear_bound

    steep = Profile("steep", (0, 0.25, 0.5, 0.75), (0, 0.4, 1.3, 3.0))
    line = Profile("line", (0, 0.75), (0, 0.6), 0.5)
    two, whole = np.ones(2), np.ones(2, dtype=np.int64)
    batch = Batch(("w0", "w1"), whole, two, 20 * two, 0 * two, 0 * whole, (steep, line))
    on = np.array([False, True])
    modules = Modules(("c0", "c1"), 16 * whole, 2 * two, 130 * two, 1.6 * two, 0.6 * two, 16 * whole, on)
    bound = linear_bound(Problem(batch, modules, 100.0, 0.0, "relative", True), fixed=False)
    assert bound == pytest.approx(0.0, abs=1e-9)


def test_interior_point_method_ends_on_an_infeasible_program():
    """A row without columns: without a limit the method of HiGHS would iterate 2 ** 31 times, for hours."""
    program = LinearProgram("interior_point")
    rows = [program.add_row(low, high) for low, high in ((1, 1), (-math.inf, 0), (-math.inf, 0), (-math.inf, 1.32))]
    program.add_column(0.56, 0, 1, rows[1:3], [-1, -1])
    assert program.solve().status == "infeasible"


def test_imprecise_end_after_presolve_is_retried_without_presolve():
    """A coefficient of rounding, 2.8e-17, for which GLOP's presolve leaves a solution outside its tolerances."""
    program = LinearProgram()
    rows = [
        program.add_row(low, high)
        for low, high in ((1, 1), (-math.inf, 0), (-math.inf, 0), (-math.inf, 7692.3), (-math.inf, 0))
    ]
    tiny = math.ulp(0.125)
    program.add_column(0.48, 0, 1, rows[1:3], [-1, -1])
    program.add_column(0.01125, 0, 1, rows, [1, 0.0625, 2 / 13, tiny, -tiny * 8 / 13])
    program.add_column(-7.28, 0, math.inf, rows[2:], [1, -1, 1])
    answer = program.solve()
    assert answer.status == "optimal"
    assert answer.objective == pytest.approx(0.01125 + 0.48 * 2 / 13)


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_program_that_grows_and_shrinks_matches_a_fresh_one(data):
    """Columns are added and removed, bounds change, rows are added: each warm solution has the value of a cold one."""
    number = st.integers(-5, 5).map(float)
    grown, rows, columns = LinearProgram(), [], []
    for _ in range(data.draw(st.integers(1, 5))):
        rows.append(grown.add_row(-math.inf, data.draw(st.integers(0, 9))))
        for _ in range(data.draw(st.integers(1, 3))):
            entries = [data.draw(number) for _ in rows]
            cost, high = data.draw(number), data.draw(st.integers(0, 4))
            columns.append((grown.add_column(cost, 0, high, rows, entries), cost, high, entries))
        if len(columns) > 1 and data.draw(st.booleans()):
            gone = columns.pop(data.draw(st.integers(0, len(columns) - 1)))
            grown.remove_column(gone[0])
        fresh = LinearProgram()
        for row in rows:
            fresh.add_row(-math.inf, grown._rows[row].upper_bound)
        for _, cost, high, entries in columns:
            fresh.add_column(cost, 0, high, range(len(entries)), entries)
        warm, other = grown.solve(), fresh.solve()
        assert warm.status == other.status == "optimal"  # 0 is feasible, and columns are bounded
        assert warm.objective == pytest.approx(other.objective, abs=1e-6)
        remaining = [column for column, *_ in columns]
        assert warm.values.sum() == pytest.approx(warm.values[remaining].sum(), abs=1e-7)


def test_output_of_libraries_does_not_reach_stdout(capfd: pytest.CaptureFixture[str]) -> None:
    libc = ctypes.CDLL(None)
    print("before", flush=True)
    with linear._silence():
        libc.puts(b"noise")
    print("after", flush=True)
    libc.fflush(None)
    assert capfd.readouterr().out == "before\nafter\n"
