"""Nodes that a placement uses."""

from __future__ import annotations

import numpy as np

from poolwise.arrays import IntArray
from poolwise.model.kind import Kind
from poolwise.model.machine import Machine
from poolwise.model.placement import Placement
from poolwise.model.run import Run


def used_nodes(placement: Placement, machine: Machine) -> IntArray:
    """Return the number of nodes that a placement uses of each owner, (n_owner,): its whole nodes, or 1 for a shared node."""
    amounts = np.zeros((machine.n_owner, len(machine.resources)), dtype=np.int64)
    placement.give_to(amounts)
    nodes: IntArray = ((machine.kind == Kind.NODE) & (amounts > 0).any(axis=1)).astype(np.int64)
    if "nodes" in machine.resources:
        column = machine.resource("nodes")
        whole = machine.capacity[:, column] > 0
        nodes[whole] = amounts[whole, column]
    return nodes


def node_count(run: Run, machine: Machine) -> int:
    """Return the number of nodes on which a run runs."""
    return int(used_nodes(run.placement, machine).sum())
