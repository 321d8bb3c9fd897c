"""Residual graphs of networks, in the form that the kernels use."""

from __future__ import annotations

import numpy as np

from poolwise.arrays import IntArray
from poolwise.kernels.flow.graph import ResidualGraph, link, restore_optimality
from poolwise.kernels.flow.shortest_path import Scratch, settle
from poolwise.optimize.min_cost_flow.network import Network


def empty_graph(n_node: int, n_arc: int) -> ResidualGraph:
    """Return a graph without arcs in use."""
    n, m = n_node, 2 * n_arc
    head, first = np.full(m, -1, dtype=np.int64), np.full((2, n), -1, dtype=np.int64)
    cost, room, excess, prices = (np.zeros(k, dtype=np.int64) for k in (m, m, n, n))
    following, before = np.zeros((2, 2, m), dtype=np.int64)
    return ResidualGraph(head, cost, room, first, following, before, excess, prices)


def scratch(n_node: int) -> Scratch:
    """Return work arrays for searches in a graph."""
    return Scratch(np.zeros(1, dtype=np.int64), *np.zeros((len(Scratch._fields) - 1, n_node), dtype=np.int64))


def solve(network: Network) -> IntArray | None:
    """Return the cheapest flow above the base, (n_arc,), or None if the problem is infeasible.

    Shortest paths with node prices lead from each source to the nearest node with a deficit (Edmonds, Karp 1972).
    """
    g = empty_graph(network.n_node, network.n_arc)
    g.head[0::2], g.head[1::2] = network.head, network.tail
    g.room[0::2] = network.capacity
    g.excess[:] = network.supply
    g.cost[0::2], g.cost[1::2] = network.cost, -network.cost
    link(g)
    restore_optimality(g)
    sources = np.flatnonzero(g.excess > 0)
    return flow_of(g) if settle(g, scratch(network.n_node), sources, 0) == 0 else None


def flow_of(g: ResidualGraph) -> IntArray:
    """Return the flow in a graph, (n_arc,)."""
    return g.room[1::2].copy()
