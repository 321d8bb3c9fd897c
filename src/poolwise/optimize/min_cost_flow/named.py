"""Minimum-cost flow of a problem that is given again each round with named nodes: the residual graph is kept between rounds."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from poolwise.arrays import BoolArray, IntArray
from poolwise.errors import InputError
from poolwise.optimize.min_cost_flow.flow import Flow
from poolwise.optimize.min_cost_flow.incremental import IncrementalFlow
from poolwise.optimize.min_cost_flow.network import refuse_entry, whole_numbers

_BITS = 31  # of a node's number in the key of an arc


class NamedFlow:
    """A network that is given its present state each round, and works out what has changed.

    The graph can be built again from the present state; only the names must stay the same. It may be dropped at any time: a
    fresh one finds a flow of the same cost, only slower.

    Attributes
    ----------
    network : the residual graph, nodes and arcs by its own numbers
    """

    def __init__(self) -> None:
        self.network = IncrementalFlow()
        self._names, self._nodes = _nothing(), _nothing()  # ascending names, and the nodes' numbers
        self._keys, self._arcs = _nothing(), _nothing()  # ascending keys (tail, head), and the arcs' numbers
        self._stated = _nothing()  # arcs in the order of the last statement

    def solve(
        self, names: ArrayLike, tail: ArrayLike, head: ArrayLike, capacity: ArrayLike, cost: ArrayLike, supply: ArrayLike
    ) -> Flow:
        """Cheapest flow of the problem.

        Parameters
        ----------
        names
            (n_node,) a whole number for each node, the same in each round for what is the same.
        tail, head
            (n_arc,) rows of `names`; no two arcs may share both ends.
        capacity, cost, supply
            As in `min_cost_flow`.
        """
        names = whole_numbers("names", names)
        supply = whole_numbers("supply", supply, len(names))
        start = whole_numbers("tail", tail)
        end, most, price = (
            whole_numbers(field, values, len(start))
            for field, values in (("head", head), ("capacity", capacity), ("cost", cost))
        )
        for field, rows in (("tail", start), ("head", end)):
            outside = (rows < 0) | (rows >= len(names))
            refuse_entry(field, outside, rows, f"is not a node: there are {len(names)}", "give rows of the names")
        refuse_entry("capacity", most < 0, most, "is less than 0", "turn the arc round")
        refuse_entry("head", start == end, end, "is the arc's tail as well", "leave the arc out")
        _distinct("names", np.sort(names))
        _distinct("head", np.sort(start * len(names) + end))
        nodes = self._meet_nodes(names, supply)
        self._stated = self._meet_arcs(nodes[start], nodes[end], most, price)
        answer = self.network.solve()
        return Flow(answer.status, answer.flow[self._stated], answer.cost)

    def withdraw(self, amount: ArrayLike) -> None:
        """Take flow (n_arc,) that has been put into effect out: the next statement is then expected without it.

        Not needed for the answer, only for its speed: what is taken out need not be sent back.
        """
        self.network.withdraw(self._stated, amount)

    def _meet_nodes(self, names: IntArray, supply: IntArray) -> IntArray:
        """(n_node,) numbers of the named nodes: those that are gone removed, new ones added."""
        found, row = _find(names, self._names)
        stay = np.zeros(len(self._names), dtype=np.bool_)
        stay[row[found]] = True
        gone = np.zeros(self.network.n_node, dtype=np.bool_)
        gone[self._nodes[~stay]] = True
        kept = ~(gone[self._keys >> _BITS] | gone[self._keys & ((1 << _BITS) - 1)])
        self._keys, self._arcs = self._keys[kept], self._arcs[kept]
        self.network.remove_nodes(self._nodes[~stay])
        nodes = np.empty(len(names), dtype=np.int64)
        nodes[found] = self._nodes[row[found]]
        self.network.set_supply(nodes[found], supply[found])
        nodes[~found] = self.network.add_nodes(supply[~found])
        order = np.argsort(names)
        self._names, self._nodes = names[order], nodes[order]
        return nodes

    def _meet_arcs(self, tail: IntArray, head: IntArray, capacity: IntArray, cost: IntArray) -> IntArray:
        """(n_arc,) numbers of the arcs between these nodes: those that are gone removed, new ones added."""
        keys = tail << _BITS | head
        found, row = _find(keys, self._keys)
        stay = np.zeros(len(self._keys), dtype=np.bool_)
        stay[row[found]] = True
        self.network.remove_arcs(self._arcs[~stay])
        arcs = np.empty(len(keys), dtype=np.int64)
        arcs[found] = self._arcs[row[found]]
        self.network.set_cost(arcs[found], cost[found])
        self.network.set_capacity(arcs[found], capacity[found])
        arcs[~found] = self.network.add_arcs(tail[~found], head[~found], capacity[~found], cost[~found])
        order = np.argsort(keys)
        self._keys, self._arcs = keys[order], arcs[order]
        return arcs


def _nothing() -> IntArray:
    return np.empty(0, dtype=np.int64)


def _find(wanted: IntArray, known: IntArray) -> tuple[BoolArray, IntArray]:
    """Whether each wanted number (k,) is among the known, which ascend, and its row there (where it is)."""
    row = np.searchsorted(known, wanted)
    found: BoolArray = np.append(known, 0)[row] == wanted
    return found & (row < len(known)), row


def _distinct(field: str, ascending: IntArray) -> None:
    if (ascending[1:] == ascending[:-1]).any():
        remedy = "name each node once" if field == "names" else "add up the capacities of arcs that cost the same"
        raise InputError(
            "two entries are the same" if field == "names" else "two arcs share both ends", field=field, remedy=remedy
        )
