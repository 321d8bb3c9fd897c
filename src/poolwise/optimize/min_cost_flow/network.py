"""Flow problems, normalized for solvers (no lower bounds or self-loops; costs divided by their gcd), and their results."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from poolwise.arrays import BoolArray, FloatArray, IntArray
from poolwise.errors import InputError

SCALE = 10**6
"""Integer units of cost per unit of real cost."""

MOST = 1 << 59
"""Bound on sums of capacities and on the cost of a path. The remaining bits of 64 are for prices and their differences."""


def scaled(cost: FloatArray) -> IntArray:
    """Multiply real costs by `SCALE` and round them to integers, ties to even; raise InputError if one is out of range."""
    cost = np.asarray(cost, dtype=np.float64)
    with np.errstate(over="ignore"):
        whole = np.rint(cost * SCALE)
    wrong = np.flatnonzero(~(np.abs(whole) < MOST))
    if len(wrong):
        problem = f"cost {cost.flat[wrong[0]]} of arc {wrong[0]} cannot be counted in units of 1 / {SCALE}"
        remedy = f"keep costs within +-{MOST // SCALE:.0e}; remove an arc that must not be used"
        raise InputError(problem, field="cost", remedy=remedy)
    return whole.astype(np.int64)


@dataclass(frozen=True, eq=False)
class Network:
    """The problem that remains above a fixed flow, `base`: flow between zero and `capacity` on each arc, (n_arc,).

    The base is the lower bound; for a self-loop, which no node balance includes, it is the whole flow. `supply` (n_node,) is
    what the base does not send. Costs are divided by `divisor`, their greatest common divisor, so that they need as few bits as
    possible.
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
        start, end, low, high, price = arc_columns(tail=tail, head=head, lower=lower, capacity=capacity, cost=cost)
        for name, nodes in (("tail", start), ("head", end)):
            outside = (nodes < 0) | (nodes >= n_node)
            refuse_entry(name, outside, nodes, f"is not a node: there are {n_node}", "number nodes from 0")
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
    """Reject numbers whose sums could exceed 64 bits. The sums are computed in floats; the limit allows for their rounding."""
    for name, values in (("capacity", capacity), ("supply", supply)):
        if np.abs(values.astype(np.float64)).sum() >= MOST:
            remedy = "cap capacities at the sum of all supplies and lower bounds, which an arc never exceeds"
            raise InputError("the sum over the graph exceeds 64 bits", field=name, remedy=remedy)
    if np.abs(cost.astype(np.float64)).max(initial=0.0) * max(n_node, 1) >= MOST:
        problem = f"a path through {n_node} nodes could cost more than 64 bits can represent"
        raise InputError(problem, field="cost", remedy="use smaller costs, or merge equal nodes")


def whole_numbers(name: str, values: ArrayLike, n: int | None = None) -> IntArray:
    """Convert integers to (n,) int64, broadcasting a scalar if n is known. Raises InputError for anything else."""
    array = np.asarray(values)
    if array.size == 0 and array.ndim == 1:
        array = array.astype(np.int64)  # an empty list has no meaningful type
    if n is not None and array.ndim == 0:
        array = np.broadcast_to(array, n)
    if array.ndim != 1 or array.dtype.kind not in "iu":
        remedy = "convert real costs with `scaled`" if name == "cost" else "give one integer per entry"
        raise InputError(f"shape {array.shape} of type {array.dtype} is not a list of integers", field=name, remedy=remedy)
    if n is not None and len(array) != n:
        raise InputError(f"{len(array)} values for {n} entries", field=name, remedy="give one value per entry")
    if array.dtype == np.uint64 and array.size and array.max() >= MOST:
        raise InputError(f"{array.max()} exceeds 64 bits", field=name, remedy="use smaller numbers")
    return array.astype(np.int64)


def arc_columns(tail: ArrayLike, **others: ArrayLike) -> list[IntArray]:
    """Convert the columns of arcs to int64, (n_arc,) each; raise InputError as `whole_numbers` does."""
    start = whole_numbers("tail", tail)
    return [start, *(whole_numbers(name, values, len(start)) for name, values in others.items())]


def refuse_entry(name: str, wrong: BoolArray, values: NDArray[np.int64], what: str, remedy: str) -> None:
    """Raise an InputError about the first wrong entry, if there is one."""
    if wrong.any():
        entry = int(np.flatnonzero(wrong)[0])
        raise InputError(f"{values[entry]} at entry {entry} {what}", field=name, remedy=remedy)


FlowStatus = Literal["optimal", "infeasible", "unbalanced"]
"""unbalanced: the supplies do not sum to zero; infeasible: the arcs cannot carry them."""


@dataclass(frozen=True, eq=False)
class Flow:
    """Result of a solver: the flow on each arc (n_arc,), lower bounds included, and the sum of flow x cost, exact for any size.

    Both are zero, and meaningless, unless the status is "optimal".
    """

    status: FlowStatus
    flow: IntArray
    cost: int

    @classmethod
    def of(cls, flow: IntArray, cost: IntArray) -> Flow:
        """Build the result of an optimal flow on arcs with these costs."""
        most = float(np.abs(cost).max(initial=0)) * float(flow.sum(dtype=np.float64))
        fits = most < 1 << 62
        return cls("optimal", flow, int(flow @ cost) if fits else int(flow.astype(object) @ cost.astype(object)))

    @classmethod
    def none(cls, status: FlowStatus, n_arc: int) -> Flow:
        """Build a result without a flow, whose status states the reason."""
        return cls(status, np.zeros(n_arc, dtype=np.int64), 0)

    @property
    def optimal(self) -> bool:
        """True if the flow may be used."""
        return self.status == "optimal"
