"""Search for the cheapest candidate, its neighbors and its runner-up, with a check of the search's monotonicity assumption."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from poolwise.arrays import FloatArray
from poolwise.optimize.monotone import Element, below, cheapest
from poolwise.plans.candidates import CandidateRuns, CandidateVerdict
from poolwise.plans.targets import Target


@dataclass(frozen=True)
class Sensitivity:
    """The cheapest candidate if all targets are tightened by a share of their bounds; None if no candidate meets them."""

    share: float
    targets: tuple[Target, ...]
    element: Element | None


@dataclass(frozen=True)
class Search:
    """Result of a search.

    Attributes
    ----------
    best : cheapest candidate shown to meet the targets
    open : cheapest candidate that is not shown to miss the targets, if it is cheaper than `best`
    rival : cheapest alternative that meets the targets and is not merely `best` with larger sizes; with one size, the next
        value
    sensitivity : cheapest candidates for tighter and looser targets
    verdicts : verdict of every simulated candidate on the plan's targets
    worse : pairs x <= y such that y meets a target by a smaller margin than x, with the certainty of verdicts
    pairs : number of pairs compared for `worse`
    elsewhere : for each of the other prices, the cheapest candidate shown to meet the targets; None if there is none
    """

    best: Element | None
    open: Element | None
    rival: Element | None
    sensitivity: tuple[Sensitivity, ...]
    verdicts: dict[Element, CandidateVerdict]
    worse: tuple[tuple[Element, Element, Target], ...]
    pairs: int
    elsewhere: tuple[Element | None, ...] = ()


def search(runs: CandidateRuns, cost: FloatArray, share: float, checks: int, other_costs: Sequence[FloatArray] = ()) -> Search:
    """Find the cheapest candidate, its runner-up and its sensitivity.

    Parameters
    ----------
    runs
        Runs of the candidates.
    cost
        (n_1, ..., n_d) cost of each candidate, $.
    share
        Fraction of its bound by which each target is tightened and loosened for the sensitivity; 0 for no sensitivity.
    checks
        Number of candidates to judge although the monotonicity assumption rules them out; the most expensive ones below the
        best come first.
    other_costs
        Arrays (n_1, ..., n_d): cost of each candidate ($) at other prices, for which the cheapest candidate is also searched.
    """
    verdicts: dict[Element, CandidateVerdict] = {}

    def judge(element: Element) -> CandidateVerdict:
        if element not in verdicts:
            verdicts[element] = runs.judge(element)
        return verdicts[element]

    judge(runs.largest)
    while True:
        best = _settle(cost, judge, checks, verdicts)
        open_ = cheapest(cost, lambda element: judge(element).state != "breaks", _may_keep(verdicts))
        rival = None if best is None else _rival(cost, judge, best, verdicts)
        elsewhere = tuple(cheapest(other, lambda e: judge(e).state == "keeps", _keeps(verdicts)) for other in other_costs)
        moved = [] if share == 0 else [_moved(runs, cost, s, judge, verdicts) for s in (share, -share)]
        if best == cheapest(cost, lambda e: judge(e).state == "keeps", _keeps(verdicts)):
            break  # verdicts from the search for the others did not change the best one
    if open_ == best:
        open_ = None
    worse, pairs = _worse(runs, verdicts)
    return Search(best, open_, rival, tuple(moved), verdicts, worse, pairs, elsewhere)


def neighbors(element: Element, shape: tuple[int, ...]) -> list[tuple[int, Element]]:
    """Return pairs (axis, candidate): the candidates one step down and up along each axis, within the grid."""
    steps = [(axis, step) for axis in range(len(shape)) for step in (-1, 1) if 0 <= element[axis] + step < shape[axis]]
    return [(axis, (*element[:axis], element[axis] + step, *element[axis + 1 :])) for axis, step in steps]


Judge = Callable[[Element], CandidateVerdict]


# The assumption can decide candidates that are undecided on their own. Meeting with less and missing with more override it.


def _keeps(verdicts: dict[Element, CandidateVerdict]) -> dict[Element, bool]:
    keep = [element for element, verdict in verdicts.items() if verdict.state == "keeps"]
    return {
        element: verdict.state == "keeps" or (verdict.state == "undecided" and any(below(x, element) for x in keep))
        for element, verdict in verdicts.items()
    }


def _may_keep(verdicts: dict[Element, CandidateVerdict]) -> dict[Element, bool]:
    broken = [element for element, verdict in verdicts.items() if verdict.state == "breaks"]
    return {
        element: verdict.state == "keeps" or (verdict.state == "undecided" and not any(below(element, y) for y in broken))
        for element, verdict in verdicts.items()
    }


def _settle(cost: FloatArray, judge: Judge, checks: int, verdicts: dict[Element, CandidateVerdict]) -> Element | None:
    """Search, judge the neighbors of the result, and repeat with their verdicts until the result is stable."""

    def holds(element: Element) -> bool:
        return judge(element).state == "keeps"

    best = cheapest(cost, holds, _keeps(verdicts))
    while best is not None:
        for _, element in neighbors(best, cost.shape):
            judge(element)
        for element in _nearest_below(cost, best, verdicts, checks):
            judge(element)
        again = cheapest(cost, holds, _keeps(verdicts))
        if again == best:
            break
        best = again
    return best


def _nearest_below(cost: FloatArray, best: Element, verdicts: dict[Element, CandidateVerdict], count: int) -> Sequence[Element]:
    """Return the most expensive candidates below the best in cost that have not been judged."""
    cheaper: list[Element] = []
    for place in np.argsort(cost, axis=None, kind="stable")[::-1]:
        element = tuple(int(k) for k in np.unravel_index(place, cost.shape))
        if len(cheaper) == count:
            break
        if cost[element] < cost[best] and element not in verdicts:
            cheaper.append(element)
    return cheaper


def _rival(cost: FloatArray, judge: Judge, best: Element, verdicts: dict[Element, CandidateVerdict]) -> Element | None:
    if cost.ndim == 1:
        above = (best[0] + 1,)
        return above if above[0] < cost.shape[0] and judge(above).state == "keeps" else None
    others = np.ones(cost.shape, dtype=np.bool_)
    others[tuple(slice(k, None) for k in best)] = False
    return cheapest(cost, lambda element: judge(element).state == "keeps", _keeps(verdicts), others)


def _moved(
    runs: CandidateRuns, cost: FloatArray, share: float, judge: Judge, verdicts: dict[Element, CandidateVerdict]
) -> Sensitivity:
    targets = tuple(target.tightened(share) for target in runs.targets)
    # A candidate that misses the targets also misses tighter ones; one that meets them also meets looser ones.
    state, answer = ("breaks", False) if share > 0 else ("keeps", True)
    settled = {element: answer for element, verdict in verdicts.items() if verdict.state == state}

    def holds(element: Element) -> bool:
        judge(element)  # on the plan's targets too, so that every simulated candidate has a verdict
        return runs.judge(element, targets).state == "keeps"

    best = cheapest(cost, holds, settled)
    return Sensitivity(share, targets, best)


def _worse(
    runs: CandidateRuns, verdicts: dict[Element, CandidateVerdict]
) -> tuple[tuple[tuple[Element, Element, Target], ...], int]:
    """Return (smaller, larger, target) if the larger of two candidates is worse, and the number of compared pairs."""
    contradictions: list[tuple[Element, Element, Target]] = []
    finished = {element: verdict for element, verdict in verdicts.items() if not verdict.unfinished}
    pairs = [(x, y) for x in finished for y in finished if x != y and below(x, y)]
    for x, y in pairs:
        seeds = min(finished[x].seeds, finished[y].seeds)
        for target in runs.targets:
            gained = runs.margins(y, target, seeds) - runs.margins(x, target, seeds)
            if runs.interval(gained).high < 0:
                contradictions.append((x, y, target))
    return tuple(contradictions), len(pairs)
