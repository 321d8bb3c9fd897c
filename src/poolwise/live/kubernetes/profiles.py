"""Profiles: the pods of several schedulerNames on one cluster, each with a separate scheduler."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from poolwise.interfaces import Dispatcher, Scheduler
from poolwise.live.kubernetes.machine import PROFILE
from poolwise.model import Changes, Decision, Decisions, JobTable, Machine, Queue, Reason, Snapshot
from poolwise.short_repr import short_repr


@dataclass(frozen=True)
class ProfileScheduler(Scheduler):
    """A scheduler for each schedulerName. In each pass they decide in turn, each from the state that the ones before it leave.

    Parameters
    ----------
    profiles
        schedulerName -> scheduler, in the order in which they decide.
    """

    __repr__ = short_repr

    profiles: Mapping[str, Scheduler]

    @property
    def supports_partitions(self) -> bool:
        """True if all schedulers respect node restrictions."""
        return all(scheduler.supports_partitions for scheduler in self.profiles.values())

    @property
    def resizes(self) -> bool:
        """True if any scheduler may resize running jobs."""
        return any(scheduler.resizes for scheduler in self.profiles.values())

    @property
    def keeps_state(self) -> str:
        """State that any scheduler keeps between passes."""
        return ", ".join(dict.fromkeys(state for scheduler in self.profiles.values() if (state := scheduler.keeps_state)))

    def open(self, machine: Machine, seed: int) -> Dispatcher:
        """Open all schedulers."""
        return ProfileDispatcher({name: scheduler.open(machine, seed) for name, scheduler in self.profiles.items()})

    def check(self, machine: Machine, jobs: JobTable) -> None:
        """Check the machine and the jobs with all schedulers, since each models the same resources."""
        for scheduler in self.profiles.values():
            scheduler.check(machine, jobs)


@dataclass(frozen=True)
class ProfileDispatcher(Dispatcher):
    """The open dispatchers of all profiles."""

    dispatchers: Mapping[str, Dispatcher]

    def schedule(self, queue: Queue, snapshot: Snapshot, changes: Changes) -> Decisions:
        """Let each profile decide about its jobs; jobs of a table without profiles, as in a probe, belong to all of them."""
        entries, reasons, wakeups = list[Decision](), dict[int, Reason](), list[int]()
        profile = queue.table.attributes.get(PROFILE)
        for name, dispatcher in self.dispatchers.items():
            own = queue if profile is None else queue.only(queue.jobs[profile[queue.jobs] == name])
            decided = _decide(dispatcher, own, snapshot, _of_queue(changes, own))
            snapshot = snapshot.with_starts(decided.starts)
            entries += decided.entries
            reasons.update(decided.reasons)
            wakeups += [] if decided.next_wakeup is None else [decided.next_wakeup]
        return Decisions(tuple(entries), min(wakeups, default=None), reasons)


def _decide(dispatcher: Dispatcher, queue: Queue, snapshot: Snapshot, changes: Changes) -> Decisions:
    """Ask a dispatcher, then again without the jobs that it rejects; the loop repeats only passes in which nothing starts."""
    decided = dispatcher.schedule(queue, snapshot, changes)
    if not decided.rejected or decided.starts:
        return decided
    rest = queue.only(np.setdiff1d(queue.jobs, decided.rejected))
    again = _decide(dispatcher, rest, snapshot, changes.without_arrivals(frozenset(decided.rejected)))
    return Decisions((*decided.entries, *again.entries), again.next_wakeup, {**decided.reasons, **again.reasons})


def _of_queue(changes: Changes, queue: Queue) -> Changes:
    """Return the changes restricted to the jobs of a queue; keep starts and ends of all profiles, which change the machine."""
    return replace(
        changes,
        arrived=tuple(job for job in changes.arrived if job in queue),
        requeued=tuple(job for job in changes.requeued if job in queue),
        refused=tuple((start, why) for start, why in changes.refused if start.job in queue),
        explain=frozenset(job for job in changes.explain if job in queue),
    )
