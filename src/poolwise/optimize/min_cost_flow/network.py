"""A flow problem as solvers want it: checked, without lower bounds or self-loops, costs divided by what they have in common."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from poolwise.arrays import BoolArray, FloatArray, IntArray
from poolwise.errors import InputError

SCALE = 10**6
"""Integer units of cost in a cost of 1."""

MOST = 1 << 59
"""No sum of capacities and no cost of a path may reach this: what is left of 64 bits is for prices and their differences."""


def scaled(cost: FloatArray) -> IntArray:
    """Whole costs of real ones: times `SCALE`, rounded to the nearest, ties to even.

    Raises
    ------
    InputError
        A cost is not a number, infinite, or too large to be counted in units of 1 / SCALE.
    """
    cost = np.asarray(cost, dtype=np.float64)
    with np.errstate(over="ignore"):
        whole = np.rint(cost * SCALE)
    wrong = np.flatnonzero(~(np.abs(whole) < MOST))
    if len(wrong):
        raise InputError(
            f"{cost.flat[wrong[0]]} of arc {wrong[0]} cannot be counted in units of 1 / {SCALE}",
            field="cost",
            remedy=f"keep costs within +-{MOST // SCALE:.0e}; leave out an arc that must not be used",
        )
    return whole.astype(np.int64)


@dataclass(frozen=True, eq=False)
class Network:
    """What is left to decide: flow between zero and `capacity` on each arc, above the `base` that every answer carries.

    Attributes
    ----------
    n_node : nodes
    tail, head : (n_arc,)
    capacity : (n_arc,) most flow above the base
    cost : (n_arc,) whole costs divided by `divisor`
    supply : (n_node,) what a node sends (less than zero: takes), the base taken off
    base : (n_arc,) the lower bound; for a self-loop, which no balance sees, all of its flow
    divisor : greatest common divisor of the costs, so that they need as few bits as they can
    """

    n_node: int
    tail: IntArray
    head: IntArray
    capacity: IntArray
    cost: IntArray
    supply: IntArray
    base: IntArray
    divisor: int

    @classmethod
    def of(
        cls, tail: ArrayLike, head: ArrayLike, lower: ArrayLike, capacity: ArrayLike, cost: ArrayLike, supply: ArrayLike
    ) -> Network:
        """Check a problem and take its lower bounds off; the arguments are those of `min_cost_flow`."""
        need = whole_numbers("supply", supply)
        n_node = len(need)
        start = whole_numbers("tail", tail)
        n_arc = len(start)
        end = whole_numbers("head", head, n_arc)
        low, high, price = (
            whole_numbers("lower", lower, n_arc),
            whole_numbers("capacity", capacity, n_arc),
            whole_numbers("cost", cost, n_arc),
        )
        for name, nodes in (("tail", start), ("head", end)):
            refuse_entry(
                name, (nodes < 0) | (nodes >= n_node), nodes, f"is not a node: there are {n_node}", "number nodes from 0"
            )
        refuse_entry("lower", low < 0, low, "is less than 0", "turn the arc round")
        refuse_entry("capacity", high < low, high, "is less than the arc's lower bound", "raise it or lower the bound")
        check_range(n_node, high, price, need)
        base = np.where((start == end) & (price < 0), high, low)
        need = need.copy()
        np.subtract.at(need, start, base)
        np.add.at(need, end, base)
        divisor = max(1, int(np.gcd.reduce(price, initial=0)))
        return cls(n_node, start, end, np.where(start == end, 0, high - base), price // divisor, need, base, divisor)

    @property
    def n_arc(self) -> int:
        """Number of arcs."""
        return len(self.tail)


def check_range(n_node: int, capacity: IntArray, cost: IntArray, supply: IntArray) -> None:
    """Refuse numbers whose sums could leave 64 bits; the sums are of floats, whose rounding the limit leaves room for."""
    for name, values in (("capacity", capacity), ("supply", supply)):
        if np.abs(values.astype(np.float64)).sum() >= MOST:
            raise InputError(
                "the sum over the graph does not fit 64 bits",
                field=name,
                remedy="an arc never carries more than all supplies and lower bounds together: that is capacity enough",
            )
    if np.abs(cost.astype(np.float64)).max(initial=0.0) * max(n_node, 1) >= MOST:
        raise InputError(
            f"a path through {n_node} nodes could cost more than 64 bits hold",
            field="cost",
            remedy="use smaller costs, or merge nodes that are alike",
        )


def whole_numbers(name: str, values: ArrayLike, n: int | None = None) -> IntArray:
    """(n,) int64 of whole numbers, one number standing for all where n is known; anything else is refused, never rounded."""
    array = np.asarray(values)
    if array.size == 0 and array.ndim == 1:
        array = array.astype(np.int64)  # an empty list has no type to speak of
    if n is not None and array.ndim == 0:
        array = np.broadcast_to(array, n)
    if array.ndim != 1 or array.dtype.kind not in "iu":
        raise InputError(
            f"shape {array.shape} of type {array.dtype} is not a list of whole numbers",
            field=name,
            remedy="real costs become whole with `scaled`" if name == "cost" else "give one whole number an entry",
        )
    if n is not None and len(array) != n:
        raise InputError(f"{len(array)} values for {n} entries", field=name, remedy="give one value an entry")
    if array.dtype == np.uint64 and array.size and array.max() >= MOST:
        raise InputError(f"{array.max()} does not fit 64 bits", field=name, remedy="use smaller numbers")
    return array.astype(np.int64)


def refuse_entry(name: str, wrong: BoolArray, values: NDArray[np.int64], what: str, remedy: str) -> None:
    """Raise an InputError about the first entry that is wrong, if any is."""
    if wrong.any():
        entry = int(np.flatnonzero(wrong)[0])
        raise InputError(f"{values[entry]}, entry {entry}, {what}", field=name, remedy=remedy)
