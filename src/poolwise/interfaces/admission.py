"""Admission: the waiting jobs that a list scheduler may consider."""

from __future__ import annotations

from typing import Protocol

from poolwise.arrays import BoolArray
from poolwise.interfaces.scheduling_pass import SchedulingPass
from poolwise.model import JobTable, Machine, Refusal, Snapshot


class AdmissionPolicy(Protocol):
    """Interface of an admission policy: which waiting jobs may be considered, regardless of free resources.

    It enforces limits of the machine, or rules of a site. A job that is not admitted is skipped and blocks no other job. A
    policy must not admit such a job merely because more runs have started.

    Examples
    --------
    >>> import poolwise
    >>> from poolwise.interfaces import AdmissionPolicy
    >>> class AtMostEight(AdmissionPolicy):
    ...     def admits(self, cycle):
    ...         return cycle.queue.table.nodes[cycle.queue.jobs] <= 8
    >>> workload = poolwise.Workload.of(["0 s", "0 s"], "1 min", requests={"nodes": [9, 2]})
    >>> scheduler = poolwise.ListScheduler(admission=AtMostEight())
    >>> poolwise.simulate(workload, poolwise.Machine.flat(16), scheduler=scheduler, engine="reference").jobs
    1
    """

    def check(self, machine: Machine, jobs: JobTable) -> None:
        """Raise InputError for problems that are known before a run, such as unknown names in the jobs.

        Parameters
        ----------
        machine
            The machine.
        jobs
            Every job of the study.
        """
        return

    def never(self, job: int, snapshot: Snapshot) -> Refusal | None:
        """Return why a job may never run, even if no other job runs; None if it may. The answer must not change during a run.

        Parameters
        ----------
        job
            Row of the job table.
        snapshot
            The state now.
        """
        return None

    def admits(self, cycle: SchedulingPass) -> BoolArray | None:
        """Return which waiting jobs may be considered now.

        For jobs whose wait is to be explained, the policy may record the limit that bars them with `cycle.record`.

        Parameters
        ----------
        cycle
            The waiting jobs, and the state now with the running runs.

        Returns
        -------
        (n_queued,) bool, or None for all.
        """
        ...
