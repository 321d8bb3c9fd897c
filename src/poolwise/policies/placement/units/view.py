"""View of the units of a machine at one instant: idle units, expected ends of the others, and offers for tasks."""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

import numpy as np

from poolwise.arrays import FloatArray
from poolwise.model import Placement, Run, Snapshot
from poolwise.policies.placement.units.layout import Choices, LeafRange, Tier, UnitLayout
from poolwise.policies.placement.units.segment_trees import BitTree, MinTree
from poolwise.quantities import HORIZON, NEVER
from poolwise.random import uniform


class Task(NamedTuple):
    """One task: row of its job and its number within the job."""

    job: int
    task: int


class UnitOffer(NamedTuple):
    """Equivalent units for a task: of one type and at one distance from its data.

    `response` is the uncontended transfer + compute time in ns, as the scheduler expects it.
    """

    response: int
    ranges: Tier


class Units(Choices):
    """Units of a machine, built from a snapshot and updated by `occupy`, `release` and `stand_in_line`.

    Attributes
    ----------
    idle : leaves without a task
    ends : expected end (ns) of the task on each busy leaf, `NEVER` for idle ones
    until : time (ns) at which each leaf is expected to have finished its queued tasks too
    line : leaf -> (task, response) of the tasks in its queue
    ask_at : time (ns) at which a policy asks to be called again, `NEVER` if it does not
    """

    def __init__(self, snapshot: Snapshot, seed: int = 0) -> None:
        super().__init__(UnitLayout.of(snapshot.machine), snapshot.table)
        self.seed = seed
        n = len(self.layout.owner)
        self.idle, self.ends, self.until = BitTree(n), MinTree(n), MinTree(n)
        self.line: dict[int, deque[tuple[Task, int]]] = {}
        self.ask_at = NEVER
        self._offers: dict[tuple[int, ...], tuple[UnitOffer, ...]] = {}
        self._draws: tuple[int, FloatArray] = (-1, np.zeros(0))
        self.snapshot = snapshot
        for leaf in range(n):
            self._read_leaf(leaf)

    @property
    def now(self) -> int:
        """Time of the snapshot (ns)."""
        return self.snapshot.now

    def run_on(self, leaf: int) -> Run | None:
        """Return the run that occupies a leaf, None if there is none. Runs that merely depend on the leaf do not count."""
        owner = int(self.layout.owner[leaf])
        for number in self.snapshot.occupants(owner):
            run = self.snapshot.run(number)
            if run.placement.amount[run.placement.owner == owner].any():
                return run
        return None

    def _read_leaf(self, leaf: int) -> None:
        """Read a leaf from the snapshot. It runs one task at a time, however many slots it has.

        A unit that has lost its slots accepts no other task when the current one ends: it is neither idle nor busy.
        """
        cell = int(self.layout.owner[leaf]), self.layout.column
        if self.snapshot.capacity[cell] <= 0:
            return
        if self.snapshot.free[cell] == self.snapshot.capacity[cell]:
            self.idle.set_leaf(leaf, True)
        elif (run := self.run_on(leaf)) is not None:
            self._busy_until(leaf, max(run.expected_end, self.now + 1))

    def _busy_until(self, leaf: int, end: int) -> None:
        self.ends.set_leaf(leaf, end)
        self.until.set_leaf(leaf, end)

    def occupy(self, leaf: int, response: int = 0) -> None:
        """Start a task on an idle leaf, for `response` ns if the response is known."""
        self.idle.set_leaf(leaf, False)
        self._busy_until(leaf, self.now + response if response else NEVER)

    def release(self, leaf: int) -> tuple[Task, int] | None:
        """End the task of a leaf now; return the first task of its queue, which then starts there, and the leaf."""
        line = self.line.get(leaf)
        if not line:
            self.idle.set_leaf(leaf, True)
            self._busy_until(leaf, NEVER)
            return None
        task, response = line.popleft()
        self.ends.set_leaf(leaf, self.now + response)
        return task, leaf

    def stand_in_line(self, leaf: int, task: Task, response: int) -> None:
        """Queue a task at a busy leaf."""
        self.line.setdefault(leaf, deque()).append((task, response))
        self.until.set_leaf(leaf, self.until[leaf] + response)

    def draw(self, task: Task) -> float:
        """Return the random number in [0, 1) of a task, which is always the same."""
        if self._draws[0] != task.job or len(self._draws[1]) <= task.task:
            count = max(int(self.table.tasks[task.job]), task.task + 1)
            self._draws = task.job, uniform(self.seed, "dispatch", int(self.table.draw[task.job]), np.arange(count))
        return float(self._draws[1][task.task])

    def first(self, tier: Tier) -> int:
        """Return the first idle leaf of a tier by (x, y), then machine order; -1 if none is idle."""
        leaves = [leaf for low, high in tier if (leaf := self.idle.first(low, high)) >= 0]
        return min(leaves, key=self.layout.rank.__getitem__) if len(leaves) > 1 else leaves[0] if leaves else -1

    def random(self, tier: Tier, draw: float) -> int:
        """Return an idle leaf of a tier, chosen uniformly by `draw` in [0, 1); -1 if none is idle."""
        counts = [self.idle.count(low, high) for low, high in tier]
        number = int(draw * sum(counts))
        for (low, _), count in zip(tier, counts, strict=True):
            if number < count:
                return self.idle.at(self.idle.before(low) + number)
            number -= count
        return -1

    def soonest(self, tier: Tier) -> tuple[int, int]:
        """Return (ns, leaf) of the busy unit of a tier that is available first, ties as in `first`; (NEVER, -1) if none."""
        entries = [self.until.first(low, high) for low, high in tier]
        return min(
            (entry for entry in entries if entry[1] >= 0),
            key=lambda entry: (entry[0], int(self.layout.rank[entry[1]])),
            default=(NEVER, -1),
        )

    def placement(self, leaf: int, task: int) -> Placement:
        """Return the placement of a task on a unit."""
        return Placement.of([(task, int(self.layout.owner[leaf]), self.layout.column, 1)])

    def offers(self, job: int) -> tuple[UnitOffer, ...]:
        """Return the offers for a job's tasks, one per type and distance from the data, least response first.

        Units of one type are equivalent at the position of the data, within its rack, and beyond.
        """
        shape = (int(self.table.requested[job]), *(self.attribute(name, job, 0) for name in SHAPE))
        if shape not in self._offers:
            empty = self.snapshot.empty()
            offers = []
            for ranges in self._distances(job):
                placement = self.placement(ranges[0][0], 0)
                offers.append(UnitOffer(min(empty.expected_end(job, placement) - empty.now, LONGEST), ranges))
            self._offers[shape] = tuple(sorted(offers))
        return self._offers[shape]

    def response(self, job: int, leaf: int) -> int:
        """Return transfer + compute (ns) of a job's task on a leaf."""
        return next(offer.response for offer in self.offers(job) if any(low <= leaf < high for low, high in offer.ranges))

    def _distances(self, job: int) -> list[Tier]:
        """Return the ranges of each type: all its units or, with data, those at its position, in its rack, and beyond."""
        layout = self.layout
        tiers: list[Tier] = []
        x, y = self.attribute("data_x", job, 0), self.attribute("data_y", job, 0)
        for kind in self.able(job):
            whole = layout.of_type[kind]
            if not self.attribute("data_size", job, 0):
                tiers.append((whole,))
                continue
            rack = layout.of_rack.get((kind, x), (whole[0], whole[0]))
            place = layout.of_place.get((kind, x, y), (rack[0], rack[0]))
            tiers += [(place,), _without(rack, place), _without(whole, rack)]
        filled = [tuple(part for part in tier if part[0] < part[1]) for tier in tiers]
        return [tier for tier in filled if tier]


LONGEST = HORIZON // 2
"""Longest response (ns). Ends are clipped at the horizon, so a longer response would appear to shrink as time passes."""
SHAPE = ("task_type", "preferred_type", "data_size", "data_x", "data_y", "operations")
"""Columns on which the response of a task depends."""


def _without(whole: LeafRange, part: LeafRange) -> Tier:
    return (whole[0], part[0]), (part[1], whole[1])
