"""Clusters that commands look at once: `poolwise snapshot` and `poolwise explain --live`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import TYPE_CHECKING

from poolwise.cli.console import warn
from poolwise.cli.live import named_scheduler, needs
from poolwise.errors import InputError

if TYPE_CHECKING:
    from poolwise.live.platform import LivePlatform


class ClusterName(StrEnum):
    """What kind of cluster is looked at."""

    SLURM = "slurm"
    KUBERNETES = "kubernetes"


def see(cluster: ClusterName, partition: str | None, scheduler: str | None = None) -> LivePlatform:
    """Read a cluster with the rights of the caller, as a scheduler would see it; nothing is changed."""
    return SEEN[cluster](partition, scheduler)


def _slurm(partition: str | None, scheduler: str | None) -> LivePlatform:
    from poolwise.live.slurm.parsing import default_partition, is_exclusive
    from poolwise.live.slurm.poller import SlurmSettings
    from poolwise.live.slurm.shadow_mode import ObservedPlatform

    needs("slurm")
    name = partition if partition is not None else default_partition()
    seen = ObservedPlatform(SlurmSettings(name, is_exclusive(name)))
    for job, error in seen.invalid_requests.items():
        warn(f"job {job} is left out: {error.message}")
    return seen


def _kubernetes(name: str | None, scheduler: str | None) -> LivePlatform:
    """The pods of a scheduler, by its name; nodes are shared unless the scheduler takes them whole."""
    needs("kubernetes", "aiohttp", "cel", "msgspec", "yaml")
    from poolwise.live.kubernetes.access import Access
    from poolwise.live.kubernetes.actions import ShadowActions
    from poolwise.live.kubernetes.shadow_mode import ShadowKubernetes
    from poolwise.live.kubernetes.watch_client import WatchClient
    from poolwise.policies.placement.nodes.placement import FirstNodes
    from poolwise.schedulers.list import ListScheduler

    link = WatchClient(Access.discover())
    try:
        link.open()
        wanted = named_scheduler(scheduler) if scheduler else ListScheduler(placement=FirstNodes())
        seen = ShadowKubernetes(link, name if name is not None else "poolwise", wanted, ShadowActions())
        if not seen.has_nodes:
            raise InputError("the cluster has no nodes that jobs could run on", field="--cluster", remedy="add a node")
        return seen
    finally:
        link.close()


SEEN: Mapping[ClusterName, Callable[[str | None, str | None], LivePlatform]] = {
    ClusterName.SLURM: _slurm,
    ClusterName.KUBERNETES: _kubernetes,
}
"""How each kind of cluster is read."""
