"""Cheapest element of a grid that satisfies a monotone predicate: if it holds at x, it holds at every y >= x.

The predicate is evaluated at one element at a time, the element that best divides the remaining ones. Along one axis this is
bisection; along several, it follows the boundary. Monotonicity is verified: as soon as two answers contradict it, it is no
longer assumed, and every element that could be cheaper is evaluated.
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
    """Find the element of least `cost` at which `holds`, the first on ties; None if it holds at none of them.

    The costs (n_1, ..., n_d) must not decrease along any axis. `holds` is evaluated at most once per element, and assumed to be
    monotone: if it holds at x, it holds at every y >= x. `known` answers are not evaluated again, and may contradict this
    assumption. Only elements in the mask `among` may be chosen. The result is correct if `holds` is monotone, or if two answers
    show that it is not; a violation that no answers show remains undetected.
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
    """Return the pairs (x, y), x <= y, for which the predicate holds at x but not at y; none if the answers are monotone."""
    held = [x for x, answer in answers.items() if answer]
    failed = [y for y, answer in answers.items() if not answer]
    return [(x, y) for x in held for y in failed if below(x, y)]


def below(x: Element, y: Element) -> bool:
    """Return whether x <= y along every axis."""
    return all(a <= b for a, b in zip(x, y, strict=True))


def _check(cost: FloatArray) -> None:
    if np.isnan(cost).any():
        raise ValueError("a cost is NaN")
    for axis in range(cost.ndim):
        if (np.diff(cost, axis=axis) < 0).any():
            raise ValueError(f"the cost decreases along axis {axis}")


def _ranks(cost: FloatArray) -> IntArray:
    """Return the position of each element in the order (cost, position in the array), which is compatible with `below`."""
    rank = np.empty(cost.size, dtype=np.int64)
    rank[np.argsort(cost, axis=None, kind="stable")] = np.arange(cost.size)
    return rank.reshape(cost.shape)


def _up_to(element: Element) -> tuple[slice, ...]:
    """Return slices of all elements below one, itself included."""
    return tuple(slice(k + 1) for k in element)


def _divide(left: BoolArray, rank: IntArray) -> Element:
    """Choose the element whose answer rules out most in the worse case: costlier elements if it holds, else all below it."""
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
    """Evaluate elements in order of cost, which is slow but correct for any predicate."""
    for place in np.argsort(rank, axis=None):
        element = tuple(int(k) for k in np.unravel_index(place, rank.shape))
        if left[element] and (answers[element] if element in answers else holds(element)):
            return element
    return None
