"""Placement: where a job runs."""

from __future__ import annotations

from typing import ClassVar, Protocol

import numpy as np

from poolwise.arrays import BoolArray, IntArray
from poolwise.interfaces.user_class import speaks_for
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

        What is let through stays so with more free: backfills look for the first such state by bisection.

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

    def alike(self, machine: Machine, table: JobTable) -> IntArray | None:
        """(n_job,) numbers, the same only for jobs that `place` answers alike in every state; None, the default, if not known.

        A job keeps its number when others arrive. Ask by `alike_of`: it speaks for the `place` that it stands beside.
        """
        return None

    def rule(self) -> RackRule | None:
        """Describe what `place` does, so that fast engines can do it (`rule_of`); None if no such rule describes it."""
        return None


def says_alike(policy: PlacementPolicy) -> bool:
    """Whether a placement says which jobs it answers alike, and places as the class does which its `alike` is from."""
    return type(policy).alike is not PlacementPolicy.alike and speaks_for(type(policy), "place", "alike")


def alike_of(policy: PlacementPolicy, machine: Machine, table: JobTable) -> IntArray | None:
    """(n_job,) numbers, the same only for jobs that a placement answers alike; None where it does not say (`says_alike`)."""
    return policy.alike(machine, table) if says_alike(policy) else None
