"""Small random batch problems, and their optimum by exhaustive search."""

import math
from dataclasses import replace
from itertools import product

import numpy as np
from hypothesis import strategies as st

from poolwise.batch.problem.assignment import Assignment, Solution
from poolwise.batch.problem.check import SLACK
from poolwise.batch.problem.definition import Batch, Modules, Problem
from poolwise.batch.search.relaxation import Relaxation
from poolwise.kernels.batch.fill import FillCosts
from poolwise.performance.profiles import Profile

CONVEX = (
    Profile("steep", (0, 0.25, 0.5, 0.75), (0, 0.4, 1.3, 3.0)),
    Profile("flat", (0, 0.25, 0.5, 0.75), (0, 0.0, 0.05, 0.3)),
    Profile("line", (0, 0.75), (0, 0.6), 0.5),
)
CONCAVE = Profile("concave", (0, 0.25, 0.5, 0.75), (0, 0.5, 0.6, 0.65))


def linear_bound(problem: Problem, *, fixed: bool) -> float:
    """Return the optimum of the aggregated relaxation; infinity if it is infeasible, NaN if the solver failed."""
    answer = Relaxation.of(problem, fixed=fixed).program.solve()
    return math.inf if answer.status == "infeasible" else answer.objective if answer.status == "optimal" else math.nan


tolerances = st.integers(0, 1500).map(lambda thousandths: thousandths / 1000)
"""Tolerances of slowdown. One below a linear solver's tolerance of 1e-7 would be met or missed by rounding alone."""


@st.composite
def problems(draw, most: int = 4, modules: int = 3, concave: bool = False, remote: float | None = None):
    n, m = draw(st.integers(1, most)), draw(st.integers(1, modules))
    whole, numbers = st.integers, st.floats
    profiles = (*CONVEX, CONCAVE) if concave else CONVEX
    batch = Batch(
        tuple(f"w{k}" for k in range(n)),
        np.array(draw(st.lists(whole(1, 8), min_size=n, max_size=n))),
        np.array(draw(st.lists(numbers(1, 2), min_size=n, max_size=n))),
        np.array(draw(st.lists(whole(20, 120), min_size=n, max_size=n)), dtype=float),
        np.array(draw(st.lists(tolerances, min_size=n, max_size=n))),
        np.zeros(n, dtype=np.int64),
        tuple(draw(st.sampled_from(profiles)) for _ in range(n)),
    )
    types = [(16, 2.0, 130.0, 1.6, 0.6), (10, 1.5, 130.0, 1.2, 0.4), (6, 1.0, 90.0, 0.7, 0.3)]
    rows = [types[k] for k in draw(st.lists(whole(0, 2), min_size=m, max_size=m))]
    cores, frequency, memory, static, dynamic = (np.array(column) for column in zip(*rows, strict=True))
    on = np.array(draw(st.lists(st.booleans(), min_size=m, max_size=m)))
    machine = Modules(tuple(f"c{k}" for k in range(m)), cores, frequency, memory, static, dynamic, cores.copy(), on)
    return Problem(
        batch,
        machine,
        draw(numbers(0, 300)) if remote is None else remote,
        draw(st.sampled_from([0.0, 0.3, 0.5, 0.8, 1.0])),
        draw(st.sampled_from(["printed", "relative"])),
        draw(st.booleans()),
    )


def brute_force(problem: Problem) -> Solution | None:
    """Try all assignments, with memory filled in every order that a greedy could take, which is exact for convex curves."""
    best = None
    for modules in product(range(len(problem.modules)), repeat=len(problem.batch)):
        local = np.ones(len(problem.batch))
        for c in set(modules):
            rows = [w for w, d in enumerate(modules) if d == c]
            shares = fill(problem, c, rows)
            if shares is None:
                break
            local[rows] = shares
        else:
            solution = Solution(problem, Assignment(np.array(modules), local))
            outside = float(((1 - local) * problem.batch.memory).sum())
            # `fill` computes shares to within 1e-9 MiB, even without any remote memory
            if outside <= problem.remote * (1 + 1e-9) + 1e-9 and (best is None or solution.objective < best.objective):
                best = solution
    return best


def relaxed(problem: Problem) -> Problem:
    """Return the problem with the memory that the checker tolerates: no valid assignment is better than its optimum."""
    modules = replace(problem.modules, memory=problem.modules.memory * (1 + SLACK))
    return replace(problem, modules=modules, remote=problem.remote * (1 + SLACK) + SLACK)


def fill(problem: Problem, c: int, rows: list[int]) -> np.ndarray | None:
    """Return the minimum shares, extended step by step for the workload that gains most per MiB on its own curve."""
    g = int(problem.groups.of_module[c])
    if sum(int(problem.batch.cores[w]) for w in rows) > int(problem.modules.free_cores[c]):
        return None
    if any(not problem.allowed[w, g] for w in rows):
        return None
    least = np.array([problem.least[w, g] for w in rows])
    size = problem.batch.memory[rows]
    left = float(problem.modules.memory[c]) - float((least * size).sum())
    if left < -1e-9:
        return None
    share = least.copy()
    while left > 1e-9:
        gains = []
        for k, w in enumerate(rows):
            # up to the next knot of the curve, or to the start of clipping
            marks = [1 - r for r in problem.batch.profile[w].remote] + [1 - float(problem.harmless[w, g]), 1.0]
            above = [x for x in marks if x > share[k] + 1e-12]
            if above:
                until = min(above)
                here = problem.slowdown(np.array([w, w]), np.array([g, g]), np.array([share[k], until]))
                gains.append(((here[0] - here[1]) / ((until - share[k]) * size[k]), k, until))
        if not gains:
            break
        _, k, until = max(gains, key=lambda entry: entry[0])
        step = min((until - share[k]) * size[k], left)
        share[k] += step / size[k]
        left -= step
    return np.minimum(share, 1.0)


def set_cost(costs: FillCosts, g: int, items: np.ndarray) -> tuple[float, float]:
    """Return the cost of a set in one bin of kind g with its best shares, and MiB without room there."""
    pieces = sorted(int(k) for w in items for k in costs.rank[g, w])  # by descending gain
    left = float(costs.room[g] - costs.need[g, items].sum())
    value = float(costs.opening[g] + costs.base[g, items].sum())
    for k in pieces:
        share = min(max(left, 0.0), float(costs.width[g, k]))
        value -= share * float(costs.gain[g, k])
        left -= share
    return value, max(0.0, float(costs.size[items].sum() - costs.room[g]))
