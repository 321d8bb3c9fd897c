"""Placement of an imported cluster: the nodes that its Slurm chooses, where kernels choose the same."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from poolwise.files.slurm_import.cluster import SlurmCluster

NONE = ("", "topology/default", "topology/flat", "topology/none")
"""Values of TopologyPlugin for a network without a topology, by version of Slurm."""


def placement_of(cluster: SlurmCluster) -> tuple[str, str]:
    """Return the name of a placement, and where it comes from.

    Racks of whole nodes; the least loaded nodes with CR_LLN; else what the topology plugin chooses, or first fit if no kernel
    does the same. topology/tree without a topology.conf is noted as left out.
    """
    conf = cluster.conf
    if cluster.whole[0]:
        return "racks", ""
    if "CR_LLN" in conf.words("SelectTypeParameters"):
        return "worst_fit", f"CR_LLN ({conf.source('SelectTypeParameters')})"
    plugin, source = conf.text("TopologyPlugin").lower(), conf.source("TopologyPlugin")
    if plugin not in (*NONE, "topology/tree"):
        cluster.leave_out(f"{source}: TopologyPlugin={plugin}: jobs take the first nodes that fit")
        return "first_fit", ""
    if plugin == "topology/tree" and cluster.files.topology is None:
        cluster.leave_out(f"{source}: TopologyPlugin={plugin}: jobs take the first nodes that fit (--topology is not given)")
        return "first_fit", ""
    name = "topology_none" if plugin in NONE else "topology_tree"
    if obstacles := _obstacles(name, cluster):
        reasons = " and ".join(obstacles)
        return "first_fit", f'"{name}" uses the same nodes as Slurm, in the reference engine because of {reasons}'
    return name, f"TopologyPlugin={plugin} ({source})" if plugin else "TopologyPlugin is not set: topology/none"


def _obstacles(name: str, cluster: SlurmCluster) -> Collection[str]:
    """Return what keeps a placement of Slurm out of kernels."""
    if name == "topology_none":
        return ["GPUs"] if any(size.gpus for size in cluster.sizes.values()) else []
    busy = "bf_busy_nodes" in cluster.conf.pairs("SchedulerParameters")
    return ["node weights"] * cluster.weighted + ["bf_busy_nodes"] * busy
