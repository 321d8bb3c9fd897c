"""OR-Tools' cost-scaling push-relabel (`SimpleMinCostFlow`)."""

from __future__ import annotations

import numpy as np
from ortools.graph.python.min_cost_flow import SimpleMinCostFlow  # type: ignore[import-untyped]  # ships no types

from poolwise.arrays import IntArray
from poolwise.errors import InputError, PoolwiseError
from poolwise.optimize.min_cost_flow.network import Network

_LIMITS = {
    SimpleMinCostFlow.Status.BAD_COST_RANGE: "cost",
    SimpleMinCostFlow.Status.BAD_CAPACITY_RANGE: "capacity",
}


def solve(network: Network) -> IntArray | None:
    """Return the cheapest flow above the base, (n_arc,), or None if the problem is infeasible.

    Raises InputError if the library's prices, up to n_node times the cost of a path, or its sums would exceed 64 bits.
    """
    problem = SimpleMinCostFlow()
    ends = (end.astype(np.int32) for end in (network.tail, network.head))
    arcs = problem.add_arcs_with_capacity_and_unit_cost(*ends, network.capacity, network.cost)
    problem.set_nodes_supplies(np.arange(network.n_node, dtype=np.int32), network.supply)
    status = problem.solve()
    if status == SimpleMinCostFlow.Status.OPTIMAL:
        return np.asarray(problem.flows(arcs), dtype=np.int64)
    if status == SimpleMinCostFlow.Status.INFEASIBLE:
        return None
    if status in _LIMITS:
        problem = f"numbers too large for OR-Tools on a graph of {network.n_node} nodes ({status.name})"
        raise InputError(problem, field=_LIMITS[status], remedy="use the solver successive_shortest_path")
    raise PoolwiseError(f"OR-Tools failed on a minimum-cost flow: {status.name}")
