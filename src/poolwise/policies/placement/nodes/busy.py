"""Nodes that Slurm's backfill reserves with bf_busy_nodes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from poolwise.arrays import BoolArray, IntArray
from poolwise.model import Job, Placement, Refusal, Snapshot
from poolwise.policies.placement.nodes.layout import node_layout
from poolwise.policies.placement.nodes.placement import CandidateNodes, NodePlacement, candidates, rows_of_part


@dataclass(frozen=True, eq=False)
class BusyNodes(NodePlacement):
    """First fit among nodes of one weight: on nodes in use first, then on idle ones.

    If nodes in use hold the last part, one more node is chosen: the first idle node of their weight that could hold a part
    without a memory pool. Slurm thus reserves one node more than the job requests.

    Source: slurm.conf(5) of Slurm 22.05, "bf_busy_nodes"; and the choices of Slurm 22.05.8 (`tests/live`).

    Parameters
    ----------
    idle
        (n_node,) whether nothing runs on a node now.
    """

    idle: BoolArray

    def node_order(self, nodes: CandidateNodes) -> IntArray:
        """Return 0 for nodes in use, and 1 for idle ones."""
        return self.idle.astype(np.int64)

    def place(self, job: Job, snapshot: Snapshot) -> Placement | Refusal:
        """Place all parts of a job, and perhaps one more, or return the shortage."""
        placement, layout = super().place(job, snapshot), node_layout(snapshot.machine)
        if isinstance(placement, Refusal) or job.tasks > 1:
            return placement
        chosen = np.isin(layout.nodes, list(placement.owners()))
        last = layout.weight == layout.weight[chosen].max()
        if (chosen & last & self.idle).any():
            return placement
        nodes = candidates(job, layout.eligible(job.table, job.index), snapshot.free, layout)
        further = np.flatnonzero(nodes.able & (nodes.lack == 0) & last & self.idle)
        if not len(further):
            return placement
        return Placement.of([*placement.rows(), *rows_of_part(job, 0, int(further[0]), 0, snapshot.free, layout)])
