"""Cycle canceling (Klein 1967): start from any feasible flow and saturate cycles of negative cost."""

from __future__ import annotations

import numpy as np

from poolwise.arrays import IntArray
from poolwise.kernels.flow.negative_cycle import cancel_all
from poolwise.optimize.min_cost_flow.network import Network
from poolwise.optimize.min_cost_flow.residual import feasible, flow_of, put_costs


def solve(network: Network) -> IntArray | None:
    """Return the cheapest flow above the base, (n_arc,), or None if the problem is infeasible."""
    g = feasible(network, np.zeros_like(network.cost))
    if g is None:
        return None
    put_costs(g, network.cost)
    cancel_all(g, *np.empty((3, network.n_node), dtype=np.int64))
    return flow_of(g)
