"""Preemption between partitions of different tiers.

Source: Slurm's src/plugins/preempt/partition_prio/preempt_partition_prio.c.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from poolwise.errors import UnknownNameError
from poolwise.model import JobTable, Machine, Run, Snapshot
from poolwise.model.eligibility import NO_PARTITION, PARTITION, taking_partitions, tiers
from poolwise.policies.preemption.stopping import Mode, StoppingPolicy, check_modes
from poolwise.registry import register
from poolwise.short_repr import short_repr


@register("preemptions", "tiers")
@dataclass(frozen=True)
class TierPreemption(StoppingPolicy):
    """Jobs of a partition stop runs of partitions with a lower tier, as with Slurm's `preempt/partition_prio`.

    A run stops only if it uses nodes of the waiting job's partitions. Runs of the lowest tier come first, then those on the
    fewest nodes. A job in several partitions has the highest tier among those that accept it.

    Parameters
    ----------
    partitions
        Partition -> mode of its runs: "requeue", "cancel" or "off". Others have `mode`.

    Examples
    --------
    >>> import poolwise
    >>> from poolwise.policies import TierPreemption
    >>> poolwise.ListScheduler(preemption=TierPreemption(mode="cancel", exempt_s=600)).preempts
    True
    """

    __repr__ = short_repr

    partitions: Mapping[str, Mode] = field(default_factory=dict)

    def __post_init__(self) -> None:
        super().__post_init__()
        check_modes(self.partitions, "partitions")

    def check(self, machine: Machine, jobs: JobTable) -> None:
        """Raise UnknownNameError for a partition that the machine does not have."""
        names = [part.name for part in machine.partitions]
        for name in self.partitions:
            if name not in names:
                raise UnknownNameError.of(PARTITION, name, names, field="partitions")

    def group_of(self, job: int, snapshot: Snapshot) -> int:
        """Return the tier of a job."""
        return int(tiers(snapshot.machine, snapshot.table)[job])

    def yields(self, group: str | int, other: str | int) -> bool:
        """Return whether a tier is lower than another one."""
        return int(group) < int(other)

    def rank(self, run: Run, snapshot: Snapshot) -> int:
        """Return the tier of a run."""
        return self.group_of(run.job, snapshot)

    def mode_of(self, run: Run, snapshot: Snapshot) -> Mode:
        """Return the mode of the run's partition."""
        if not self.partitions:
            return self.mode
        return self.partitions.get(_partition(snapshot.machine, snapshot.table, run.job), self.mode)


def _partition(machine: Machine, table: JobTable, job: int) -> str:
    """Return the partition of the highest tier among those that accept a job; empty for a job outside partitions."""
    accepting = str(taking_partitions(machine, table, slice(job, job + 1))[0]).split(",")
    parts = [part for part in machine.partitions if part.name in accepting and part.name != NO_PARTITION]
    return max(parts, key=lambda part: part.tier).name if parts else ""
