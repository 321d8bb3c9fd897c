"""Interfaces of live platforms and of the observers of scheduling passes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from poolwise.errors import InputError
from poolwise.interfaces import Platform
from poolwise.loop import Loop
from poolwise.model import Arrival, CommitResult, Decision, Decisions, EventBatch, Queue, Snapshot, Start, Stop
from poolwise.model.state import InitialRun, MachineState


class LivePlatform(Platform, Protocol):
    """A real cluster.

    Its first batch of events reports all waiting jobs as arrivals. Its time 0 is the epoch of its job table. Job names are the
    names that the cluster's users see.
    """

    def stop(self) -> None:
        """End `events` before its next batch. May be called from a signal handler or another thread."""
        ...

    def class_of(self, job: int) -> str:
        """Return the class of a job (row) by which waits are grouped: one of a few partitions, queues or priority classes."""
        ...

    def report_wait(self, job: int, why: str) -> None:
        """Show a job's user why it waits, if the cluster has a field for it; "" clears the message."""
        ...


def without_starts(decisions: Decisions) -> tuple[tuple[Decision, ...], tuple[tuple[Decision, str], ...]]:
    """Return the decisions that shadow mode commits, and the starts and stops, which it refuses."""
    refused = tuple((decision, "shadow mode") for decision in decisions if isinstance(decision, Start | Stop))
    return tuple(decision for decision in decisions if not isinstance(decision, Start | Stop)), refused


@dataclass(frozen=True)
class Pass:
    """One committed scheduling pass."""

    batch: EventBatch  # events before the pass
    outcome: CommitResult  # result of the commit
    loop: Loop  # the loop, with its queue after the pass
    snapshot: Snapshot  # state after the pass
    seconds: float  # duration of the whole pass
    commit_seconds: float  # duration of its commits


class PassObserver(Protocol):
    """An observer of all passes, such as metrics, a log or a record. It must not modify what it receives."""

    def observe_pass(self, done: Pass) -> None:
        """Observe a pass."""
        ...


@dataclass(frozen=True)
class LiveView:
    """A cluster at one instant, as a scheduler sees it, without commits."""

    queue: Queue  # all waiting jobs
    snapshot: Snapshot

    @classmethod
    def of(cls, platform: LivePlatform) -> LiveView:
        """Read a platform that has not been driven yet."""
        queue = Queue(platform.table)
        batch = next(iter(platform.events()))
        for event in batch.events:
            if isinstance(event, Arrival):
                queue.add(event.job, event.tasks)
        return cls(queue, platform.snapshot())

    def find(self, name: str) -> int:
        """Return the row of a waiting job; raise InputError for any other name."""
        table = self.queue.table
        for job in self.queue.jobs.tolist():
            if table.name(job) == name:
                return int(job)
        if any(table.name(run.job) == name for run in self.snapshot.runs()):
            raise InputError(f"job {name} is already running", field="--live", remedy="name a waiting job")
        problem = f"no waiting job is named {name}"
        raise InputError(problem, field="--live", remedy="it may have ended, be held by its user, or be in another partition")

    def state(self, source: str, scheduler: str = "") -> MachineState:
        """Return the machine, the running jobs and the waiting jobs as a state from which simulations resume."""
        snapshot = self.snapshot
        held = np.zeros_like(snapshot.free)
        runs = sorted(snapshot.runs(), key=lambda run: (run.start, run.id))
        for run in runs:
            run.placement.give_to(held)
        machine = snapshot.machine.with_capacity(np.maximum(snapshot.capacity, held))
        running = [InitialRun(run.job, min(run.start, snapshot.now), run.placement) for run in runs]
        return MachineState(machine, snapshot.table, snapshot.now, running, self.queue.jobs.copy(), source, scheduler)
