"""Explanation of one job's wait: the scheduling passes that left it waiting, folded into episodes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

from poolwise.explain.memory import MemoryStretch
from poolwise.explain.places import Holder, partition_of
from poolwise.model import Job, Machine, Outcome, Placement
from poolwise.model.reason import Reason, WaitCause
from poolwise.short_repr import short_repr


@dataclass(frozen=True, slots=True)
class Episode:
    """Consecutive passes in which the job waited for the same cause, resource, need and blocker.

    Attributes
    ----------
    start, end : ns of the first pass, and of the first pass of the next episode
    passes : number of passes
    reason : reason given in the first pass
    free : minimum and maximum free amount of the resource that was short
    ahead : minimum and maximum number of waiting jobs with higher priority
    reserved : earliest and latest start of the blocker's reservation, ns; None without a reservation
    fitting : minimum and maximum number of nodes with enough of the resource, where `reason.nodes` counts them
    holders : running jobs that held most of the resource in the first pass
    """

    start: int
    end: int
    passes: int
    reason: Reason
    free: tuple[int, int]
    ahead: tuple[int, int]
    reserved: tuple[int, int] | None
    fitting: tuple[int, int] = (0, 0)
    holders: tuple[Holder, ...] = ()


def fold(
    passes: Iterable[tuple[int, Reason]], end: int, holders: Mapping[int, tuple[Holder, ...]] | None = None
) -> tuple[Episode, ...]:
    """Fold the (ns, reason) of each pass into episodes; the last one ends at `end`. `holders` is keyed by first pass (ns)."""
    groups = [list(group) for _, group in groupby(passes, key=lambda timed: episode_key(timed[1]))]
    ends = [*(group[0][0] for group in groups[1:]), end]
    holders_at = holders if holders is not None else {}
    return tuple(_episode(group, until, holders_at.get(group[0][0], ())) for group, until in zip(groups, ends, strict=False))


def _episode(passes: list[tuple[int, Reason]], end: int, holders: tuple[Holder, ...]) -> Episode:
    reasons = [reason for _, reason in passes]
    free, ahead, fitting = ([getattr(cause, name) for cause in reasons] for name in ("free", "ahead", "fitting"))
    begins = [reason.reserved for reason in reasons if reason.reserved is not None]
    reserved = (min(begins), max(begins)) if begins else None
    spans = (min(free), max(free)), (min(ahead), max(ahead)), reserved, (min(fitting), max(fitting))
    return Episode(passes[0][0], end, len(passes), reasons[0], *spans, holders)


def episode_key(reason: Reason) -> tuple[object, ...]:
    """Return a key that all reasons of one episode share."""
    return reason.cause, reason.text, reason.resource, reason.needed, reason.blocker, reason.reserved is None


@dataclass(frozen=True, eq=False)
class Explanation:
    """Reasons why a job waited and how its wait ended; `explain_wait` returns it.

    Attributes
    ----------
    job, machine : the job and the machine of the run
    passes : (ns, reason) of each pass that left the job waiting
    until : ns at which it started or was rejected; ns of the last pass if it is still waiting
    placement : placement of its first start; None if it never started
    rejected : reason why it can never run; "" if it can
    memory : memory of the job over all its runs, if the scheduler can change it or the workload states memory use
    holders : ns of the first pass of an episode -> running jobs that held most of what was short

    Examples
    --------
    >>> import poolwise
    >>> workload = poolwise.Workload.of(["0 s", "10 s"], ["1 min", "1 min"], requests={"nodes": [2, 1]})
    >>> explanation = poolwise.explain_wait(workload, poolwise.Machine.flat(2), poolwise.list_scheduler(), job=2)
    >>> explanation.status
    'started'
    """

    __repr__ = short_repr

    job: Job
    machine: Machine
    passes: tuple[tuple[int, Reason], ...]
    until: int
    placement: Placement | None = None
    rejected: str = ""
    memory: tuple[MemoryStretch, ...] = ()
    holders: Mapping[int, tuple[Holder, ...]] = field(default_factory=dict)

    @property
    def status(self) -> str:
        """Outcome of the wait: "started", "rejected" or "waiting"."""
        return "started" if self.placement is not None else "rejected" if self.rejected else "waiting"

    @property
    def last_start(self) -> int:
        """Time (ns) at which the last finished run started, if the runs are recorded in `memory`; else `until`."""
        begins = {stretch.run: stretch.begin for stretch in reversed(self.memory) if stretch.outcome is Outcome.FINISHED}
        return max(begins.values(), default=self.until)

    @property
    def wait(self) -> int:
        """Wait in ns, counted from the submission."""
        return self.until - self.job.submit

    @property
    def episodes(self) -> tuple[Episode, ...]:
        """Passes folded into episodes."""
        return fold(self.passes, self.until, self.holders)

    @property
    def partition(self) -> str:
        """Partitions that accept the job, separated by commas; empty on a machine without partitions."""
        return partition_of(self.job, self.machine)

    def totals(self) -> dict[tuple[WaitCause, str], int]:
        """Return (cause, resource) -> ns of the wait, longest first."""
        total: dict[tuple[WaitCause, str], int] = {}
        for episode in self.episodes:
            key = episode.reason.cause, episode.reason.resource
            total[key] = total.get(key, 0) + episode.end - episode.start
        return dict(sorted(total.items(), key=lambda item: -item[1]))

    def to_dict(self) -> dict[str, Any]:
        """Return plain data, as `poolwise explain --json` prints it; jobs are identified by id."""
        return {
            "job": self.job.id,
            "status": self.status,
            "submit_ns": self.job.submit,
            "until_ns": self.until,
            "wait_ns": self.wait,
            "partition": self.partition or None,
            "placement": None if self.placement is None else self._rows(self.placement),
            "rejected": self.rejected or None,
            "passes": len(self.passes),
            "totals": [{"cause": cause, "resource": resource, "ns": ns} for (cause, resource), ns in self.totals().items()],
            "episodes": [self._episode(episode) for episode in self.episodes],
            **({"memory": [stretch.to_dict() for stretch in self.memory]} if self.memory else {}),
        }

    def _rows(self, placement: Placement) -> list[dict[str, Any]]:
        owners, resources = self.machine.owners, self.machine.resources
        return [
            {"owner": owners[owner], "resource": resources[resource], "amount": amount}
            for _, owner, resource, amount in placement.rows()
        ]

    def _episode(self, episode: Episode) -> dict[str, Any]:
        reason = episode.reason
        return {
            "from_ns": episode.start,
            "to_ns": episode.end,
            "passes": episode.passes,
            "cause": reason.cause,
            "reason": reason.text,
            "resource": reason.resource or None,
            "needed": reason.needed if reason.resource else None,
            "free": list(episode.free) if reason.resource else None,
            "nodes": reason.nodes or None,
            "fitting": list(episode.fitting) if reason.nodes else None,
            "holders": [
                {"job": int(self.job.table.id[holder.job]), "amount": holder.amount, "until_ns": holder.until}
                for holder in episode.holders
            ],
            "blocker": None if reason.blocker is None else int(self.job.table.id[reason.blocker]),
            "reserved_ns": None if episode.reserved is None else list(episode.reserved),
            "ahead": list(episode.ahead),
        }
