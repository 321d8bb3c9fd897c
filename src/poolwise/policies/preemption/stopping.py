"""Common part of Slurm's preemption policies: modes, exempt time, and the order in which runs stop.

Source: src/interfaces/preempt.c of Slurm (slurm_find_preemptable_jobs, _sort_by_prio, _sort_by_youngest), and
acct_policy_get_preemptable_time in src/slurmctld/acct_policy.c.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass
from typing import ClassVar, Literal

from poolwise.errors import InputError
from poolwise.interfaces import PreemptionPolicy, SchedulingPass
from poolwise.model import Run, Snapshot, Stop
from poolwise.model.node_count import node_count
from poolwise.policies.backfill.none import owners_of
from poolwise.quantities import SECOND
from poolwise.short_repr import short_repr

Mode = Literal["requeue", "cancel", "off"]
"""Treatment of a run: after a stop, its job waits again or is canceled; or the run is never stopped."""
MODES: tuple[Mode, ...] = ("requeue", "cancel", "off")


@dataclass(frozen=True)
class StoppingPolicy(PreemptionPolicy):
    """Preemption by ranks of jobs: a subclass states which runs a job may stop, their ranks, modes and exempt times.

    Parameters
    ----------
    mode
        "requeue", "cancel" or "off", for runs whose group has no mode.
    exempt_s
        Seconds for which a run cannot be stopped after its start.
    youngest_first
        Stop the most recently started runs first. By default, runs of the lowest rank stop first, then runs on the fewest
        nodes.
    reorder_count
        Number of times that the candidates are reordered to stop fewer of them.
    strict_order
        When reordering, only move the last run that the job needs to the front.
    requeue_delay_s
        Seconds for which a requeued job cannot start.
    """

    __repr__ = short_repr

    mode: Mode = "requeue"
    exempt_s: float = 0.0
    youngest_first: bool = False
    reorder_count: int = 1
    strict_order: bool = False
    requeue_delay_s: float = 0.0

    reason: ClassVar[str] = "preempted"
    """Reason under which canceled jobs are counted."""

    def __post_init__(self) -> None:
        if self.mode not in MODES:
            raise InputError(f"unknown mode '{self.mode}'", field="mode", remedy=f"use {', '.join(MODES)}")
        for name in ("exempt_s", "reorder_count", "requeue_delay_s"):
            if getattr(self, name) < 0:
                raise InputError(f"{name} is negative", field=name, remedy="use at least 0")

    @property
    def requeue_delay(self) -> int:
        """Time (ns) for which a requeued job cannot start."""
        return round(self.requeue_delay_s * SECOND)

    @abstractmethod
    def group_of(self, job: int, snapshot: Snapshot) -> str | int:
        """Return the group of a job (row) that determines which runs it may stop, such as its tier or QOS."""
        ...

    @abstractmethod
    def yields(self, group: str | int, other: str | int) -> bool:
        """Return whether jobs of the group `other` may stop runs of a group, regardless of mode and exempt time."""
        ...

    @abstractmethod
    def rank(self, run: Run, snapshot: Snapshot) -> int:
        """Return the rank of a run; lower ones stop first."""
        ...

    @abstractmethod
    def mode_of(self, run: Run, snapshot: Snapshot) -> Mode:
        """Return the mode of a run: whether it may be stopped, and what then happens to its job."""
        ...

    def exempt_until(self, run: Run, snapshot: Snapshot) -> int:
        """Return the time (ns) from which a run can be stopped."""
        return run.start + round(self.exempt_s * SECOND)

    def stops(self, job: int, cycle: SchedulingPass) -> list[Stop]:
        """Return the runs on nodes of the job's partitions that it may stop now, in order."""
        snapshot, machine = cycle.snapshot, cycle.snapshot.machine
        nodes = owners_of(job, cycle, partition=True)
        keyed_stops = list[tuple[tuple[int, ...], Stop]]()
        for run, mode in self._stoppable({self.group_of(job, snapshot)}, snapshot):
            if self.exempt_until(run, snapshot) <= snapshot.now and nodes[list(run.placement.owners())].any():
                key = (-run.start,) if self.youngest_first else (self.rank(run, snapshot), node_count(run, machine))
                keyed_stops.append((key, Stop(run.id, mode == "requeue", self.reason)))
        return [stop for _, stop in sorted(keyed_stops, key=lambda keyed: keyed[0])]

    def next_wakeup(self, cycle: SchedulingPass) -> int | None:
        """Return when (ns) the first of the runs that a waiting job may stop loses its exemption; None without such a run."""
        snapshot = cycle.snapshot
        if all(self.exempt_until(run, snapshot) <= snapshot.now for run in snapshot.runs()):
            return None
        groups = {self.group_of(job, snapshot) for job in cycle.queue.jobs.tolist()}
        times = [self.exempt_until(run, snapshot) for run, _ in self._stoppable(groups, snapshot)]
        return min((time for time in times if time > snapshot.now), default=None)

    def _stoppable(self, groups: Set[str | int], snapshot: Snapshot) -> Iterator[tuple[Run, Mode]]:
        """Yield the running runs that jobs of some groups may stop now or later, with their modes."""
        for run in snapshot.runs():
            group = self.group_of(run.job, snapshot)
            if run.id >= 0 and any(self.yields(group, other) for other in groups):
                mode = self.mode_of(run, snapshot)
                if mode != "off":
                    yield run, mode


def check_modes(modes: Mapping[str, str], field: str) -> None:
    """Raise InputError for an unknown mode among the values of a mapping."""
    for name, mode in modes.items():
        if mode not in MODES:
            raise InputError(f"unknown mode '{mode}' of '{name}'", field=field, remedy=f"use {', '.join(MODES)}")
