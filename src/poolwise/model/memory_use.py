"""Memory that jobs use in each step of their work, and the part that a scheduler sees: the current use."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from poolwise.arrays import IntArray, frozen
from poolwise.errors import InputError
from poolwise.short_repr import short_repr


@dataclass(frozen=True, eq=False)
class MemoryUse:
    """Memory that each node of a job uses over its run. Like the duration it is hidden from schedulers (see `MemoryInUse`).

    Job k has the steps offset[k]:offset[k + 1]. A step applies from its position in the work until the next step; the first is
    at 0. Positions count work, not time: a run that is slowed down reaches them later.

    Attributes
    ----------
    offset : (n_job + 1,) int64
    work : (n_step,) int64, ns of work done when a step begins, ascending within a job
    memory : (n_step,) int64, MiB on each node
    """

    __repr__ = short_repr

    offset: IntArray
    work: IntArray
    memory: IntArray

    def __post_init__(self) -> None:
        for array in (self.offset, self.work, self.memory):
            frozen(array)
        first, steps = self.offset[:-1], len(self.work)
        if len(self.memory) != steps or int(self.offset[0]) != 0 or int(self.offset[-1]) != steps:
            raise ValueError("the lengths of offset, work and memory do not match")
        if (np.diff(self.offset) < 1).any() or self.work[first].any():
            raise ValueError("every job needs a step at 0")
        within = np.ones(steps, dtype=np.bool_)
        within[first] = False
        if (np.diff(self.work, prepend=0)[within] <= 0).any():
            raise ValueError("the steps of a job must be in ascending order")
        if steps and int(self.memory.min()) < 0:
            raise InputError("memory in use is negative", field="memory", remedy="correct the row")

    def __len__(self) -> int:
        return len(self.offset) - 1

    def steps(self, job: int) -> tuple[IntArray, IntArray]:
        """Return the positions in the work, and the memory, of the steps of a job (row)."""
        rows = slice(int(self.offset[job]), int(self.offset[job + 1]))
        return self.work[rows], self.memory[rows]

    @cached_property
    def peak(self) -> IntArray:
        """(n_job,) largest memory use of each job on a node, MiB."""
        return np.maximum.reduceat(self.memory, self.offset[:-1]) if len(self) else np.zeros(0, dtype=np.int64)


@dataclass(frozen=True)
class MemoryInUse:
    """Memory that runs use now, as a platform measures it.

    Attributes
    ----------
    used : run -> MiB on each of its nodes
    stalled : run -> time (ns) since which it has made no progress because it needs more than it holds; in the order of these
    times
    """

    __repr__ = short_repr

    used: Mapping[int, int]
    stalled: Mapping[int, int]


@dataclass(frozen=True, slots=True)
class MemoryStep:
    """The memory that a run uses on each of its nodes (MiB) from a time (ns) on."""

    run: int
    time: int
    memory: int


@dataclass(frozen=True, slots=True)
class Stall:
    """A run made no progress for lack of memory, from `begin` to `end` (ns)."""

    run: int
    begin: int
    end: int
