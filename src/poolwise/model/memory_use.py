"""Memory that jobs really use, step by step of their work, and what a scheduler may see of it: what is used now."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from poolwise.arrays import IntArray, frozen
from poolwise.errors import InputError


@dataclass(frozen=True, eq=False)
class MemoryUse:
    """What each node of a job uses over its run. A truth like the duration: schedulers see what is used now (`MemoryInUse`).

    Job k has the steps offset[k]:offset[k + 1]. A step holds from its place in the work until the next one; the first
    stands at 0. Steps stand in the work, not in time: a run that is slowed down comes to them later.

    Attributes
    ----------
    offset : (n_job + 1,) int64
    work : (n_step,) int64, ns of work done at which a step begins, ascending within a job
    memory : (n_step,) int64, MiB on each node
    """

    offset: IntArray
    work: IntArray
    memory: IntArray

    def __post_init__(self) -> None:
        for array in (self.offset, self.work, self.memory):
            frozen(array)
        first, steps = self.offset[:-1], len(self.work)
        if len(self.memory) != steps or int(self.offset[0]) != 0 or int(self.offset[-1]) != steps:
            raise ValueError("offset, work and memory do not go together")
        if (np.diff(self.offset) < 1).any() or self.work[first].any():
            raise ValueError("every job needs a step at 0")
        within = np.ones(steps, dtype=np.bool_)
        within[first] = False
        if (np.diff(self.work, prepend=0)[within] <= 0).any():
            raise ValueError("the steps of a job must ascend")
        if steps and int(self.memory.min()) < 0:
            raise InputError("memory in use is negative", field="memory", remedy="correct the row")

    def __len__(self) -> int:
        return len(self.offset) - 1

    def steps(self, job: int) -> tuple[IntArray, IntArray]:
        """(work, memory) of the steps of a job (row)."""
        rows = slice(int(self.offset[job]), int(self.offset[job + 1]))
        return self.work[rows], self.memory[rows]

    @cached_property
    def peak(self) -> IntArray:
        """(n_job,) MiB, the most that each job uses on a node."""
        return np.maximum.reduceat(self.memory, self.offset[:-1]) if len(self) else np.zeros(0, dtype=np.int64)


@dataclass(frozen=True)
class MemoryInUse:
    """What runs at work use now, as a platform measures it.

    Attributes
    ----------
    used : run -> MiB on each of its nodes
    stalled : run -> ns since which it stands still, because it needs more than it holds; in the order of these times
    """

    used: Mapping[int, int]
    stalled: Mapping[int, int]


@dataclass(frozen=True, slots=True)
class MemoryStep:
    """A run used other memory from a time (ns) on: MiB on each of its nodes."""

    run: int
    time: int
    memory: int


@dataclass(frozen=True, slots=True)
class Stall:
    """A run stood still for want of memory, from `begin` to `end` (ns)."""

    run: int
    begin: int
    end: int
