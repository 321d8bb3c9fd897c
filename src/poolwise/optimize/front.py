"""Points that no other point beats: Pareto fronts, layer by layer, and a search for one by halving and local moves."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from poolwise.arrays import BoolArray, FloatArray, IntArray
from poolwise.optimize.monotone import Element
from poolwise.random import uniform


def front(points: FloatArray) -> BoolArray:
    """(n,) which of (n, d) points are beaten by no other in one coordinate without losing in another; less is better.

    Equal points are all in it or all not. A point with a NaN is not.
    """
    points = np.asarray(points, dtype=np.float64)
    kept: BoolArray = np.asarray(~np.isnan(points).any(axis=1))
    for k in np.flatnonzero(kept).tolist():
        no_worse = (points <= points[k]).all(axis=1)
        kept[k] = not (no_worse & (points < points[k]).any(axis=1)).any()
    return kept


def layers(points: FloatArray) -> IntArray:
    """(n,) layer of each of (n, d) points: 0 on the front, 1 on the front of the rest, and so on; NaNs last of all."""
    layer = np.full(len(points), len(points), dtype=np.int64)
    left: BoolArray = np.asarray(~np.isnan(points).any(axis=1))
    depth = 0
    while left.any():
        rows = np.flatnonzero(left)
        found = rows[front(points[rows])]
        layer[found] = depth
        left[found] = False
        depth += 1
    return layer


FrontMeasure = Callable[[Sequence[Element], int], FloatArray]
"""(elements, rung) -> (n, d) points; a lower rung is cheaper to measure and less exact, the last one is the truth."""


def search_front(elements: Sequence[Element], measure: FrontMeasure, rungs: int, sample: int, seed: int) -> list[Element]:
    """Look for the front of a large set: successive halving of a random sample, then local moves from what is left.

    Parameters
    ----------
    elements
        Candidates: places in a grid. Neighbours differ by one step along one axis, or by one step up and one down.
    measure
        Asked about elements at a rung, at the last one never twice about the same.
    rungs
        Of the halving: a third of each rung goes on to the next, by layers of the front.
    sample
        Elements of the first rung.
    seed
        Of the sample.

    Returns
    -------
    Elements measured at the last rung, in the order in which they were. Their front may miss points: nothing proves it.

    Notes
    -----
    Successive halving: Jamieson and Talwalkar 2016, here with layers of the front in the place of one loss.
    """
    known = set(elements)
    order = np.argsort(uniform(seed, "front", np.arange(len(elements))), kind="stable")
    chosen = [elements[k] for k in order[:sample].tolist()]
    for rung in range(rungs - 1):
        layer = layers(measure(chosen, rung))
        best = np.argsort(layer, kind="stable")[: max(1, -(-len(chosen) // 3))]
        chosen = [chosen[k] for k in sorted(best.tolist())]
    seen = list(chosen)
    points = measure(seen, rungs - 1)
    while True:
        best_now = [seen[k] for k in np.flatnonzero(front(points)).tolist()]
        around = dict.fromkeys(n for element in best_now for n in _neighbours(element) if n in known)
        fresh = [element for element in around if element not in set(seen)]
        if not fresh:
            return seen
        seen += fresh
        points = np.concatenate([points, measure(fresh, rungs - 1)])


def _neighbours(element: Element) -> list[Element]:
    """One step along one axis, or one up and another down: the move that keeps a sum."""
    axes = range(len(element))
    moves = [{axis: step} for axis in axes for step in (-1, 1)]
    moves += [{up: 1, down: -1} for up in axes for down in axes if up != down]
    return [tuple(place + move.get(axis, 0) for axis, place in enumerate(element)) for move in moves]
