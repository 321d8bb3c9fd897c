"""Successive shortest paths with node prices, from each source to the nearest node with a deficit (Edmonds, Karp 1972)."""

from __future__ import annotations

from poolwise.arrays import IntArray
from poolwise.optimize.min_cost_flow.network import Network
from poolwise.optimize.min_cost_flow.residual import feasible, flow_of


def solve(network: Network) -> IntArray | None:
    """Return the cheapest flow above the base, (n_arc,), or None if the problem is infeasible."""
    g = feasible(network, network.cost)
    return None if g is None else flow_of(g)
