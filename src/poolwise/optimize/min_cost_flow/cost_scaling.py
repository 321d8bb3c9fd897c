"""Cost scaling (Goldberg, Tarjan 1990): start from any feasible flow and refine it by push-relabel."""

from __future__ import annotations

import numpy as np

from poolwise.arrays import IntArray
from poolwise.errors import InputError
from poolwise.kernels.flow.push_relabel import scale
from poolwise.optimize.min_cost_flow.network import MOST, Network
from poolwise.optimize.min_cost_flow.residual import feasible, flow_of, put_costs


def solve(network: Network) -> IntArray | None:
    """Return the cheapest flow above the base, (n_arc,), or None if the problem is infeasible.

    Raises
    ------
    InputError
        The prices of the scaled costs, up to n_node times the cost of a path, would exceed 64 bits.
    """
    factor = network.n_node + 1
    largest = int(np.abs(network.cost).max(initial=0)) * factor
    g = feasible(network, np.zeros_like(network.cost))
    if g is None:
        return None
    if largest < MOST:
        put_costs(g, network.cost * factor)
        if scale(g, largest, *np.empty((4, network.n_node), dtype=np.int64)):
            return flow_of(g)
    raise InputError(
        f"costs too large for cost scaling on a graph of {network.n_node} nodes",
        field="cost",
        remedy="use the solver successive_shortest_path",
    )
