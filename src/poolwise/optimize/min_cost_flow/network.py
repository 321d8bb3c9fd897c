"""Normalized flow problems for the solvers: validated, without lower bounds or self-loops, costs divided by their gcd."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from poolwise.arrays import BoolArray, FloatArray, IntArray
from poolwise.errors import InputError

SCALE = 10**6
"""Integer units of cost per unit of real cost."""

MOST = 1 << 59
"""Bound on sums of capacities and on the cost of a path. The remaining bits of 64 are for prices and their differences."""


def scaled(cost: FloatArray) -> IntArray:
    """Convert real costs to integers: times `SCALE`, rounded to the nearest, ties to even.

    Raises
    ------
    InputError
        A cost is NaN, infinite, or too large to be counted in units of 1 / SCALE.
    """
    cost = np.asarray(cost, dtype=np.float64)
    with np.errstate(over="ignore"):
        whole = np.rint(cost * SCALE)
    wrong = np.flatnonzero(~(np.abs(whole) < MOST))
    if len(wrong):
        raise InputError(
            f"cost {cost.flat[wrong[0]]} of arc {wrong[0]} cannot be counted in units of 1 / {SCALE}",
            field="cost",
            remedy=f"keep costs within +-{MOST // SCALE:.0e}; remove an arc that must not be used",
        )
    return whole.astype(np.int64)


@dataclass(frozen=True, eq=False)
class Network:
    """The residual decision problem: flow between zero and `capacity` on each arc, above a fixed `base`.

    Attributes
    ----------
    n_node : number of nodes
    tail, head : (n_arc,)
    capacity : (n_arc,) maximum flow above the base
    cost : (n_arc,) integer costs divided by `divisor`
    supply : (n_node,) supply of a node (negative for demand), net of the base
    base : (n_arc,) the lower bound; for a self-loop, which no node balance includes, all of its flow
    divisor : greatest common divisor of the costs, so that they need as few bits as possible
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
        """Validate a problem and remove its lower bounds; the arguments are those of `min_cost_flow`."""
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
        refuse_entry("lower", low < 0, low, "is less than 0", "reverse the arc")
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
    """Reject numbers whose sums could exceed 64 bits. The sums are of floats; the limit allows for their rounding."""
    for name, values in (("capacity", capacity), ("supply", supply)):
        if np.abs(values.astype(np.float64)).sum() >= MOST:
            raise InputError(
                "the sum over the graph exceeds 64 bits",
                field=name,
                remedy="cap capacities at the sum of all supplies and lower bounds, which an arc never exceeds",
            )
    if np.abs(cost.astype(np.float64)).max(initial=0.0) * max(n_node, 1) >= MOST:
        raise InputError(
            f"a path through {n_node} nodes could cost more than 64 bits can represent",
            field="cost",
            remedy="use smaller costs, or merge equal nodes",
        )


def whole_numbers(name: str, values: ArrayLike, n: int | None = None) -> IntArray:
    """Convert integers to (n,) int64, broadcasting a scalar if n is known. Raises InputError for anything else."""
    array = np.asarray(values)
    if array.size == 0 and array.ndim == 1:
        array = array.astype(np.int64)  # an empty list has no meaningful type
    if n is not None and array.ndim == 0:
        array = np.broadcast_to(array, n)
    if array.ndim != 1 or array.dtype.kind not in "iu":
        raise InputError(
            f"shape {array.shape} of type {array.dtype} is not a list of integers",
            field=name,
            remedy="convert real costs with `scaled`" if name == "cost" else "give one integer per entry",
        )
    if n is not None and len(array) != n:
        raise InputError(f"{len(array)} values for {n} entries", field=name, remedy="give one value per entry")
    if array.dtype == np.uint64 and array.size and array.max() >= MOST:
        raise InputError(f"{array.max()} exceeds 64 bits", field=name, remedy="use smaller numbers")
    return array.astype(np.int64)


def refuse_entry(name: str, wrong: BoolArray, values: NDArray[np.int64], what: str, remedy: str) -> None:
    """Raise an InputError about the first wrong entry, if there is one."""
    if wrong.any():
        entry = int(np.flatnonzero(wrong)[0])
        raise InputError(f"{values[entry]} at entry {entry} {what}", field=name, remedy=remedy)
