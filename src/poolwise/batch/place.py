"""Our own way of placing a batch: guided best fit, annealing, and column generation where the time allows.

It optimises DWLP itself: local memory is shared out anew inside every move, so shares are never fixed beforehand.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from poolwise.batch.assignment import Solution
from poolwise.batch.costs import costs_of
from poolwise.batch.first_fit import FirstFit
from poolwise.batch.heep import Heep
from poolwise.batch.method import Limit, Method
from poolwise.batch.problem import Problem
from poolwise.batch.search import HOT, LARGE, Guide, Late, Packing, assignment_of, fit, improve, most_items, rebuild, squeeze
from poolwise.batch.shrink import place_most
from poolwise.kernels.batch.fill import Costs
from poolwise.kernels.batch.search import best_fit, total

MOVES_PER_SECOND = 350_000
"""Moves of annealing for each second of time limit: the same number on every machine, so that answers are the same. The
clock only guards: on a machine too slow for it the search ends early and the answer says so."""
SEARCH_ONLY = 0.3
"""Seconds below which the whole time goes to the search, for a batch of the usual size; the square of that for larger."""
USUAL = 150
"""Workloads for which that was measured."""
SEARCH_SHARE, SEARCH_MOST = 0.1, 2.0
"""Share of a longer time limit that the search gets before column generation, and the most seconds that help it."""
POLISH_SHARE, WARM = 0.1, 0.02
"""Share of the time for annealing after a dive, and the temperature it begins at."""
PRICES = 8
"""Times that the price of remote memory is raised before it counts as too small."""


@dataclass(frozen=True)
class Place(Method):
    """Guided best fit, annealing with water filling inside every move, then column generation and a restricted master.

    Parameters
    ----------
    seed
        Seed of the annealing.
    moves_per_second
        Moves for each second of the time limit.
    guard
        Whether the clock may end the search early; without it the answer depends on nothing but the inputs.
    """

    seed: int = 0
    moves_per_second: int = MOVES_PER_SECOND
    guard: bool = True

    def solve(self, problem: Problem, limit: Limit) -> Solution:
        """Place the batch within the time limit; the bound is of DWLP."""
        return place_most(problem, lambda part: self._attempt(part, limit))

    def late(self, limit: Limit, share: float) -> bool:
        """Whether a share of the time limit is over; never without the guard."""
        return self.guard and limit.spent > limit.seconds * share

    def polish(self, costs: Costs, packing: Packing, limit: Limit) -> Packing | None:
        """Place what a packing leaves out where it costs least, and anneal it gently."""
        bins = rebuild(costs, packing, most_items(costs))
        if best_fit(costs, bins, np.flatnonzero(packing.slot < 0), False):
            return None
        start = Packing(bins.where.copy(), bins.kind.copy(), total(bins), 0)
        moves = int(limit.seconds * POLISH_SHARE * self.moves_per_second)
        return improve(costs, start, bins, moves, self.seed, lambda: self.late(limit, 1.0), WARM)[0]

    def prepare(self) -> None:
        """Load the kernels, or compile them if no process has before: what is no part of any time limit."""
        self._attempt(example(), Limit(SEARCH_ONLY))

    def _attempt(self, problem: Problem, limit: Limit) -> Solution | None:
        if not len(problem.batch):
            return None
        generate = limit.seconds >= SEARCH_ONLY * max(1.0, len(problem.batch) / USUAL) ** 2
        share = SEARCH_SHARE if generate else 1.0
        seconds = min(limit.seconds * share, SEARCH_MOST) if generate else limit.seconds
        rate = self.moves_per_second / (1 + max(0, len(problem.batch) - USUAL) / 5000)  # larger batches leave the caches
        price, found, greedy = 0.0, None, greedy_packings(problem, limit)
        for _ in range(PRICES):
            costs = costs_of(problem, price)
            found = self._search(costs, greedy, int(seconds * rate), lambda: self.late(limit, share))
            if found is None or outside(costs, found[0]) <= problem.remote * (1 + 1e-9):
                break
            price = max(4 * price, _first_price(costs))
        if found is None or outside(costs, found[0]) > problem.remote * (1 + 1e-9):
            return None
        packing, prices, done = found
        if price > 0:  # these prices charge for remote memory: they prove nothing about the problem as it stands
            prices = Guide.of(costs_of(problem))
        notes = () if done else ("the clock ended the search early: on this machine the answer depends on its speed",)
        solution = Solution(problem, assignment_of(problem, costs, packing), "placed", prices.bound, "DWLP (linear program)")
        if generate:
            from poolwise.batch.columns import refine  # brings the solver, which a short search does not need

            solution = refine(solution, [packing], prices, limit, self)
        return replace(solution, notes=(*solution.notes, *notes))

    def _search(self, costs: Costs, greedy: list[Packing], moves: int, late: Late) -> tuple[Packing, Guide, bool] | None:
        prices = Guide.of(costs)
        start, bins = fit(costs, prices)
        for known in greedy:
            other = rebuild(costs, known, most_items(costs))
            if start.left or total(other) < start.cost:
                start, bins = Packing(other.where.copy(), other.kind.copy(), total(other), 0), other
        if start.left:
            start, bins = squeeze(costs, self.seed, late)
            if start.left:
                return None
        hot = HOT if len(costs.load) < LARGE else WARM  # a few moves an item are too few to cool down from more
        packing, done = improve(costs, start, bins, moves, self.seed, late, hot)
        return packing, prices, done


def greedy_packings(problem: Problem, limit: Limit) -> list[Packing]:
    """What HEEP and first fit do, where it is valid: the search begins no worse than they end."""
    found = []
    for method in (Heep(), FirstFit()):
        assignment = method.solve(problem, limit).assignment
        groups = problem.groups.of_module[assignment.module]
        rows = np.arange(len(problem.batch))
        if (assignment.module >= 0).all() and (assignment.local >= problem.least[rows, groups] - 1e-12).all():
            _, slot = np.unique(assignment.module, return_inverse=True)
            kind = np.zeros(len(rows), dtype=np.int64)
            kind[slot] = groups
            found.append(Packing(slot.astype(np.int64), kind, np.inf, 0))
    return found


def outside(costs: Costs, packing: Packing) -> float:
    """MiB that a packing leaves to remote memory: what exceeds each module's room, however it is shared."""
    return sum(max(0.0, float(costs.size[items].sum() - costs.room[g])) for g, items in packing.sets())


def _first_price(costs: Costs) -> float:
    """A price of remote memory that is felt but changes little: a hundredth of the largest saving per MiB."""
    saving = float(costs.gain.max()) if costs.gain.size else 0.0
    return max(saving, float(costs.opening.max()) / float(costs.room.max()), 1e-9) / 100


def example() -> Problem:
    """Build a problem of two workloads, to run every kernel once."""
    from poolwise.batch.problem import Batch, Modules
    from poolwise.performance.profiles import find_profile

    ones, two = np.ones(2), np.array([2, 2])
    batch = Batch(("a", "b"), two, ones, 100 * ones, ones, 0 * two, (find_profile("kmeans"),) * 2)
    modules = Modules(("c", "d"), 4 * two, ones, 150 * ones, ones, ones, 4 * two, np.zeros(2, dtype=np.bool_))
    return Problem(batch, modules, 1000.0)
