"""Weights of nodes with GPUs during a backfill pass of Slurm."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from poolwise.arrays import BoolArray, IntArray
from poolwise.model import Job, Machine
from poolwise.model.rules import NodeRule
from poolwise.policies.placement.nodes.layout import NodeLayout, node_layout
from poolwise.policies.placement.nodes.placement import PLACEMENTS, CandidateNodes, NodePlacement

GPU: Final = "gpu"
"""Resource or type of devices to which the weights apply."""


@dataclass(frozen=True, eq=False)
class LoweredWeights(NodePlacement):
    """Placement that wraps another one and lowers the weights of its nodes.

    Parameters
    ----------
    placement
        The other placement.
    gpus
        (n_node,) numbers that lower the weights. Nodes with different weights keep their order.
    """

    placement: NodePlacement
    gpus: IntArray

    def layout(self, machine: Machine) -> NodeLayout:
        """Return the nodes with lowered weights."""
        layout = node_layout(machine)
        return replace(layout, weight=layout.weight * (1 + int(self.gpus.max(initial=0))) - self.gpus)

    def node_order(self, nodes: CandidateNodes) -> IntArray:
        """Return the keys of the other placement."""
        return self.placement.node_order(nodes)


class GpuWeights:
    """Weights that `select/cons_tres` lowers when it tests a job with GPUs, which affects later jobs.

    The test of a job lowers the weights of the nodes on which it could run by the number of GPUs that it requests per node, so
    that it prefers nodes with more GPUs near free cores. Slurm 22.05 restores the weights only when it starts a job, or tests
    one in its main scheduler or at its submission. Until then, a backfill pass also reserves these nodes first for jobs without
    GPUs. A pass is assumed to begin with weights affected only by jobs submitted since the last pass of the main scheduler.

    Source: logs of Slurm 22.05.8 (DebugFlags=Backfill,SelectType) with GPUs on four of 16 nodes. Without these weights, 12 of
    the 1,167 jobs tested in its backfill passes are planned on other nodes.

    Attributes
    ----------
    gpus : (n_node,) GPUs per node that are requested by the last job tested on each node; 0 once the weight is restored
    """

    def __init__(self, machine: Machine) -> None:
        self._layout = node_layout(machine)
        self.gpus: IntArray = np.zeros(len(self._layout.nodes), dtype=np.int64)

    def lowered(self, rule: NodeRule) -> NodePlacement:
        """Return the placement of a rule, which chooses nodes by the lowered weights."""
        placement = PLACEMENTS[rule.prefers]()
        return LoweredWeights(placement, self.gpus.copy()) if self.gpus.any() else placement

    def lower(self, job: Job, free: IntArray, reserved: BoolArray) -> None:
        """Lower the weights of nodes on which a job with GPUs is tested.

        These are nodes with enough free memory and GPUs, regardless of free cores. Nothing changes if too few nodes have enough
        memory for its parts.

        Parameters
        ----------
        job
            The job.
        free
            (n_owner, n_resource) free amounts.
        reserved
            (n_owner,) owners that are reserved for other jobs.
        """
        requested, layout = job.request(GPU), self._layout
        if not requested:
            return
        tested = layout.eligible(job.table, job.index) & ~reserved[layout.nodes] & (layout.local(free) >= job.memory)
        if tested.sum() < job.nodes:
            return
        large = layout.machine.capacity[layout.nodes, layout.counted[0][1]] >= job.request("cores")
        self.gpus[tested & large & (dict(layout.offers(free))[GPU] >= requested)] = requested

    def restore(self, large_enough: BoolArray, reserved: BoolArray) -> None:
        """Restore the weights of nodes when a job starts, given the owners that can hold a part and those that are reserved."""
        self.gpus[(large_enough & ~reserved)[self._layout.nodes]] = 0
