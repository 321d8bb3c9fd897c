"""What a platform that is there offers beyond `Platform`, and what is said of each pass on it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from poolwise.errors import InputError
from poolwise.interfaces import Dispatcher, Platform, Scheduler
from poolwise.loop import Loop
from poolwise.model import Arrival, CommitResult, Event, EventBatch, JobTable, Queue, Renumbered, Snapshot
from poolwise.model.state import InitialRun, MachineState


class LivePlatform(Platform, Protocol):
    """A cluster that is there.

    Where it is taken over, its first batch of events tells the arrival of all that waits. Its time 0 is the epoch of its
    job table, and jobs are named as the cluster's users know them.
    """

    def stop(self) -> None:
        """End `events` before its next batch; may be called from a signal handler or another thread."""
        ...

    def class_of(self, job: int) -> str:
        """Class of a job (row) under which waits are counted, one of a few: a partition, a queue, a priority class."""
        ...

    def report_wait(self, job: int, why: str) -> None:
        """Tell a job's user why it waits, where the cluster has a place for it; "" takes back what was said."""
        ...


@dataclass(frozen=True)
class Pass:
    """One scheduling pass, after it was committed.

    Attributes
    ----------
    batch : what had happened
    outcome : what the platform made of the plan
    loop : the loop, whose queue is that after the pass
    before : the table of jobs that was told before, whose rows are named by events before a `Renumbered`
    snapshot : the state after the pass
    seconds, commit_seconds : how long the whole pass took, and the commits of it
    """

    batch: EventBatch
    outcome: CommitResult
    loop: Loop
    before: JobTable
    snapshot: Snapshot
    seconds: float
    commit_seconds: float

    def events(self) -> Iterator[tuple[Event, JobTable]]:
        """Yield what had happened, each with the table whose rows it names."""
        events = self.batch.events
        turn = next((k for k, event in enumerate(events) if isinstance(event, Renumbered)), 0)
        for k, event in enumerate(events):
            yield event, self.before if k < turn else self.snapshot.table


class PassObserver(Protocol):
    """Something that is shown every pass: metrics, a log, a record. It must not change what it is shown."""

    def observe_pass(self, done: Pass) -> None:
        """Look at a pass."""
        ...


@dataclass(frozen=True)
class LiveView:
    """A cluster at one instant, as a scheduler would see it; nothing is committed.

    Attributes
    ----------
    queue : all that waits
    snapshot : the state
    """

    queue: Queue
    snapshot: Snapshot

    @classmethod
    def of(cls, platform: LivePlatform) -> LiveView:
        """Look at a platform that was not driven yet."""
        queue = Queue(platform.table)
        batch = next(iter(platform.events()))
        for event in batch.events:
            if isinstance(event, Arrival):
                queue.add(event.job, event.tasks)
        return cls(queue, platform.snapshot())

    def open(self, scheduler: Scheduler, seed: int = 0) -> Dispatcher:
        """Open a scheduler on this machine."""
        return scheduler.open(self.snapshot.machine, seed)

    def find(self, name: str) -> int:
        """Row of a job that waits; raises InputError for any other."""
        table = self.queue.table
        for job in self.queue.jobs.tolist():
            if table.name(job) == name:
                return int(job)
        if any(table.name(run.job) == name for run in self.snapshot.runs()):
            raise InputError(f"job {name} is at work", field="--live", remedy="name a job that waits")
        problem = f"job {name} does not wait here"
        raise InputError(problem, field="--live", remedy="it may be over, held by its user, or of another partition")

    def state(self, source: str, scheduler: str = "") -> MachineState:
        """Return the cluster as a state from which engines go on: what is there now, what runs and what waits."""
        snapshot = self.snapshot
        held = np.zeros_like(snapshot.free)
        runs = sorted(snapshot.runs(), key=lambda run: (run.start, run.id))
        for run in runs:
            run.placement.give_to(held)
        machine = snapshot.machine.with_capacity(np.maximum(snapshot.capacity, held))
        running = [InitialRun(run.job, min(run.start, snapshot.now), run.placement) for run in runs]
        return MachineState(machine, snapshot.table, snapshot.now, running, self.queue.jobs.copy(), source, scheduler)
