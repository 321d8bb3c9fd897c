"""Pareto fronts: nondominated points, fronts in layers, and a search by successive halving and local moves."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from poolwise.arrays import BoolArray, FloatArray, IntArray
from poolwise.optimize.monotone import Element
from poolwise.random import uniform


def front(points: FloatArray) -> BoolArray:
    """Return a mask of the nondominated points among (n, d) points to minimize, (n,).

    Equal points are either all on the front or all off it. Points with a NaN are never on it.
    """
    points = np.asarray(points, dtype=np.float64)
    mask: BoolArray = np.asarray(~np.isnan(points).any(axis=1))
    for k in np.flatnonzero(mask).tolist():
        no_worse = (points <= points[k]).all(axis=1)
        mask[k] = not (no_worse & (points < points[k]).any(axis=1)).any()
    return mask


def layers(points: FloatArray) -> IntArray:
    """Return the layer of each of (n, d) points, (n,): 0 on the front, 1 on the front of the rest, and so on; NaNs are last."""
    layer = np.full(len(points), len(points), dtype=np.int64)
    left: BoolArray = np.asarray(~np.isnan(points).any(axis=1))
    depth = 0
    while left.any():
        rows = np.flatnonzero(left)
        on_front = rows[front(points[rows])]
        layer[on_front] = depth
        left[on_front] = False
        depth += 1
    return layer


FrontMeasure = Callable[[Sequence[Element], int], FloatArray]
"""(elements, rung) -> (n, d) points. Lower rungs are cheaper and less exact; the last rung gives the true values."""


def search_front(elements: Sequence[Element], measure: FrontMeasure, rungs: int, sample: int, seed: int) -> list[Element]:
    """Search for the front of a large set by successive halving of a random sample, then local moves from the survivors.

    `elements` are positions in a grid; neighbors differ by one step along one axis, or by one step up and one down. `measure`
    evaluates elements at a rung; at the last of the `rungs`, it evaluates each element at most once. The first rung has
    `sample` elements, drawn with the seed. A third of each rung advances, by layers of the front.

    Returns the elements evaluated at the last rung, in order. Their front may miss points: it is not proven complete. Source:
    Jamieson and Talwalkar 2016, here with layers of the front instead of a single loss.
    """
    members = set(elements)
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
        around = dict.fromkeys(n for element in best_now for n in _neighbors(element) if n in members)
        fresh = [element for element in around if element not in set(seen)]
        if not fresh:
            return seen
        seen += fresh
        points = np.concatenate([points, measure(fresh, rungs - 1)])


def _neighbors(element: Element) -> list[Element]:
    """Return the neighbors by one step along one axis, or by one step up and one down, which keeps the sum."""
    axes = range(len(element))
    moves = [{axis: step} for axis in axes for step in (-1, 1)]
    moves += [{up: 1, down: -1} for up in axes for down in axes if up != down]
    return [tuple(place + move.get(axis, 0) for axis, place in enumerate(element)) for move in moves]
