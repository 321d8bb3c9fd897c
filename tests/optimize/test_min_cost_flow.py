"""Minimum-cost flow: solvers with equal, proven costs; every status; no silent rounding or overflow."""

from typing import get_args

import numpy as np
import pytest
from hypothesis import given, settings

from poolwise.errors import InputError, UnknownNameError
from poolwise.optimize.min_cost_flow import SCALE, FlowSolver, min_cost_flow, scaled
from tests.helpers.flow_problems import assert_optimal, cheapest_cost, is_feasible, problems

SOLVERS = get_args(FlowSolver)


@settings(max_examples=100)
@given(problems())
def test_all_solvers_find_the_optimum_or_report_infeasibility(problem):
    tail, head, lower, capacity, _, supply = problem
    answers = [min_cost_flow(*problem, solver=solver) for solver in SOLVERS]
    if is_feasible(tail, head, lower, capacity, supply):
        assert {answer.cost for answer in answers} == {cheapest_cost(problem)}
        for answer in answers:
            assert answer.optimal
            assert_optimal(problem, answer.flow, answer.cost)
    else:
        assert cheapest_cost(problem) is None
        assert [answer.status for answer in answers] == ["infeasible"] * len(SOLVERS)
        assert not any(answer.optimal or answer.flow.any() or answer.cost for answer in answers)


def assignment(n_task, n_machine, seed=0):
    """Build an assignment of tasks to machine slots where any task may wait, with lower bounds on some slots."""
    rng = np.random.default_rng(seed)
    task, machine = np.nonzero(rng.random((n_task, n_machine)) < 0.3)
    tasks, machines, sink = np.arange(n_task), n_task + np.arange(n_machine), n_task + n_machine
    tail = np.concatenate((task, tasks, machines))
    head = np.concatenate((machines[machine], np.full(n_task + n_machine, sink)))
    slots = rng.integers(0, 4, n_machine)
    capacity = np.concatenate((np.ones(len(task) + n_task, dtype=np.int64), slots))
    lower = np.concatenate((np.zeros(len(task) + n_task, dtype=np.int64), slots * (rng.random(n_machine) < 0.2)))
    cost = scaled(np.concatenate((rng.random(len(task)), 2 + rng.random(n_task), np.zeros(n_machine))))
    supply = np.concatenate((np.ones(n_task, dtype=np.int64), np.zeros(n_machine, dtype=np.int64), [-n_task]))
    return tail, head, lower, capacity, cost, supply


@pytest.mark.parametrize("size", [(60, 30), (80, 10)])
def test_solvers_agree_on_a_larger_graph_with_real_costs(size):
    problem = assignment(*size)
    answers = [min_cost_flow(*problem, solver=solver) for solver in SOLVERS]
    assert len({answer.cost for answer in answers}) == 1
    for solver, answer in zip(SOLVERS, answers, strict=True):
        assert_optimal(problem, answer.flow, answer.cost)
        assert min_cost_flow(*problem, solver=solver).flow.tobytes() == answer.flow.tobytes()


@pytest.mark.parametrize("solver", SOLVERS)
def test_statuses_of_all_solvers(solver):
    assert min_cost_flow([0], [1], 0, 5, 1, [3, -2], solver=solver).status == "unbalanced"
    assert min_cost_flow([0], [1], 0, 2, 1, [3, -3], solver=solver).status == "infeasible"
    assert min_cost_flow([0], [1], 3, 5, 1, [2, -2], solver=solver).status == "infeasible"
    assert min_cost_flow([], [], 0, 0, 0, [], solver=solver).optimal
    assert min_cost_flow([], [], [], [], [], [0, 0], solver=solver).cost == 0


@pytest.mark.parametrize("solver", SOLVERS)
def test_negative_cycles_and_self_loops_are_saturated(solver):
    answer = min_cost_flow([0, 1, 0, 1], [1, 0, 1, 1], 1, [5, 5, 3, 4], [-3, 1, -2, -7], [2, -2], solver=solver)
    assert answer.flow.tolist() == [5, 5, 2, 4]
    assert answer.cost == -15 + 5 - 4 - 28
    assert min_cost_flow([0], [0], 2, 4, 7, [0], solver=solver).flow.tolist() == [2]


@pytest.mark.parametrize("solver", SOLVERS)
def test_cost_is_exact_beyond_64_bits(solver):
    large = 1 << 57
    answer = min_cost_flow([0], [1], 0, large, large, [large, -large], solver=solver)
    assert answer.cost == large * large


@pytest.mark.parametrize(
    ("field", "arguments"),
    [
        ("tail", ([2], [1], 0, 1, 1, [0, 0])),
        ("head", ([0], [-1], 0, 1, 1, [0, 0])),
        ("head", ([0, 1], [1], 0, 1, 1, [0, 0])),
        ("lower", ([0], [1], -1, 1, 1, [0, 0])),
        ("capacity", ([0], [1], 2, 1, 1, [0, 0])),
        ("capacity", ([0], [1], 0, 1 << 60, 1, [0, 0])),
        ("capacity", ([0], [1], 0, np.array([1 << 63], dtype=np.uint64), 1, [0, 0])),
        ("cost", ([0], [1], 0, 1, 0.5, [0, 0])),
        ("cost", ([0, 0], [1, 1], 0, 1, [1], [0, 0])),
        ("cost", ([0], [1], 0, 1, 1 << 59, [0, 0])),
        ("supply", ([0], [1], 0, 1, 1, [1 << 58, -(1 << 58)])),
        ("supply", ([0], [1], 0, 1, 1, [[0], [0]])),
    ],
)
def test_invalid_input_names_the_field_and_a_remedy(field, arguments):
    with pytest.raises(InputError) as problem:
        min_cost_flow(*arguments)
    assert problem.value.field == field
    assert problem.value.remedy


def test_unknown_solver_error_suggests_the_nearest():
    with pytest.raises(UnknownNameError, match="did you mean 'successive_shortest_path'"):
        min_cost_flow([], [], 0, 0, 0, [], solver="successive-shortest-path")


def test_costs_beyond_a_solver_are_rejected_and_the_suggested_solver_accepts_them():
    n = 1000
    arcs = range(n - 1), range(1, n), 0, 5
    cost = np.full(n - 1, (1 << 46) - 1)
    cost[0] -= 1  # else a common divisor makes them small
    supply = np.zeros(n, dtype=np.int64)
    supply[0], supply[-1] = 4, -4
    with pytest.raises(InputError, match="too large") as problem:
        min_cost_flow(*arcs, cost, supply)
    assert "successive_shortest_path" in problem.value.remedy
    assert min_cost_flow(*arcs, cost, supply, solver="successive_shortest_path").cost == 4 * int(cost.sum())


def test_a_common_divisor_leaves_room_for_large_costs():
    n = 1000
    supply = np.zeros(n, dtype=np.int64)
    supply[0], supply[-1] = 4, -4
    for solver in SOLVERS:
        assert min_cost_flow(range(n - 1), range(1, n), 0, 5, 1 << 46, supply, solver=solver).cost == 4 * (n - 1) << 46


def test_scaling_rounds_to_millionths_and_rejects_costs_out_of_range():
    assert scaled(np.array([0.5, -1.0, 1.4e-6, 2.5e-6, 1e9])).tolist() == [SCALE // 2, -SCALE, 1, 2, 10**15]
    assert scaled(np.array([])).dtype == np.int64
    for wrong in (np.nan, np.inf, -1e13, 1e305):
        with pytest.raises(InputError, match="arc 1") as problem:
            scaled(np.array([0.0, wrong]))
        assert problem.value.field == "cost"
