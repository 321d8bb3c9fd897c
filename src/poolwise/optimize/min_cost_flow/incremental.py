"""Incremental minimum-cost flow: keeps the residual graph of a problem that changes a little from round to round.

A change leaves some nodes with excess or deficit, and some arcs whose flow violates the optimality conditions. Those arcs are
saturated or emptied, which moves the imbalance to nodes. Excess then travels to deficits along shortest paths, starting from
the prices of the last round. The work is proportional to the changes, and the cost equals that of a cold solver exactly.
"""

from __future__ import annotations

from typing import TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from poolwise.arrays import BoolArray, IntArray
from poolwise.kernels.flow.graph import add_capacity, link, restore_optimality, set_new_prices
from poolwise.kernels.flow.shortest_path import settle
from poolwise.optimize.min_cost_flow.network import MOST, Flow, arc_columns, check_range, refuse_entry, whole_numbers
from poolwise.optimize.min_cost_flow.residual import empty_graph, flow_of, scratch

T = TypeVar("T", bound=np.generic)


class IncrementalFlow:
    """A network whose nodes, arcs and numbers change between solves.

    Nodes and arcs are identified by the numbers that `add_nodes` and `add_arcs` return; numbers are reused after removal. No
    call may name a node or arc twice. Arcs have no lower bounds, and self-loops are not allowed. Invalid input raises
    InputError and changes nothing.
    """

    def __init__(self) -> None:
        self._graph = empty_graph(0, 0)
        self._scratch = scratch(0)
        self._supply = np.empty(0, dtype=np.int64)
        self._used: BoolArray = np.empty(0, dtype=np.bool_)  # nodes in use
        self._fresh: BoolArray = np.empty(0, dtype=np.bool_)  # nodes without a price
        self._raise = np.empty(0, dtype=np.int64)  # capacity that arcs gain in the second half of a solve

    @property
    def n_node(self) -> int:
        """Upper bound of the node numbers (excluded)."""
        return len(self._used)

    @property
    def n_arc(self) -> int:
        """Upper bound of the arc numbers (excluded)."""
        return len(self._raise)

    def add_nodes(self, supply: ArrayLike) -> IntArray:
        """Add nodes with a supply (negative for demand); return their numbers, (k,)."""
        supply = whole_numbers("supply", supply)
        nodes = _free(~self._used, len(supply))
        self._grow(int(nodes.max(initial=-1)) + 1, 0)
        self._used[nodes] = self._fresh[nodes] = True
        self._supply[nodes] = self._graph.excess[nodes] = supply
        return nodes

    def add_arcs(self, tail: ArrayLike, head: ArrayLike, capacity: ArrayLike, cost: ArrayLike) -> IntArray:
        """Add arcs between nodes in use; return their numbers, (k,)."""
        start, end, most, price = arc_columns(tail, head=head, capacity=capacity, cost=cost)
        for name, nodes in (("tail", start), ("head", end)):
            refuse_entry(name, ~_known(self._used, nodes), nodes, "is not a node", "add nodes before their arcs")
        refuse_entry("head", start == end, end, "is also the arc's tail", "remove the arc")
        refuse_entry("capacity", most < 0, most, "is less than 0", "reverse the arc")
        arcs = _free(self._graph.head[0::2] < 0, len(start))
        self._grow(0, int(arcs.max(initial=-1)) + 1)
        g = self._graph
        g.head[2 * arcs], g.head[2 * arcs + 1] = end, start
        g.cost[2 * arcs], g.cost[2 * arcs + 1] = price, -price
        g.room[2 * arcs], g.room[2 * arcs + 1] = most, 0
        return arcs

    def remove_arcs(self, arcs: ArrayLike) -> None:
        """Remove arcs; their flow returns to their tails."""
        arcs = self._arcs(arcs)
        self._limit(arcs, np.zeros(len(arcs), dtype=np.int64))
        self._graph.head[2 * arcs] = self._graph.head[2 * arcs + 1] = -1

    def remove_nodes(self, nodes: ArrayLike) -> None:
        """Remove nodes with their supplies and all their arcs."""
        nodes = self._nodes(nodes)
        gone = np.zeros(self.n_node + 1, dtype=np.bool_)  # the last entry is for the ends of unused arcs, -1
        gone[nodes] = True
        ends = gone[self._graph.head]
        self.remove_arcs(np.flatnonzero(ends[0::2] | ends[1::2]))
        self._used[nodes] = self._fresh[nodes] = False
        self._supply[nodes] = self._graph.excess[nodes] = 0

    def set_supply(self, nodes: ArrayLike, supply: ArrayLike) -> None:
        """Change the supplies of nodes."""
        nodes = self._nodes(nodes)
        supply = whole_numbers("supply", supply, len(nodes))
        self._graph.excess[nodes] += supply - self._supply[nodes]
        self._supply[nodes] = supply

    def set_cost(self, arcs: ArrayLike, cost: ArrayLike) -> None:
        """Change the costs per unit of flow of arcs."""
        arcs = self._arcs(arcs)
        cost = whole_numbers("cost", cost, len(arcs))
        g = self._graph
        g.cost[2 * arcs], g.cost[2 * arcs + 1] = cost, -cost

    def set_capacity(self, arcs: ArrayLike, capacity: ArrayLike) -> None:
        """Change the capacities of arcs; flow above them returns to their tails."""
        arcs = self._arcs(arcs)
        capacity = whole_numbers("capacity", capacity, len(arcs))
        refuse_entry("capacity", capacity < 0, capacity, "is less than 0", "reverse the arc")
        self._limit(arcs, capacity)

    def withdraw(self, arcs: ArrayLike, amount: ArrayLike) -> None:
        """Remove realized flow from the network, along with the capacity that it used.

        Its supplies remain: reduce them too (`set_supply`), or the flow is sent again.
        """
        arcs = self._arcs(arcs)
        amount = whole_numbers("amount", amount, len(arcs))
        carried = self._graph.room[2 * arcs + 1]
        refuse_entry(
            "amount", (amount < 0) | (amount > carried), amount, "is not within the arc's flow", "withdraw at most the flow"
        )
        self._take_back(arcs, amount)

    def solve(self) -> Flow:
        """Return the cheapest flow of the current network, (n_arc,) by the arcs' numbers."""
        g = self._graph
        check_range(self.n_node, g.room[0::2] + g.room[1::2] + self._raise, g.cost[0::2], self._supply)
        if self._supply.sum() != 0:
            return Flow.none("unbalanced", self.n_arc)
        if np.abs(g.price).max(initial=0) >= MOST:  # prices may drift over many rounds: reset them
            g.price[:] = 0
        link(g)
        set_new_prices(g, np.flatnonzero(self._fresh), self._fresh)
        restore_optimality(g)
        # New capacity is added after the new supplies have been routed: in each half, one side of the imbalance is then at
        # nodes with few arcs, where searches are short. Adding both at once took five times as long on scheduling rounds.
        self._settle()
        raised = np.flatnonzero(self._raise)
        add_capacity(g, raised, self._raise[raised])
        self._raise[:] = 0
        if self._settle():
            return Flow.none("infeasible", self.n_arc)
        return Flow.of(flow_of(g), g.cost[0::2])

    def _settle(self) -> int:
        """Route excess to deficits, starting from the side with fewer arcs per node; return the remaining imbalance."""
        g = self._graph
        ahead, back = np.flatnonzero(g.excess > 0), np.flatnonzero(g.excess < 0)
        if not len(ahead):
            return 0
        degree = np.bincount(g.head[g.head >= 0], minlength=self.n_node)
        if degree[back].mean() < degree[ahead].mean():
            return settle(g, self._scratch, back, 1)
        return settle(g, self._scratch, ahead, 0)

    def _limit(self, arcs: IntArray, capacity: IntArray) -> None:
        g = self._graph
        more = capacity - g.room[2 * arcs] - g.room[2 * arcs + 1]
        self._raise[arcs] = np.maximum(more, 0)
        room = g.room[2 * arcs] + np.minimum(more, 0)
        g.room[2 * arcs] = np.maximum(room, 0)
        self._take_back(arcs, np.maximum(-room, 0))

    def _take_back(self, arcs: IntArray, amount: IntArray) -> None:
        """Remove flow, and the capacity that it used, from arcs."""
        g = self._graph
        g.room[2 * arcs + 1] -= amount
        np.add.at(g.excess, g.head[2 * arcs + 1], amount)
        np.subtract.at(g.excess, g.head[2 * arcs], amount)

    def _nodes(self, nodes: ArrayLike) -> IntArray:
        nodes = whole_numbers("nodes", nodes)
        refuse_entry("nodes", ~_known(self._used, nodes), nodes, "is not a node", "use the numbers that add_nodes returned")
        refuse_entry("nodes", _again(nodes, self.n_node), nodes, "appears twice", "name each node once")
        return nodes

    def _arcs(self, arcs: ArrayLike) -> IntArray:
        arcs = whole_numbers("arcs", arcs)
        used = self._graph.head[0::2] >= 0
        refuse_entry("arcs", ~_known(used, arcs), arcs, "is not an arc", "use the numbers that add_arcs returned")
        refuse_entry("arcs", _again(arcs, self.n_arc), arcs, "appears twice", "name each arc once")
        return arcs

    def _grow(self, n_node: int, n_arc: int) -> None:
        """Enlarge the arrays to hold nodes and arcs below these numbers, by at least half."""
        n, m = self.n_node, self.n_arc
        if n_node > n or n_arc > m:
            n_node, n_arc = (max(new, old * 3 // 2) if new > old else old for new, old in ((n_node, n), (n_arc, m)))
            old, g = self._graph, empty_graph(n_node, n_arc)
            for name in ("head", "cost", "room", "excess", "price"):
                getattr(g, name)[: len(getattr(old, name))] = getattr(old, name)
            self._graph, self._scratch = g, scratch(n_node)
            self._supply, self._raise = _longer(self._supply, n_node), _longer(self._raise, n_arc)
            self._used, self._fresh = _longer(self._used, n_node), _longer(self._fresh, n_node)


def _longer(array: NDArray[T], n: int) -> NDArray[T]:
    """Return an array extended to (n,) with zeros."""
    return np.concatenate((array, np.zeros(n - len(array), dtype=array.dtype)))


def _free(unused: BoolArray, k: int) -> IntArray:
    """Return the first k numbers that are not in use, (k,); numbers beyond the array come last."""
    return np.append(np.flatnonzero(unused), np.arange(len(unused), len(unused) + k))[:k]


def _known(used: BoolArray, numbers: IntArray) -> BoolArray:
    """Return whether numbers are in use, (k,)."""
    inside = (numbers >= 0) & (numbers < len(used))
    known: BoolArray = inside & np.append(used, False)[np.where(inside, numbers, -1)]
    return known


def _again(numbers: IntArray, n: int) -> BoolArray:
    """Return whether each number, below n, occurs again later, (k,)."""
    last = np.empty(n, dtype=np.int64)
    last[numbers] = np.arange(len(numbers))
    again: BoolArray = last[numbers] != np.arange(len(numbers))
    return again
