"""Admission: which of the waiting jobs may be considered at all."""

from __future__ import annotations

from typing import Protocol

from poolwise.arrays import BoolArray
from poolwise.model import JobTable, Machine, Queue, Refusal, Snapshot


class AdmissionPolicy(Protocol):
    """Which waiting jobs may be considered at all, whatever is free: limits of the machine, or rules of your own.

    What is not admitted now is passed over and holds up nobody. As more runs start, no job that was not admitted becomes so.
    """

    def check(self, machine: Machine, jobs: JobTable) -> None:
        """Raise InputError for what a study can know of its jobs beforehand."""
        return

    def never(self, job: int, snapshot: Snapshot) -> Refusal | None:
        """Say why a job (row) may never run, whatever else does; None if it may. The answer never changes."""
        return None

    def admits(self, queue: Queue, snapshot: Snapshot) -> BoolArray | None:
        """(n_queued,) which of the waiting jobs may be considered beside the runs of the snapshot; None for all."""
        ...

    def why(self, job: int, queue: Queue, snapshot: Snapshot) -> Refusal:
        """Say what held back a job that was not admitted."""
        return Refusal(f"{type(self).__name__} does not admit it")
