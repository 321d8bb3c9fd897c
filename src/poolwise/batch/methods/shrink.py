"""Selection of workloads to drop if not all can be placed: lowest priority first, as the paper suggests."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from poolwise.arrays import IntArray
from poolwise.batch.methods.method import impossible, possible
from poolwise.batch.problem.assignment import Assignment, Solution
from poolwise.batch.problem.definition import Problem
from poolwise.batch.search.relaxation import shortages

Attempt = Callable[[Problem], Solution | None]


def place_most(problem: Problem, attempt: Attempt, *, one_by_one: bool = False) -> Solution:
    """Place all workloads; if that fails, place as many of those with the highest priority as possible.

    Workloads that could not run even alone are dropped first, whatever their priority. `attempt` returns None if it finds no
    placement. The set is found by bisection, which assumes that fewer workloads are never harder to place. With `one_by_one`,
    workloads are dropped one at a time instead (Sefati et al., section IV-B).
    """
    hopeless = np.flatnonzero(~possible(problem)).tolist()
    unmet = impossible(problem, hopeless[0]) if hopeless else ""
    order = problem.batch.by_priority
    order = order[~np.isin(order, hopeless)]
    solution = _try(problem, attempt, order)
    if solution is not None:
        return _widen(problem, solution, order, hopeless, unmet)
    unmet = unmet or why(problem.with_batch(np.sort(order)))
    keep, solution = _one_by_one(problem, attempt, order) if one_by_one else _halve(problem, attempt, order)
    return _widen(problem, solution, order[:keep], [*hopeless, *order[keep:][::-1].tolist()], unmet)


def why(problem: Problem) -> str:
    """Return the constraint that the batch as a whole cannot meet."""
    short_resources = shortages(problem)
    if short_resources is None:
        return "found no placement of all workloads; the total shortage is unknown, because the solver failed"
    if short_resources:
        return "; ".join(str(shortage) for shortage in short_resources)
    return (
        "cores (4c), local memory (4d) and remote memory (4g) suffice in total, but no packing of whole workloads into the "
        "modules (4b) was found"
    )


def _try(problem: Problem, attempt: Attempt, rows: IntArray) -> Solution | None:
    rows = np.sort(rows)
    whole = len(rows) == len(problem.batch)
    return attempt(problem if whole else problem.with_batch(rows))


def _one_by_one(problem: Problem, attempt: Attempt, order: IntArray) -> tuple[int, Solution]:
    for keep in range(len(order) - 1, 0, -1):
        solution = _try(problem, attempt, order[:keep])
        if solution is not None:
            return keep, solution
    return 0, _nothing(problem)


def _halve(problem: Problem, attempt: Attempt, order: IntArray) -> tuple[int, Solution]:
    low, high, best = 0, len(order), _nothing(problem)
    while high - low > 1:
        middle = (low + high) // 2
        solution = _try(problem, attempt, order[:middle])
        if solution is None:
            high = middle
        else:
            low, best = middle, solution
    return low, best


def _nothing(problem: Problem) -> Solution:
    none = np.zeros(0, dtype=np.int64)
    return Solution(problem.with_batch(none), Assignment(none, np.zeros(0)))


def _widen(problem: Problem, part: Solution, placed: IntArray, dropped: list[int], unmet: str) -> Solution:
    """Extend a solution for some of the workloads to all of them, with the others not placed."""
    if not dropped:
        return part
    rows = np.sort(placed)
    module, local = np.full(len(problem.batch), -1, dtype=np.int64), np.ones(len(problem.batch))
    module[rows], local[rows] = part.assignment.module, part.assignment.local
    return replace(part, problem=problem, assignment=Assignment(module, local), dropped=tuple(dropped), unmet=unmet)
