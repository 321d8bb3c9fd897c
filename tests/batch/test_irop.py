"""IRoP step by step: the module to which a workload is fixed, the order of workloads, and rejected choices."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from poolwise.batch.methods.irop import Irop, Rounding, approximation_ratio
from poolwise.batch.methods.method import Limit
from poolwise.batch.problem.assignment import Solution
from poolwise.batch.problem.definition import Batch, Modules, Problem
from poolwise.optimize.linear import LinearProgram
from poolwise.performance.profiles import Profile
from tests.helpers.batch_problems import problems

FLAT = Profile("flat", (0, 0.75), (0, 0.1))


def problem_of(memory: list[float]) -> Problem:
    """Build three identical modules and a slower fourth, with a workload for each amount of memory."""
    n = len(memory)
    batch = Batch(
        tuple(f"w{k}" for k in range(n)),
        np.full(n, 1),
        np.full(n, 1.0),
        np.array(memory),
        np.full(n, 1.0),
        np.zeros(n, dtype=np.int64),
        (FLAT,) * n,
    )
    cores = np.full(4, 8)
    modules = Modules(
        tuple("abcd"), cores, np.array([2.0, 2, 2, 1.5]), np.full(4, 100.0), np.full(4, 1.5), np.full(4, 0.5), cores.copy(),
        np.zeros(4, dtype=np.bool_),
    )  # fmt: skip
    return Problem(batch, modules, 1000.0)


@pytest.mark.parametrize(
    ("alike", "other", "module"),
    [
        (0.6, 0.4, 3),  # 0.2 on each of three, 0.4 on the other
        (0.9, 0.1, 0),  # 0.3 on each
        (0.75, 0.25, 0),  # equal on all four: the lowest is chosen
        (0.72, 0.28, 3),
        (0.75, 0.25 + 1e-11, 0),  # equal up to rounding
        (0.75, 0.25 + 1e-7, 3),
    ],
)
def test_y_is_spread_evenly_over_identical_modules(alike: float, other: float, module: int) -> None:
    rounding = Rounding.of(problem_of([10.0, 20.0]))
    assert rounding.untouched == {0: [0, 1, 2], 1: [3]}
    rounding.y = np.zeros(len(rounding.y))
    rounding.y[rounding.relaxation.assign[1]] = [alike, other]
    assert rounding._best_module(1) == module


def test_open_modules_have_their_own_y_and_rejected_ones_do_not_count() -> None:
    """The first workload opens module 0, so two identical modules are left to share."""
    rounding = Rounding.of(problem_of([10.0, 20.0]))
    rounding.y = np.zeros(len(rounding.y))
    rounding.y[rounding.relaxation.assign[0]] = [1.0, 0.0]
    assert rounding.fix(0) and rounding.module_of == {0: 0} and rounding.untouched == {0: [1, 2], 1: [3]}
    own = int(rounding.columns[0][1])
    for y, module in (((0.3, 0.5, 0.2), 0), ((0.2, 0.5, 0.3), 3), ((0.2, 0.6, 0.2), 1)):  # own, alike, other
        rounding.y = np.zeros(max(own, rounding.relaxation.assign.max()) + 1)
        rounding.y[[own, *rounding.relaxation.assign[1]]] = y
        assert rounding._best_module(1) == module
    rounding.columns[0][1] = -1
    rounding.y[own] = 1.0
    assert rounding._best_module(1) == 1
    rounding.relaxation.assign[1] = -1
    assert rounding._best_module(1) is None


def order_of(monkeypatch: pytest.MonkeyPatch, method: Irop, problem: Problem) -> tuple[list[int], set[bool]]:
    """Return the order in which workloads are fixed, and whether the relaxation is solved again after a rejection."""
    order, solves_again = [], set()
    fix = Rounding.fix

    def recorded(self: Rounding, w: int, solve_again: bool = False) -> bool:
        order.append(w)
        solves_again.add(solve_again)
        return fix(self, w, solve_again)

    with monkeypatch.context() as patch:
        patch.setattr(Rounding, "fix", recorded)
        assert not method.solve(problem, Limit.by_work(5)).dropped
    return order, solves_again


def test_workloads_are_rounded_in_input_order_or_largest_first(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = problem_of([20.0, 50.0, 10.0, 50.0])
    assert order_of(monkeypatch, Irop(), problem) == ([0, 1, 2, 3], {False})
    assert order_of(monkeypatch, Irop(largest_first=True, solve_again=True), problem) == ([1, 3, 0, 2], {True})


@settings(max_examples=40, deadline=None)
@given(problems(most=5, modules=4), st.booleans(), st.booleans())
def test_shares_are_minimal_and_the_bound_is_that_of_the_relaxation(problem, largest_first, solve_again):
    """Equation (6) fixes the shares beforehand; no module exceeds its cores and memory."""
    solution = Irop(largest_first, solve_again).solve(problem, Limit.by_work(5))
    assume(not solution.dropped)
    module, local = solution.assignment.module, solution.assignment.local
    groups = problem.groups.of_module[module]
    assert local.tolist() == problem.least[np.arange(len(module)), groups].tolist()
    assert solution.bound == pytest.approx(Rounding.of(problem).value)
    for m in set(module.tolist()):
        here = module == m
        assert problem.batch.cores[here].sum() <= problem.modules.free_cores[m]
        assert (problem.batch.memory * local)[here].sum() <= problem.modules.memory[m] * (1 + 1e-6)


def test_module_without_room_is_rejected_without_a_solve(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = replace(problem_of([90.0, 90.0]), least_local=1.0)
    rounding = Rounding.of(problem)
    assert rounding.fix(0)
    home = rounding.module_of[0]
    monkeypatch.setattr(rounding, "_solve", lambda: pytest.fail("the solver was called"))
    assert not rounding._fits(1, home)
    assert all(rounding._fits(1, module) for module in range(4) if module != home)


def test_module_holds_exactly_its_cores_and_memory() -> None:
    problem = replace(problem_of([50.0, 50.0, 50.1, 1.0]), least_local=1.0)
    rounding = Rounding.of(replace(problem, batch=replace(problem.batch, cores=np.array([4, 4, 4, 5]))))
    assert rounding.fix(0)
    assert [rounding._fits(w, rounding.module_of[0]) for w in (1, 2, 3)] == [True, False, False]


def test_module_opened_without_success_is_untouched_again_and_its_group_rejected() -> None:
    """Remote memory is short: on the fast modules, where half may be remote, the program is infeasible."""
    problem = replace(problem_of([90.0, 20.0]), remote=10.0)
    problem.__dict__["least"] = np.array([[0.5, 1.0], [1.0, 1.0]])  # overrides the cached result of equation (6)
    rounding = Rounding.of(problem)
    rounding.y = np.zeros(len(rounding.y))
    rounding.y[rounding.relaxation.assign[0]] = [3.0, 0.5]  # as from a solver that has not seen the limit
    assert rounding.fix(0)
    assert (rounding.module_of, rounding.untouched) == ({0: 3}, {0: [0, 1, 2], 1: []})
    assert rounding.relaxation.assign[0].tolist() == [-1, -1]
    assert rounding.fix(1) and rounding.module_of[1] == 0


def test_workload_of_lowest_priority_is_dropped_on_failure_and_rounding_restarts(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = problem_of([10.0] * 6)
    problem = replace(problem, batch=replace(problem.batch, priority=np.array([3, 1, 2, 6, 5, 4])))
    tried = []
    attempt = Irop._attempt

    def at_most_two(self: Irop, some: Problem) -> Solution | None:
        tried.append(len(some.batch))
        return attempt(self, some) if len(some.batch) <= 2 else None

    monkeypatch.setattr(Irop, "_attempt", at_most_two)
    solution = Irop().solve(problem, Limit.by_work(5))
    assert tried == [6, 5, 4, 3, 2]
    assert solution.dropped == (1, 2, 0, 5) and solution.unmet


def test_approximation_ratio_equals_theorem_1_by_hand() -> None:
    """Four modules of 8 cores and workloads of one core: 4 x 8 x 1, with equal energies."""
    problem = problem_of([10.0, 20.0])
    assert approximation_ratio(problem) == 32.0
    static = np.array([1.5, 1.5, 1.5, 3.0])
    assert approximation_ratio(replace(problem, modules=replace(problem.modules, static=static))) == 64.0
    dynamic = np.array([0.01, 0.5, 0.5, 5.0])
    assert approximation_ratio(replace(problem, modules=replace(problem.modules, dynamic=dynamic))) == pytest.approx(500.0)
    assert approximation_ratio(replace(problem, modules=replace(problem.modules, dynamic=np.zeros(4)))) == np.inf


def test_workload_without_a_profile_gets_local_memory_and_a_module_as_fast_as_requested() -> None:
    problem = problem_of([10.0, 20.0])
    batch = replace(problem.batch, frequency=np.array([1.0, 1.8])).without_profile(np.array([1]))
    problem = replace(problem, batch=batch)
    assert batch.tolerance.tolist() == [1.0, 0.0] and batch.profile[0] == FLAT
    assert problem.least[1, 0] == 1.0 and np.isnan(problem.least[1, 1])  # the fourth module has a frequency of 1.5
    solution = Irop().solve(problem, Limit.by_work(1.0))
    assert solution.assignment.local[1] == 1.0 and solution.assignment.module[1] in (0, 1, 2)


@given(problems())
@settings(max_examples=30)
def test_interior_point_method_has_the_bound_of_the_simplex_method(problem: Problem) -> None:
    simplex, inner = (Rounding.of(problem, solver) for solver in ("glop", "interior_point"))
    assert (simplex.y is None) == (inner.y is None)
    if simplex.y is not None:
        assert inner.value == pytest.approx(simplex.value, rel=1e-5, abs=1e-5)


def test_interior_point_method_returns_an_inner_optimum() -> None:
    """Two columns of equal cost cover one row: the simplex method chooses one of them, the interior point method shares."""
    values = {}
    for solver in ("glop", "interior_point"):
        program = LinearProgram(solver)
        row = program.add_row(1, 1)
        for _ in range(2):
            program.add_column(1.0, 0, 1, [row], [1.0])
        values[solver] = sorted(program.solve().values.tolist())
    assert values == {"glop": [0.0, 1.0], "interior_point": pytest.approx([0.5, 0.5], abs=1e-4)}
