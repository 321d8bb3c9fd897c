"""Minimum-cost flow on arrays: the cheapest way to send supplies through a network of arcs with bounds.

One function with two exact solvers: `ortools` (the library's push-relabel, the default) and `successive_shortest_path`.
`incremental.IncrementalFlow` keeps the residual graph between rounds of a problem that changes little.
"""

from __future__ import annotations

from typing import Literal, get_args

from numpy.typing import ArrayLike

from poolwise.errors import UnknownNameError
from poolwise.optimize.min_cost_flow.network import SCALE, Flow, FlowStatus, Network, scaled

__all__ = ["SCALE", "Flow", "FlowSolver", "FlowStatus", "min_cost_flow", "scaled"]

FlowSolver = Literal["ortools", "successive_shortest_path"]


def min_cost_flow(
    tail: ArrayLike,
    head: ArrayLike,
    lower: ArrayLike,
    capacity: ArrayLike,
    cost: ArrayLike,
    supply: ArrayLike,
    *,
    solver: FlowSolver = "ortools",
) -> Flow:
    """Find the cheapest flow that sends all supplies: the optimal flow, or one with the status "infeasible" or "unbalanced".

    Arcs lead from `tail` to `head` (n_arc,); parallel arcs and self-loops are allowed. Flows are within 0 <= `lower` <=
    `capacity`, and integer costs per unit have any sign (`scaled` converts real costs); a scalar applies to all arcs. `supply`
    (n_node,) is negative for demand. If optima tie, solvers may return different flows of equal cost; each one is
    deterministic.

    Raises InputError for arrays of different lengths, numbers that are not integers or out of range, unknown nodes, empty
    bounds, and costs too large for the solver. Raises UnknownNameError for an unknown solver.
    """
    if solver not in get_args(FlowSolver):
        raise UnknownNameError.of("solver", solver, get_args(FlowSolver))
    network = Network.of(tail, head, lower, capacity, cost, supply)
    if network.supply.sum() != 0:
        return Flow.none("unbalanced", network.n_arc)
    if solver == "ortools":
        from poolwise.optimize.min_cost_flow.ortools import solve
    else:  # loads Numba, which takes longer than most problems
        from poolwise.optimize.min_cost_flow.residual import solve
    above = solve(network)
    if above is None:
        return Flow.none("infeasible", network.n_arc)
    return Flow.of(network.base + above, network.cost * network.divisor)
