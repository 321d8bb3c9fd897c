"""Successive shortest paths with prices: source by source, to the nearest node that can take (Edmonds, Karp 1972)."""

from __future__ import annotations

from poolwise.arrays import IntArray
from poolwise.optimize.min_cost_flow.network import Network
from poolwise.optimize.min_cost_flow.residual import feasible, flow_of


def solve(network: Network) -> IntArray | None:
    """(n_arc,) cheapest flow above the base, None where none carries the supplies."""
    g = feasible(network, network.cost)
    return None if g is None else flow_of(g)
