"""Clusters that commands look at once: `poolwise snapshot` and `poolwise explain --live`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import TYPE_CHECKING

from poolwise.cli.console import warn
from poolwise.cli.live import needs

if TYPE_CHECKING:
    from poolwise.live.platform import LivePlatform


class ClusterName(StrEnum):
    """What kind of cluster is looked at."""

    SLURM = "slurm"


def see(cluster: ClusterName, partition: str | None) -> LivePlatform:
    """Read a cluster with the rights of the caller; nothing is changed."""
    return SEEN[cluster](partition)


def _slurm(partition: str | None) -> LivePlatform:
    from poolwise.live.slurm.following import SlurmSettings
    from poolwise.live.slurm.reading import default_partition, is_exclusive
    from poolwise.live.slurm.shadow import SeenPlatform

    needs("slurm")
    name = partition if partition is not None else default_partition()
    seen = SeenPlatform(SlurmSettings(name, is_exclusive(name)))
    for job, error in seen.unreadable.items():
        warn(f"job {job} is left out: {error.message}")
    return seen


SEEN: Mapping[ClusterName, Callable[[str | None], LivePlatform]] = {ClusterName.SLURM: _slurm}
"""How each kind of cluster is read."""
