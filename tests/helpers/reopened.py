"""Check that decisions follow from queue and snapshot: a reopened scheduler decides alike, whatever the rows."""

import random

import numpy as np

from poolwise.interfaces import Dispatcher, Scheduler
from poolwise.model import Changes, Decisions, Queue, Snapshot
from tests.helpers.renumbered import named, renumbered


class Reopened(Scheduler, Dispatcher):
    """A scheduler that is asked at each pass along with fresh ones, and continues with one of them at random passes."""

    def __init__(self, scheduler: Scheduler, seed: int) -> None:
        self.scheduler, self.random, self.passes = scheduler, random.Random(seed), 0

    def open(self, machine, seed):
        self.machine, self.seed = machine, seed
        self.warm = self.scheduler.open(machine, seed)
        return self

    def schedule(self, queue: Queue, snapshot: Snapshot, changes: Changes) -> Decisions:
        self.passes += 1
        decisions, fresh = self.warm.schedule(queue, snapshot, changes), self.scheduler.open(self.machine, self.seed)
        assert fresh.schedule(queue, snapshot, Changes()) == decisions
        rows = np.array(self.random.sample(range(len(queue.table)), len(queue.table)), dtype=np.int64)
        other = self.scheduler.open(self.machine, self.seed).schedule(*renumbered(queue, snapshot, rows), changes)
        assert named(other, rows) == decisions
        if self.random.random() < 0.3:
            self.warm = fresh
        return decisions
