"""Checker: it finds each violated constraint, and no others."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings

from poolwise.batch.methods.place import example
from poolwise.batch.problem.assignment import Assignment
from poolwise.batch.problem.check import check_assignment
from tests.helpers.batch_problems import problems


def violated(problem, module, local):
    return set(check_assignment(problem, Assignment(np.array(module), np.array(local, dtype=float))).count())


def test_each_violated_constraint_is_found():
    problem = example()  # two workloads of 2 cores and 100 MiB, two modules of 8 cores and 150 MiB
    assert violated(problem, [0, 1], [1, 1]) == set()
    assert violated(problem, [0, -1], [1, 1]) == {"4b"}
    assert violated(problem, [0, 0], [1, 1]) == {"4d, 4f"}
    assert violated(problem, [0, 1], [0.2, 1]) == {"4h", "4j"}
    assert violated(problem, [0, 1], [1.1, 1]) == {"4l"}
    assert violated(replace(problem, remote=10.0), [0, 0], [0.75, 0.75]) == {"4g"}
    slow = replace(problem, batch=replace(problem.batch, frequency=np.array([1.0, 2.5])))
    assert violated(slow, [0, 1], [1, 1]) == {"4j"}
    assert violated(replace(slow, theta="printed"), [0, 1], [1, 1]) == set()
    crowded = replace(problem, modules=replace(problem.modules, free_cores=np.array([3, 8])))
    assert violated(crowded, [0, 0], [0.75, 0.75]) == {"4c, 4e"}


def test_static_energy_counts_once_per_module_and_not_if_it_is_on():
    problem = replace(example(), eta=1.0)
    together = check_assignment(problem, Assignment(np.array([0, 0]), np.array([0.75, 0.75]))).objective
    apart = check_assignment(problem, Assignment(np.array([0, 1]), np.array([1.0, 1.0]))).objective
    assert apart - together == pytest.approx(1.0)
    lit = replace(problem, modules=replace(problem.modules, on=np.array([True, False])))
    assert together - check_assignment(lit, Assignment(np.array([0, 0]), np.array([0.75, 0.75]))).objective == pytest.approx(
        1.0
    )


@settings(max_examples=50, deadline=None)
@given(problems(concave=True))
def test_equation_6_gives_the_minimum_accepted_share(problem):
    for w, g in np.argwhere(~np.isnan(problem.least)).tolist():
        least, tolerance = float(problem.least[w, g]), float(problem.batch.tolerance[w])
        at = np.array([w]), np.array([g])
        assert problem.slowdown(*at, np.array([least]))[0] <= tolerance + 1e-9
        floor = max(problem.least_local, 1 - problem.batch.profile[w].remote[-1])
        if least > floor + 1e-6:
            assert problem.slowdown(*at, np.array([least - 1e-6]))[0] > tolerance - 1e-12
    for w, g in np.argwhere(np.isnan(problem.least)).tolist():
        assert problem.slowdown(np.array([w]), np.array([g]), np.array([1.0]))[0] > problem.batch.tolerance[w]
