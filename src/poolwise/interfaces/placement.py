"""Placement: where a job runs."""

from __future__ import annotations

from typing import ClassVar, Protocol

import numpy as np

from poolwise.arrays import BoolArray, IntArray
from poolwise.model import Job, JobTable, Machine, Placement, Refusal, Snapshot
from poolwise.model.rules import RackRule


class PlacementPolicy(Protocol):
    """Where a job runs."""

    knows_eligibility: ClassVar[bool] = False
    """Whether it takes nothing but nodes on which a job may run (`model.eligibility`)."""

    def check(self, machine: Machine, jobs: JobTable) -> None:
        """Raise InputError for settings, and for what a study can know beforehand, such as requests that nothing can meet."""
        return

    def place(self, job: Job, snapshot: Snapshot) -> Placement | Refusal:
        """Find a placement for all tasks of a job in what is free, or say which resource is short.

        No job makes it raise: one that asks for what the machine does not have is refused.
        """
        ...

    def screen(self, jobs: IntArray, free: IntArray, snapshot: Snapshot) -> BoolArray:
        """Filter out what `place` would surely refuse; exactness is not needed, a false False is an error.

        Parameters
        ----------
        jobs
            (k,) rows of the job table, or (1,) to try one job in many states.
        free
            (1 or k, n_owner, n_resource) amounts free; broadcasts against `jobs`.

        Returns
        -------
        (k,) bool. The default accepts everything.
        """
        return np.ones(np.broadcast_shapes((len(jobs),), (len(free),)), dtype=np.bool_)

    def rule(self) -> RackRule | None:
        """Describe what `place` does, so that fast engines can do it (`rule_of`); None if no such rule describes it."""
        return None
