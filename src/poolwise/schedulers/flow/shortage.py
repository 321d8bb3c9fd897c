"""What tasks lack on what is free of shared nodes: why a job waits under flow and greedy scheduling."""

from __future__ import annotations

import numpy as np

from poolwise.arrays import IntArray
from poolwise.model import Refusal
from poolwise.schedulers.flow.flow_layout import room
from poolwise.schedulers.flow.shapes import ShapeTable


def shortage(shapes: ShapeTable, shape: IntArray, tasks: int, amounts: IntArray, *, pooled: bool) -> Refusal | None:
    """Find what a number of tasks of a shape, (1,), lack in (n_spot, n_resource + n_kind) amounts; None where all find room.

    It looks first for a resource short in total, then for one of nodes that is free only in pieces too small, then for several
    that are not free together on one node.
    """
    layout, demand, pinned = shapes.layout, shapes.demand(shape)[0], int(shapes.pinned(shape)[0])
    n = len(layout.columns)
    nodes = amounts[: len(layout.nodes)] if pinned < 0 else amounts[[pinned]]
    for k in np.flatnonzero(demand).tolist():
        name, asked = layout.resources[k], int(demand[k])
        there = amounts[:, k] if pooled and k >= n else nodes[:, k]
        if asked * tasks > (total := int(there.sum())):
            return Refusal(f"not enough free {name}", name, asked * tasks, total)
        if pooled and k >= n:
            continue
        if asked > (most := int(there.max())):
            return Refusal(f"no node has enough free {name}", name, asked, most)
        if tasks > (fit := int((there // asked).sum())):
            return Refusal(f"free {name} of the nodes in pieces too small for all its tasks", name, asked * tasks, asked * fit)
    on_nodes = np.where(np.arange(len(demand)) < n, demand, 0) if pooled else demand
    if int(room(nodes, on_nodes[None], tasks).sum()) < tasks:
        return Refusal("each resource is there, but not enough of them on the same nodes")
    return None
