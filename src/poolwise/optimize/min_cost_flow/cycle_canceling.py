"""Cycle cancelling (Klein 1967): any flow that carries the supplies, then cycles that cost less than nothing are filled."""

from __future__ import annotations

import numpy as np

from poolwise.arrays import IntArray
from poolwise.kernels.flow.negative_cycle import cancel_all
from poolwise.optimize.min_cost_flow.network import Network
from poolwise.optimize.min_cost_flow.residual import feasible, flow_of, put_costs


def solve(network: Network) -> IntArray | None:
    """(n_arc,) cheapest flow above the base, None where none carries the supplies."""
    g = feasible(network, np.zeros_like(network.cost))
    if g is None:
        return None
    put_costs(g, network.cost)
    cancel_all(g, *np.empty((3, network.n_node), dtype=np.int64))
    return flow_of(g)
