"""Poolwise's own method: guided best fit, exchanges and annealing, then column generation and diving.

It optimizes DWLP itself: every move divides the local memory from scratch, so shares are never fixed beforehand.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from poolwise.batch.methods.first_fit import FirstFit
from poolwise.batch.methods.heep import Heep
from poolwise.batch.methods.method import Limit, Method
from poolwise.batch.methods.shrink import place_most
from poolwise.batch.problem.assignment import AssignmentStatus, BoundOf, Solution
from poolwise.batch.problem.definition import Problem
from poolwise.batch.search.costs import costs_of
from poolwise.batch.search.effort import Effort
from poolwise.batch.search.exact_small import FEW, pack_few
from poolwise.batch.search.packing import (
    LARGE,
    BinPacking,
    PackingPrices,
    assignment_of,
    exchange_all,
    fit,
    improve,
    most_items,
    rebuild,
    squeeze,
)
from poolwise.batch.search.refine import FULL, better, is_proven, outside, refine, refine_parts
from poolwise.kernels.batch.fill import FillCosts
from poolwise.kernels.batch.search import total
from poolwise.registry import register

SEARCH_SHARE = 0.4
"""Fraction of the time limit after which the search that precedes column generation ends."""
LINEAR: BoundOf = "DWLP (linear program)"
CONFIGURATIONS: BoundOf = "DWLP"
PRICES = 8
"""Number of times that the price of remote memory is raised before the search gives up."""
CUT = "the time limit ended the search early, so the result depends on the speed of this machine"


@register("methods", "place")
@dataclass(frozen=True)
class Place(Method):
    """Guided best fit, exchanges and annealing with water filling in every move, then column generation and diving.

    Parameters
    ----------
    seed
        Random seed.
    pace
        Units of work per second of the time limit; a limit of work replaces it.
    guard
        Let the clock end the search early. Otherwise the time limit only sets the work, and the result depends only on the
        inputs.
    few
        Maximum number of workloads for which all placements are enumerated instead.
    """

    seed: int = 0
    pace: float = 1.0
    guard: bool = True
    few: int = FEW

    def solve(self, problem: Problem, limit: Limit) -> Solution:
        """Place the batch within the limit; the bound applies to DWLP."""
        return place_most(problem, lambda part: self._attempt(part, Effort.of(limit, self.seed, self.guard, self.pace)))

    def prepare(self) -> None:
        """Load the kernels, or compile them if no process has done so; this does not count towards any time limit."""
        for method in (self, replace(self, few=0)):
            method._attempt(example(), Effort.of(Limit.by_work(0.05)))

    def _attempt(self, problem: Problem, effort: Effort) -> Solution | None:
        if not len(problem.batch):
            return None
        costs = costs_of(problem)
        if len(problem.batch) <= self.few:
            exact = pack_few(costs, problem.remote)
            if exact is None:
                return None
            return Solution(problem, assignment_of(problem, costs, exact), "optimal", exact.cost, CONFIGURATIONS)
        initial = _initial_packing(problem, costs, effort)
        if initial is None:
            return None
        packing, prices = initial
        bound, of = prices.bound, LINEAR
        if len(problem.batch) > LARGE:
            packing = refine_parts(costs, problem.remote, packing, effort)
        else:
            packing, bound = refine(costs, problem.remote, packing, prices, effort)
            of = CONFIGURATIONS
        status: AssignmentStatus = "optimal" if is_proven(packing, bound) else "placed"
        notes = (CUT,) if effort.cut else ()
        return Solution(problem, assignment_of(problem, costs, packing), status, bound, of, notes=notes)


def _initial_packing(problem: Problem, costs: FillCosts, effort: Effort) -> tuple[BinPacking, PackingPrices] | None:
    """Place all workloads within the remote memory, at no higher cost than HEEP or first fit; return None if this fails."""
    greedy, remote = greedy_packings(problem, effort.limit), problem.remote
    packed = _search(costs, greedy, effort)
    if packed is None or outside(costs, packed[0]) <= remote * FULL:
        return packed
    best, price, prices = replace(packed[0], cost=np.inf, left=1), 0.0, packed[1]
    for greedy_packing in greedy:
        best = better(costs, remote, best, BinPacking.of(rebuild(costs, greedy_packing, most_items(costs))))
    for _ in range(PRICES):
        price = max(4 * price, _first_price(costs))
        dear = _search(costs_of(problem, price), greedy, effort)
        if dear is not None and outside(costs, dear[0]) <= remote * FULL:
            best = better(costs, remote, best, BinPacking.of(rebuild(costs, dear[0], most_items(costs))))
            break
    return None if best.left else (best, prices)


def _search(costs: FillCosts, greedy: list[BinPacking], effort: Effort) -> tuple[BinPacking, PackingPrices] | None:
    """Place all workloads; return None if this fails. The result is never worse than any of `greedy`."""
    prices = PackingPrices.of(costs)
    start, bins = fit(costs, prices)
    for greedy_packing in greedy:
        other = rebuild(costs, greedy_packing, most_items(costs))
        if start.left or total(other) < start.cost:
            start, bins = BinPacking.of(other), other
    late = lambda: effort.late(SEARCH_SHARE)  # noqa: E731  # shared by three calls
    if start.left:
        start, bins = squeeze(costs, effort.seed, late)
        if start.left:
            return None
    if len(costs.load) > LARGE:
        return start, prices  # larger batches are improved part by part
    packing, _ = improve(costs, start, bins, effort.moves, effort.seed, late)
    return exchange_all(costs, packing, effort.exchanges, effort.seed, late), prices


def greedy_packings(problem: Problem, limit: Limit) -> list[BinPacking]:
    """Return the valid packings among those of HEEP and first fit, so that the result is never worse than theirs."""
    packings = []
    for method in (Heep(), FirstFit()):
        assignment = method.solve(problem, limit).assignment
        groups = problem.groups.of_module[assignment.module]
        rows = np.arange(len(problem.batch))
        if (assignment.module >= 0).all() and (assignment.local >= problem.least[rows, groups] - 1e-12).all():
            _, slot = np.unique(assignment.module, return_inverse=True)
            kind = np.zeros(len(rows), dtype=np.int64)
            kind[slot] = groups
            packings.append(BinPacking(slot.astype(np.int64), kind, np.inf, 0))
    return packings


def _first_price(costs: FillCosts) -> float:
    """Return a noticeable but small price of remote memory: a hundredth of the largest saving per MiB."""
    saving = float(costs.gain.max()) if costs.gain.size else 0.0
    return max(saving, float(costs.opening.max()) / float(costs.room.max()), 1e-9) / 100


def example() -> Problem:
    """Build a problem of two workloads that runs every kernel once."""
    from poolwise.batch.problem.definition import Batch, Modules
    from poolwise.performance.profiles import find_profile

    ones, two = np.ones(2), np.array([2, 2])
    batch = Batch(("a", "b"), two, ones, 100 * ones, ones, 0 * two, (find_profile("kmeans"),) * 2)
    modules = Modules(("c", "d"), 4 * two, ones, 150 * ones, ones, ones, 4 * two, np.zeros(2, dtype=np.bool_))
    return Problem(batch, modules, 1000.0)
