"""Shortages of tasks on shared nodes: the reason why a job waits under flow and greedy scheduling."""

from __future__ import annotations

import numpy as np

from poolwise.arrays import IntArray
from poolwise.model import Refusal
from poolwise.schedulers.flow.flow_layout import room
from poolwise.schedulers.flow.shapes import ShapeTable


def shortage(shapes: ShapeTable, shape: IntArray, tasks: int, amounts: IntArray, *, pooled: bool) -> Refusal | None:
    """Find the shortage of tasks of one shape, (1,), in (n_spot, n_resource + n_kind) free amounts; None if all tasks fit.

    The checks are, in this order: a resource that is short in total, a resource of nodes that is too fragmented, and several
    resources that are not free together on one node.
    """
    layout, demand, pinned = shapes.layout, shapes.demand(shape)[0], int(shapes.pinned(shape)[0])
    n = len(layout.columns)
    nodes = amounts[: len(layout.nodes)] if pinned < 0 else amounts[[pinned]]
    for k in np.flatnonzero(demand).tolist():
        name, amount = layout.resources[k], int(demand[k])
        available = amounts[:, k] if pooled and k >= n else nodes[:, k]
        if amount * tasks > (total := int(available.sum())):
            return Refusal(f"not enough free {name}", name, amount * tasks, total)
        if pooled and k >= n:
            continue
        if amount > (most := int(available.max())):
            return Refusal(f"no node has enough free {name}", name, amount, most)
        if tasks > (fit := int((available // amount).sum())):
            return Refusal(f"free {name} is too fragmented for all its tasks", name, amount * tasks, amount * fit)
    on_nodes = np.where(np.arange(len(demand)) < n, demand, 0) if pooled else demand
    if int(room(nodes, on_nodes[None], tasks).sum()) < tasks:
        return Refusal("each resource is free, but not enough of them on the same nodes")
    return None
