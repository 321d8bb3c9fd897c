"""Minimum-cost flow of a problem with named nodes that is given in full each round; the residual graph is kept."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from poolwise.arrays import BoolArray, IntArray
from poolwise.errors import InputError
from poolwise.optimize.min_cost_flow.incremental import IncrementalFlow
from poolwise.optimize.min_cost_flow.network import Flow, arc_columns, refuse_entry, whole_numbers

_BITS = 31  # bits of a node's number in the key of an arc


class NamedFlow:
    """A network that receives its full state each round and derives the changes.

    Callers can rebuild their graph each round; only the names must be stable. The object may be dropped at any time: a new one
    finds a flow of the same cost, but takes longer.

    Attributes
    ----------
    network : the residual graph, with its own numbers of nodes and arcs
    """

    def __init__(self) -> None:
        self.network = IncrementalFlow()
        self._names, self._nodes = _nothing(), _nothing()  # ascending names, and the nodes' numbers
        self._keys, self._arcs = _nothing(), _nothing()  # ascending keys (tail, head), and the arcs' numbers
        self._stated = _nothing()  # arcs in the order of the last statement

    def solve(
        self, names: ArrayLike, tail: ArrayLike, head: ArrayLike, capacity: ArrayLike, cost: ArrayLike, supply: ArrayLike
    ) -> Flow:
        """Return the cheapest flow of the problem; capacity, cost and supply are as in `min_cost_flow`.

        The (n_node,) integers `names` identify the nodes in all rounds; `tail` and `head` are rows of `names`. No two arcs may
        share both ends.
        """
        names = whole_numbers("names", names)
        supply = whole_numbers("supply", supply, len(names))
        start, end, most, price = arc_columns(tail, head=head, capacity=capacity, cost=cost)
        for field, rows in (("tail", start), ("head", end)):
            outside = (rows < 0) | (rows >= len(names))
            refuse_entry(field, outside, rows, f"is not a node: there are {len(names)}", "use row numbers of the names")
        refuse_entry("capacity", most < 0, most, "is less than 0", "reverse the arc")
        refuse_entry("head", start == end, end, "is also the arc's tail", "remove the arc")
        _distinct("names", np.sort(names))
        _distinct("head", np.sort(start * len(names) + end))
        nodes = self._update_nodes(names, supply)
        self._stated = self._update_arcs(nodes[start], nodes[end], most, price)
        answer = self.network.solve()
        return Flow(answer.status, answer.flow[self._stated], answer.cost)

    def withdraw(self, amount: ArrayLike) -> None:
        """Remove realized flow, (n_arc,), which the problem of the next round is expected not to contain.

        The next result does not depend on this call, which only saves the work of sending the flow back.
        """
        self.network.withdraw(self._stated, amount)

    def _update_nodes(self, names: IntArray, supply: IntArray) -> IntArray:
        """Remove nodes that are gone and add new ones; return the numbers of the named nodes, (n_node,)."""
        present, row = _find(names, self._names)
        stay = np.zeros(len(self._names), dtype=np.bool_)
        stay[row[present]] = True
        gone = np.zeros(self.network.n_node, dtype=np.bool_)
        gone[self._nodes[~stay]] = True
        remaining = ~(gone[self._keys >> _BITS] | gone[self._keys & ((1 << _BITS) - 1)])
        self._keys, self._arcs = self._keys[remaining], self._arcs[remaining]
        self.network.remove_nodes(self._nodes[~stay])
        nodes = np.empty(len(names), dtype=np.int64)
        nodes[present] = self._nodes[row[present]]
        self.network.set_supply(nodes[present], supply[present])
        nodes[~present] = self.network.add_nodes(supply[~present])
        order = np.argsort(names)
        self._names, self._nodes = names[order], nodes[order]
        return nodes

    def _update_arcs(self, tail: IntArray, head: IntArray, capacity: IntArray, cost: IntArray) -> IntArray:
        """Remove arcs that are gone and add new ones; return the numbers of the arcs between these nodes, (n_arc,)."""
        keys = tail << _BITS | head
        present, row = _find(keys, self._keys)
        stay = np.zeros(len(self._keys), dtype=np.bool_)
        stay[row[present]] = True
        self.network.remove_arcs(self._arcs[~stay])
        arcs = np.empty(len(keys), dtype=np.int64)
        arcs[present] = self._arcs[row[present]]
        self.network.set_cost(arcs[present], cost[present])
        self.network.set_capacity(arcs[present], capacity[present])
        arcs[~present] = self.network.add_arcs(tail[~present], head[~present], capacity[~present], cost[~present])
        order = np.argsort(keys)
        self._keys, self._arcs = keys[order], arcs[order]
        return arcs


def _nothing() -> IntArray:
    return np.empty(0, dtype=np.int64)


def _find(wanted: IntArray, ascending: IntArray) -> tuple[BoolArray, IntArray]:
    """Return whether each wanted number, (k,), is among the known ones, which ascend; and, if so, its row there."""
    row = np.searchsorted(ascending, wanted)
    values: BoolArray = np.append(ascending, 0)[row] == wanted
    return values & (row < len(ascending)), row


def _distinct(field: str, ascending: IntArray) -> None:
    if (ascending[1:] == ascending[:-1]).any():
        if field == "names":
            raise InputError("two nodes have the same name", field=field, remedy="name each node once")
        raise InputError("two arcs share both ends", field=field, remedy="merge the arcs, with the sum of their capacities")
