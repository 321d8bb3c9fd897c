"""Minimum-cost flow: the cheapest way to send supplies through a network of arcs with bounds, on arrays.

One function with four exact solvers, each in a file of its name: `ortools` (the library's push-relabel, the default),
`cycle_canceling`, `successive_shortest_path` and `cost_scaling`. `incremental.IncrementalFlow` keeps the residual graph between
rounds of a problem that changes little.
"""

from __future__ import annotations

from importlib import import_module
from typing import Literal, get_args

from numpy.typing import ArrayLike

from poolwise.arrays import IntArray
from poolwise.errors import UnknownNameError
from poolwise.optimize.min_cost_flow.flow import Flow, FlowStatus
from poolwise.optimize.min_cost_flow.network import SCALE, Network, scaled

__all__ = ["SCALE", "Flow", "FlowSolver", "FlowStatus", "min_cost_flow", "scaled"]

FlowSolver = Literal["ortools", "cycle_canceling", "successive_shortest_path", "cost_scaling"]


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
    """Find the cheapest flow that sends all supplies.

    Parameters
    ----------
    tail, head
        (n_arc,) nodes from which and to which an arc leads; parallel arcs and self-loops are allowed.
    lower, capacity
        (n_arc,) minimum and maximum flow, 0 <= lower <= capacity; a scalar applies to all arcs.
    cost
        (n_arc,) integer costs per unit of flow, of any sign (`scaled` makes them of real ones); a scalar applies to all arcs.
    supply
        (n_node,) supply of a node, negative for demand.
    solver
        Solver to use. If optima tie, solvers may return different flows of equal cost; each one is deterministic.

    Returns
    -------
    The optimal flow, or a flow with the status "infeasible" or "unbalanced".

    Raises
    ------
    InputError
        Arrays of different lengths, numbers that are not integer or out of range, unknown nodes, empty bounds, or costs too
        large for the solver.
    UnknownNameError
        Unknown solver.
    """
    if solver not in get_args(FlowSolver):
        raise UnknownNameError.of("solver", solver, get_args(FlowSolver))
    network = Network.of(tail, head, lower, capacity, cost, supply)
    if network.supply.sum() != 0:
        return Flow.none("unbalanced", network.n_arc)
    # Imported on demand: our own solvers load Numba, which takes longer than most problems.
    above: IntArray | None = import_module(f"{__name__}.{solver}").solve(network)
    if above is None:
        return Flow.none("infeasible", network.n_arc)
    return Flow.of(network.base + above, network.cost * network.divisor)
