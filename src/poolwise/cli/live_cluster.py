"""Read-only views of clusters, for `poolwise snapshot`, `poolwise forecast live` and `poolwise explain live`."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from poolwise.cli.console import warn
from poolwise.cli.live import named_scheduler, require_packages
from poolwise.errors import InputError

if TYPE_CHECKING:
    from poolwise.live.platform import LivePlatform
    from poolwise.model import MachineState


class ClusterName(StrEnum):
    """Kinds of clusters."""

    SLURM = "slurm"
    KUBERNETES = "kubernetes"


KubeconfigOption = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Defaults to $KUBECONFIG, then the cluster that Poolwise runs in, then ~/.kube/config."),
]


def observe(
    cluster: ClusterName, part: str | None, scheduler: str | None = None, kubeconfig: Path | None = None
) -> LivePlatform:
    """Read a cluster once, with the rights of the user, as a scheduler would see it; nothing is changed.

    `part` is the partition on Slurm, and the schedulerName of the pods on Kubernetes.
    """
    return _slurm(part) if cluster is ClusterName.SLURM else _kubernetes(part, scheduler, kubeconfig)


def read_cluster_state(
    cluster: ClusterName, part: str | None, scheduler: str = "", kubeconfig: Path | None = None
) -> MachineState:
    """Return the state of a cluster now; `scheduler` names the scheduler that decides there, if known."""
    from poolwise.live.platform import LiveView

    source = f"{cluster.value} {part or ''}".strip()
    return LiveView.of(observe(cluster, part, scheduler or None, kubeconfig)).state(source, scheduler)


def _slurm(partition: str | None) -> LivePlatform:
    from poolwise.live.slurm.parsing import default_partition, is_exclusive
    from poolwise.live.slurm.platform import SlurmSettings
    from poolwise.live.slurm.shadow_mode import ObservedPlatform

    require_packages("slurm")
    name = partition if partition is not None else default_partition()
    platform = ObservedPlatform(SlurmSettings(name, is_exclusive(name)))
    for job, error in platform.invalid_requests.items():
        warn(f"job {job} is skipped: {error.message}")
    return platform


def _kubernetes(name: str | None, scheduler: str | None, kubeconfig: Path | None) -> LivePlatform:
    """Read the pods with a schedulerName; nodes are shared unless the scheduler allocates whole nodes."""
    require_packages("kubernetes", "aiohttp", "cel", "msgspec", "yaml")
    from poolwise.live.kubernetes.access import Access
    from poolwise.live.kubernetes.actions import Actions
    from poolwise.live.kubernetes.platform import ShadowKubernetes
    from poolwise.live.kubernetes.watch_client import WatchClient
    from poolwise.policies.placement.nodes.placement import FirstNodes
    from poolwise.schedulers.list import ListScheduler

    link = WatchClient(Access.discover(kubeconfig))
    try:
        link.open()
        policy = named_scheduler(scheduler) if scheduler else ListScheduler(placement=FirstNodes())
        platform = ShadowKubernetes(link, name if name is not None else "poolwise", policy, Actions())
        if not platform.has_nodes:
            raise InputError("the cluster has no nodes that could run jobs", remedy="add a node")
        return platform
    finally:
        link.close()
