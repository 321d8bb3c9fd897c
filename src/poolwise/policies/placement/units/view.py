"""The units of a machine at one moment: which are idle, when the others will be, and what a task could have."""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

import numpy as np

from poolwise.arrays import FloatArray
from poolwise.model import Placement, Run, Snapshot
from poolwise.policies.placement.units.choices import Choices
from poolwise.policies.placement.units.layout import LeafRange, Tier, UnitLayout
from poolwise.policies.placement.units.segment_trees import Least, Marks
from poolwise.random import uniform
from poolwise.units import HORIZON, NEVER


class Task(NamedTuple):
    """One task: row of its job, its number there."""

    job: int
    task: int


class UnitOffer(NamedTuple):
    """Units that serve a task alike: of one type and at one distance from its data.

    `response` is transfer + compute there, ns, uncontended, as the scheduler believes.
    """

    response: int
    ranges: Tier


class Units(Choices):
    """A view that is built from a snapshot, and brought up to date by `take` and `give_back`.

    Attributes
    ----------
    idle : leaves without a task
    ends : ns at which each busy leaf is expected to end its task, `NEVER` for idle ones
    until : ns at which each leaf is expected to have finished the tasks in line as well
    line : leaf -> (task, response) of those that stand in line there
    ask_at : ns at which a policy wants to be asked again, `NEVER` if it does not
    """

    def __init__(self, snapshot: Snapshot, seed: int = 0) -> None:
        super().__init__(UnitLayout.of(snapshot.machine), snapshot.table)
        self.seed = seed
        n = len(self.layout.owner)
        self.idle, self.ends, self.until = Marks(n), Least(n), Least(n)
        self.line: dict[int, deque[tuple[Task, int]]] = {}
        self.ask_at = NEVER
        self._offers: dict[tuple[int, ...], tuple[UnitOffer, ...]] = {}
        self._draws: tuple[int, FloatArray] = (-1, np.zeros(0))
        self.snapshot = snapshot
        for leaf in range(n):
            self._look(leaf)

    @property
    def now(self) -> int:
        """Ns."""
        return self.snapshot.now

    def run_on(self, leaf: int) -> Run | None:
        """Find the run that a leaf is busy with; others may depend on it without being there."""
        owner = int(self.layout.owner[leaf])
        for number in self.snapshot.occupants(owner):
            run = self.snapshot.run(number)
            if run.placement.amount[run.placement.owner == owner].any():
                return run
        return None

    def _look(self, leaf: int) -> None:
        """Read a leaf from the snapshot: it has one task at a time, however many slots it has.

        One that has lost its slots takes no other task when the one that it has ends: it is neither idle nor busy.
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
        """Let a task have an idle leaf, for `response` ns where that is known."""
        self.idle.set_leaf(leaf, False)
        self._busy_until(leaf, self.now + response if response else NEVER)

    def release(self, leaf: int) -> tuple[Task, int] | None:
        """Let a task end now; returns the first in line there, which has the leaf from now on."""
        line = self.line.get(leaf)
        if not line:
            self.idle.set_leaf(leaf, True)
            self._busy_until(leaf, NEVER)
            return None
        task, response = line.popleft()
        self.ends.set_leaf(leaf, self.now + response)
        return task, leaf

    def stand_in_line(self, leaf: int, task: Task, response: int) -> None:
        """Let a task wait for a leaf that is busy."""
        self.line.setdefault(leaf, deque()).append((task, response))
        self.until.set_leaf(leaf, self.until[leaf] + response)

    def draw(self, task: Task) -> float:
        """Random number in [0, 1) of a task: the same whenever it is asked for."""
        if self._draws[0] != task.job or len(self._draws[1]) <= task.task:
            count = max(int(self.table.tasks[task.job]), task.task + 1)
            self._draws = task.job, uniform(self.seed, "dispatch", int(self.table.draw[task.job]), np.arange(count))
        return float(self._draws[1][task.task])

    def first(self, tier: Tier) -> int:
        """Idle leaf of a tier that stands first by (x, y), then in the machine; -1 if none is idle."""
        found = [leaf for low, high in tier if (leaf := self.idle.first(low, high)) >= 0]
        return min(found, key=self.layout.rank.__getitem__) if len(found) > 1 else found[0] if found else -1

    def random(self, tier: Tier, draw: float) -> int:
        """Idle leaf of a tier, each as likely as the others; -1 if none is idle."""
        counts = [self.idle.count(low, high) for low, high in tier]
        number = int(draw * sum(counts))
        for (low, _), count in zip(tier, counts, strict=True):
            if number < count:
                return self.idle.at(self.idle.before(low) + number)
            number -= count
        return -1

    def soonest(self, tier: Tier) -> tuple[int, int]:
        """(ns, leaf) of the busy unit of a tier that is free first, ties as in `first`; (NEVER, -1) without one."""
        found = [self.until.first(low, high) for low, high in tier]
        return min(
            (entry for entry in found if entry[1] >= 0),
            key=lambda entry: (entry[0], int(self.layout.rank[entry[1]])),
            default=(NEVER, -1),
        )

    def placement(self, leaf: int, task: int) -> Placement:
        """Placement of a task on a unit."""
        return Placement.of([(task, int(self.layout.owner[leaf]), self.layout.column, 1)])

    def offers(self, job: int) -> tuple[UnitOffer, ...]:
        """What the machine can offer to a job's tasks: its types at their distances from the data, least response first.

        Units of one type stand for each other within the data's place, within its rack, and beyond.
        """
        shape = (int(self.table.requested[job]), *(self.attribute(name, job, 0) for name in SHAPE))
        if shape not in self._offers:
            empty = self.snapshot.empty()
            found = []
            for ranges in self._distances(job):
                placement = self.placement(ranges[0][0], 0)
                found.append(UnitOffer(min(empty.expected_end(job, placement) - empty.now, LONGEST), ranges))
            self._offers[shape] = tuple(sorted(found))
        return self._offers[shape]

    def response(self, job: int, leaf: int) -> int:
        """Ns of transfer + compute of a job's task on a leaf."""
        return next(offer.response for offer in self.offers(job) if any(low <= leaf < high for low, high in offer.ranges))

    def _distances(self, job: int) -> list[Tier]:
        """Ranges of each type: all of it where no data travel, else place, rest of the rack, other racks."""
        layout = self.layout
        found: list[Tier] = []
        x, y = self.attribute("data_x", job, 0), self.attribute("data_y", job, 0)
        for kind in self.able(job):
            whole = layout.of_type[kind]
            if not self.attribute("data_size", job, 0):
                found.append((whole,))
                continue
            rack = layout.of_rack.get((kind, x), (whole[0], whole[0]))
            place = layout.of_place.get((kind, x, y), (rack[0], rack[0]))
            found += [(place,), _without(rack, place), _without(whole, rack)]
        filled = [tuple(part for part in tier if part[0] < part[1]) for tier in found]
        return [tier for tier in filled if tier]


LONGEST = HORIZON // 2
"""The longest response (ns): ends are cut off at the horizon, and what is left until then shrinks as time goes by."""
SHAPE = ("task_type", "preferred_type", "data_size", "data_x", "data_y", "operations")
"""Columns on which the response of a task depends."""


def _without(whole: LeafRange, part: LeafRange) -> Tier:
    return (whole[0], part[0]), (part[1], whole[1])
