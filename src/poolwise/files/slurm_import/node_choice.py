"""Placement of an imported cluster: it chooses the same nodes as the cluster's Slurm, if a kernel can do so."""

from __future__ import annotations

from typing import TYPE_CHECKING

from poolwise.files.slurm_import.cluster import TREE_PLUGIN
from poolwise.policies.backfill.slurm import BUSY_NODES
from poolwise.slurm.cluster import upper_switches

if TYPE_CHECKING:
    from pathlib import Path

    from poolwise.files.slurm_import.cluster import SlurmCluster

NONE = ("", "topology/default", "topology/flat", "topology/none")
"""Values of TopologyPlugin for a network without a topology, by version of Slurm."""
FIRST_FIT = '"first_fit"'


def placement_of(cluster: SlurmCluster) -> tuple[str, str]:
    """Return a placement as TOML, and the setting that it follows.

    The placement is first fit for select/linear, and prefers the least loaded nodes for CR_LLN. Otherwise it follows the
    topology plugin, or is first fit if no kernel does the same. topology/tree without a topology.conf is noted as left out.
    """
    conf = cluster.conf
    plugin, source = conf.text("TopologyPlugin").lower(), conf.source("TopologyPlugin")
    if cluster.linear:
        if plugin not in NONE:
            cluster.leave_out(f"{source}: TopologyPlugin={plugin}: jobs take the first nodes that fit")
        return FIRST_FIT, f"the closest equivalent of {cluster.linear}"
    if "CR_LLN" in conf.words("SelectTypeParameters"):
        if plugin not in NONE:
            what = "the topology does not affect the choice of the least loaded nodes"
            cluster.leave_out(f"{source}: TopologyPlugin={plugin}: {what}")
        return '"worst_fit"', f"CR_LLN ({conf.source('SelectTypeParameters')})"
    if plugin not in (*NONE, TREE_PLUGIN):
        cluster.leave_out(f"{source}: TopologyPlugin={plugin}: jobs take the first nodes that fit")
        return FIRST_FIT, ""
    if plugin == TREE_PLUGIN and cluster.files.topology is None:
        cluster.leave_out(f"{source}: TopologyPlugin={plugin}: jobs take the first nodes that fit (--topology is not given)")
        return FIRST_FIT, ""
    source = f"TopologyPlugin={plugin} ({source})" if plugin else "TopologyPlugin is not set: topology/none"
    if plugin in NONE and any(size.gpus for size in cluster.sizes.values()):
        source += "; gpu_weights = true follows Slurm more closely, but requires the reference engine"
        return '{ name = "topology_none", gpu_weights = false }', source
    if plugin in NONE:
        return '"topology_none"', source
    busy = BUSY_NODES in conf.pairs("SchedulerParameters")
    if obstacles := ["node weights"] * cluster.weighted + [BUSY_NODES] * busy:
        reasons = " and ".join(obstacles)
        return (
            FIRST_FIT,
            f'"topology_tree" uses the same nodes as Slurm, but requires the reference engine because of {reasons}',
        )
    if cluster.files.topology is not None:
        _note_upper_switches(cluster, cluster.files.topology)
    return '"topology_tree"', source


def _note_upper_switches(cluster: SlurmCluster, topology: Path) -> None:
    """Record switches between the leaves and the top as omitted."""
    upper = upper_switches(topology)
    if len(upper) > 1:
        what = "a job uses the best-fitting leaf switches, even if no switch below the top connects them"
        cluster.leave_out(f"{topology.name}:{upper[0]}: {what}")
