"""Costs of a solution, computed workload by workload."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from poolwise.batch.methods.method import Limit, find_method
from poolwise.batch.methods.place import example
from poolwise.batch.problem.assignment import Solution
from tests.helpers.batch_problems import problems


@settings(max_examples=40, deadline=None)
@given(problems(most=5, modules=3, concave=True), st.sampled_from(["first-fit", "heep"]))
def test_completion_slowdown_energy_and_objective(problem, method):
    solution = find_method(method).solve(problem, Limit.by_work(1))
    batch, modules = problem.batch, problem.modules
    completion, thetas, energy = [], [], 0.0
    used = set()
    for w, (m, local) in enumerate(zip(solution.assignment.module.tolist(), solution.assignment.local.tolist(), strict=True)):
        if m < 0:
            assert math.isnan(solution.completion[w]) and math.isnan(solution.theta[w])
            continue
        memory = 1 + float(batch.profile[w].at(1 - local))  # (1 + P^m): slowdown by remote memory
        share, ratio = batch.profile[w].frequency_share, float(batch.frequency[w]) / float(modules.frequency[m])
        pace = 1 - share + share * ratio  # phi / F if all time scales with the frequency: longer on a slower module
        completion.append(memory * pace)
        theta = (memory - 1) * pace if problem.theta == "printed" else memory * pace - 1
        thetas.append(max(0.0, theta) if problem.clip else theta)
        assert solution.completion[w] == pytest.approx(completion[-1])
        assert solution.theta[w] == pytest.approx(thetas[-1], abs=1e-9)
        energy += float(modules.dynamic[m] * batch.cores[w] / modules.cores[m])
        used.add(m)
    energy += sum(float(modules.static[m]) for m in used if not modules.on[m])
    assert solution.energy == pytest.approx(energy)
    slowdown, weight = problem.weights
    assert solution.objective == pytest.approx(slowdown * sum(thetas) + weight * energy)


@pytest.mark.parametrize(
    ("bound", "gap"), [(8.0, 0.25), (10.0, 0.0), (-5.0, 3.0), (0.0, math.inf), (math.nan, math.nan), (10 + 1e-9, 0.0)]
)
def test_gap_is_relative_to_the_bound(bound, gap):
    class Ten(Solution):
        objective = 10.0

    solution = find_method("first-fit").solve(example(), Limit.by_work(1))
    assert Ten(solution.problem, solution.assignment, bound=bound).gap == pytest.approx(gap, nan_ok=True)
