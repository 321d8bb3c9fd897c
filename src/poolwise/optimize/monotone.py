"""The cheapest element of a grid at which something holds that, where it holds, holds for everything larger too.

An element is asked about at a time, the one that divides what is left best: along one axis that is bisection, over several
it walks along the border between what holds and what does not. The assumption is not taken on trust: as soon as two
answers contradict it, nothing is concluded from it any more, and every element that could be cheaper is asked about.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from poolwise.arrays import BoolArray, FloatArray, IntArray

Element = tuple[int, ...]
Answers = Mapping[Element, bool]


def cheapest(
    cost: FloatArray, holds: Callable[[Element], bool], known: Answers | None = None, among: BoolArray | None = None
) -> Element | None:
    """Find the cheapest element at which `holds`; of equal ones the first in the order of the array.

    Parameters
    ----------
    cost
        (n_1, ..., n_d) of each element; must not fall along any axis.
    holds
        Asked about elements, each at most once. Assumed monotone: if it holds at x, it holds at every y >= x.
    known
        Answers from before; they are not asked again, and may contradict the assumption.
    among
        (n_1, ..., n_d) elements that may be chosen; all if not given.

    Returns
    -------
    The element, or None if it holds at none of them. It is the true one if `holds` is monotone, or if two answers show that
    it is not; otherwise no answer says so.
    """
    cost = np.asarray(cost, dtype=np.float64)
    _check(cost)
    rank = _ranks(cost)
    answers = dict(known or {})
    left = np.ones(cost.shape, dtype=np.bool_) if among is None else among.copy()
    if contradictions(answers):
        return _in_order(rank, left, holds, answers)
    best = None
    for element, held in answers.items():
        if held and left[element]:
            best = element if best is None or rank[element] < rank[best] else best
        elif not held:
            left[_up_to(element)] = False
    if best is not None:
        left &= rank < rank[best]
    while left.any():
        element = _divide(left, rank)
        if holds(element):
            best = element
            left &= rank < rank[element]
        else:
            left[_up_to(element)] = False
    return best


def contradictions(answers: Answers) -> list[tuple[Element, Element]]:
    """Pairs (x, y), x <= y, such that it holds at x and not at y: none if the answers fit a monotone predicate."""
    held = [x for x, answer in answers.items() if answer]
    failed = [y for y, answer in answers.items() if not answer]
    return [(x, y) for x in held for y in failed if below(x, y)]


def below(x: Element, y: Element) -> bool:
    """Whether x <= y along every axis."""
    return all(a <= b for a, b in zip(x, y, strict=True))


def _check(cost: FloatArray) -> None:
    if np.isnan(cost).any():
        raise ValueError("a cost is NaN")
    for axis in range(cost.ndim):
        if (np.diff(cost, axis=axis) < 0).any():
            raise ValueError(f"the cost falls along axis {axis}")


def _ranks(cost: FloatArray) -> IntArray:
    """Position of each element in the order (cost, place in the array): an order that agrees with `below`."""
    rank = np.empty(cost.size, dtype=np.int64)
    rank[np.argsort(cost, axis=None, kind="stable")] = np.arange(cost.size)
    return rank.reshape(cost.shape)


def _up_to(element: Element) -> tuple[slice, ...]:
    """All elements below one, itself included."""
    return tuple(slice(k + 1) for k in element)


def _divide(left: BoolArray, rank: IntArray) -> Element:
    """Choose the element whose worse answer decides most: if it holds, all dearer ones go, if not, all below it."""
    if_not = left.astype(np.int64)
    for axis in range(left.ndim):
        if_not = np.cumsum(if_not, axis=axis)
    dearer = np.zeros(left.size, dtype=np.int64)
    dearer[rank.ravel()] = left.ravel()
    if_so = np.cumsum(dearer[::-1])[::-1][rank]
    decided = np.where(left, np.minimum(if_not, if_so), -1)
    most = np.flatnonzero(decided == decided.max())
    chosen = most[np.argmin(rank.ravel()[most])]
    return tuple(int(k) for k in np.unravel_index(chosen, left.shape))


def _in_order(
    rank: IntArray, left: BoolArray, holds: Callable[[Element], bool], answers: dict[Element, bool]
) -> Element | None:
    """Ask about everything from the cheapest on: slow, and right whatever the predicate."""
    for place in np.argsort(rank, axis=None):
        element = tuple(int(k) for k in np.unravel_index(place, rank.shape))
        if left[element] and (answers[element] if element in answers else holds(element)):
            return element
    return None
