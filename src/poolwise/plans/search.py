"""The search for the cheapest candidate, with its neighbours and its rival, and a check of what the search assumes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from poolwise.arrays import FloatArray
from poolwise.optimize.monotone import Element, below, cheapest
from poolwise.plans.candidates import CandidateRuns, Verdict
from poolwise.plans.targets import Target


@dataclass(frozen=True)
class Sensitivity:
    """The cheapest candidate had the targets been moved by a share of themselves; None where nothing keeps them."""

    share: float
    targets: tuple[Target, ...]
    element: Element | None


@dataclass(frozen=True)
class Search:
    """What a search found.

    Attributes
    ----------
    best : cheapest candidate shown to keep the targets
    open : cheapest candidate not shown to break them, where it is cheaper than `best`
    rival : cheapest other way to keep them: not the best one with more of something; along one axis the next size
    sensitivity : the same for tighter and looser targets
    verdicts : every candidate that was judged on the plan's targets
    worse : pairs x <= y such that y keeps a target worse than x does, as surely as verdicts are
    pairs : pairs that were compared for that
    elsewhere : cheapest candidate shown to keep the targets at each of the other prices, None where nothing keeps them
    """

    best: Element | None
    open: Element | None
    rival: Element | None
    sensitivity: tuple[Sensitivity, ...]
    verdicts: dict[Element, Verdict]
    worse: tuple[tuple[Element, Element, Target], ...]
    pairs: int
    elsewhere: tuple[Element | None, ...] = ()


def search(
    trials: CandidateRuns, cost: FloatArray, share: float, checks: int, other_costs: Sequence[FloatArray] = ()
) -> Search:
    """Find the cheapest candidate and what surrounds it.

    Parameters
    ----------
    cost
        (n_1, ..., n_d) $ of each candidate.
    share
        By how much targets are moved for the sensitivity; 0 for none.
    checks
        Candidates to judge that the assumption alone ruled out, those nearest below the best in cost.
    other_costs
        (n_1, ..., n_d) each: $ of each candidate at other prices, under which the cheapest is looked for too.
    """
    verdicts: dict[Element, Verdict] = {}

    def judge(element: Element) -> Verdict:
        if element not in verdicts:
            verdicts[element] = trials.judge(element)
        return verdicts[element]

    judge(trials.largest)
    while True:
        best = _settle(cost, judge, checks, verdicts)
        open_ = cheapest(cost, lambda element: judge(element).state != "breaks", _may_keep(verdicts))
        rival = None if best is None else _rival(cost, judge, best, verdicts)
        elsewhere = tuple(cheapest(other, lambda e: judge(e).state == "keeps", _keeps(verdicts)) for other in other_costs)
        if best == cheapest(cost, lambda e: judge(e).state == "keeps", _keeps(verdicts)):
            break  # what was seen on the way to the others leaves the best one where it was
    if open_ == best:
        open_ = None
    moved = [] if share == 0 else [_moved(trials, cost, s, verdicts) for s in (share, -share)]
    worse, pairs = _worse(trials, verdicts)
    return Search(best, open_, rival, tuple(moved), verdicts, worse, pairs, elsewhere)


def neighbours(element: Element, shape: tuple[int, ...]) -> list[tuple[int, Element]]:
    """(axis, candidate) one step down and up along each axis, as far as the grid goes."""
    steps = [(axis, step) for axis in range(len(shape)) for step in (-1, 1) if 0 <= element[axis] + step < shape[axis]]
    return [(axis, (*element[:axis], element[axis] + step, *element[axis + 1 :])) for axis, step in steps]


Judge = Callable[[Element], Verdict]


# What is undecided by itself may be decided by the assumption. Only keeping with less and breaking with more contradicts it.


def _keeps(verdicts: dict[Element, Verdict]) -> dict[Element, bool]:
    keep = [element for element, verdict in verdicts.items() if verdict.state == "keeps"]
    return {
        element: verdict.state == "keeps" or (verdict.state == "undecided" and any(below(x, element) for x in keep))
        for element, verdict in verdicts.items()
    }


def _may_keep(verdicts: dict[Element, Verdict]) -> dict[Element, bool]:
    broken = [element for element, verdict in verdicts.items() if verdict.state == "breaks"]
    return {
        element: verdict.state == "keeps" or (verdict.state == "undecided" and not any(below(element, y) for y in broken))
        for element, verdict in verdicts.items()
    }


def _settle(cost: FloatArray, judge: Judge, checks: int, verdicts: dict[Element, Verdict]) -> Element | None:
    """Search, look around the result, and search again with what was seen there until the result stays."""

    def holds(element: Element) -> bool:
        return judge(element).state == "keeps"

    best = cheapest(cost, holds, _keeps(verdicts))
    while best is not None:
        for _, element in neighbours(best, cost.shape):
            judge(element)
        for element in _nearest_below(cost, best, verdicts, checks):
            judge(element)
        again = cheapest(cost, holds, _keeps(verdicts))
        if again == best:
            break
        best = again
    return best


def _nearest_below(cost: FloatArray, best: Element, verdicts: dict[Element, Verdict], count: int) -> Sequence[Element]:
    """The dearest candidates cheaper than the best that nobody has judged."""
    found: list[Element] = []
    for place in np.argsort(cost, axis=None, kind="stable")[::-1]:
        element = tuple(int(k) for k in np.unravel_index(place, cost.shape))
        if len(found) == count:
            break
        if cost[element] < cost[best] and element not in verdicts:
            found.append(element)
    return found


def _rival(cost: FloatArray, judge: Judge, best: Element, verdicts: dict[Element, Verdict]) -> Element | None:
    if cost.ndim == 1:
        above = (best[0] + 1,)
        return above if above[0] < cost.shape[0] and judge(above).state == "keeps" else None
    others = np.ones(cost.shape, dtype=np.bool_)
    others[tuple(slice(k, None) for k in best)] = False
    return cheapest(cost, lambda element: judge(element).state == "keeps", _keeps(verdicts), others)


def _moved(trials: CandidateRuns, cost: FloatArray, share: float, verdicts: dict[Element, Verdict]) -> Sensitivity:
    targets = tuple(target.tightened(share) for target in trials.targets)
    # What breaks the targets breaks tighter ones, what keeps them keeps looser ones.
    state, answer = ("breaks", False) if share > 0 else ("keeps", True)
    known = {element: answer for element, verdict in verdicts.items() if verdict.state == state}
    found = cheapest(cost, lambda element: trials.judge(element, targets).state == "keeps", known)
    return Sensitivity(share, targets, found)


def _worse(trials: CandidateRuns, verdicts: dict[Element, Verdict]) -> tuple[tuple[tuple[Element, Element, Target], ...], int]:
    """Compare every pair of judged candidates of which one has all that the other has: the larger must not be worse."""
    found: list[tuple[Element, Element, Target]] = []
    finished = {element: verdict for element, verdict in verdicts.items() if not verdict.unfinished}
    pairs = [(x, y) for x in finished for y in finished if x != y and below(x, y)]
    for x, y in pairs:
        seeds = min(finished[x].seeds, finished[y].seeds)
        for target in trials.targets:
            gained = trials.margins(y, target, seeds) - trials.margins(x, target, seeds)
            if trials.interval(gained).high < 0:
                found.append((x, y, target))
    return tuple(found), len(pairs)
