"""Preemption: the runs that a waiting job may stop to start now."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from poolwise.arrays import FloatArray
from poolwise.interfaces.scheduling_pass import SchedulingPass
from poolwise.model import JobTable, Machine, Queue, Snapshot, Stop


class PreemptionPolicy(Protocol):
    """Interface of a preemption policy: which runs a list scheduler may stop for a waiting job, and in which order.

    The scheduler calls it for a job that does not fit on the free resources. It then imagines that these runs stop, one after
    the other, until the job fits, and stops only those that the job needs. It never stops a run that started at the same
    instant, so that two jobs cannot stop each other forever.

    Examples
    --------
    Jobs of the user "ada" may stop all other runs, the shortest wait first:

    >>> import poolwise
    >>> from poolwise.interfaces import PreemptionPolicy, Stop
    >>> class Urgent(PreemptionPolicy):
    ...     def stops(self, job, cycle):
    ...         users = cycle.queue.table.attributes["user"]
    ...         others = [run for run in cycle.snapshot.runs() if users[job] == "ada" != users[run.job]]
    ...         return [Stop(run.id, True, "urgent") for run in others]
    >>> workload = poolwise.Workload.of(["0 s", "10 s"], "1 min", attributes={"user": ["bob", "ada"]})
    >>> scheduler = poolwise.ListScheduler(preemption=Urgent())
    >>> run = poolwise.simulate(workload, poolwise.Machine.flat(1), scheduler=scheduler)
    >>> run.schedule.start // 10**9
    array([ 0, 10, 70])
    """

    @property
    def reorder_count(self) -> int:
        """Number of times that the scheduler reorders the runs to stop fewer, as in Slurm."""
        return 1

    @property
    def strict_order(self) -> bool:
        """True if each reordering only moves the last run that the job needs to the front, as in Slurm."""
        return False

    @property
    def requeue_delay(self) -> int:
        """Time (ns) for which a requeued job cannot start; Slurm waits two minutes for its credentials to expire.

        It applies to waiting jobs one of whose runs has ended, on platforms that keep a history (`Snapshot.history`).
        """
        return 0

    def check(self, machine: Machine, jobs: JobTable) -> None:
        """Raise InputError for problems that are known before a run, such as unknown names.

        Parameters
        ----------
        machine
            The machine.
        jobs
            Every job of the study.
        """
        return

    def reprioritize(self, priority: FloatArray, queue: Queue, snapshot: Snapshot) -> FloatArray:
        """Return the priorities of the waiting jobs, (n_queued,), given those of the queue order; by default unchanged."""
        return priority

    def stops(self, job: int, cycle: SchedulingPass) -> Iterable[Stop]:
        """Return the runs that may be stopped for a waiting job, the first to be stopped first.

        Parameters
        ----------
        job
            Row of the job table.
        cycle
            The waiting jobs, and the state now with the running runs.

        Returns
        -------
        A `Stop` for each run. With `requeue` the job of the run waits again and runs from its beginning; otherwise it is
        canceled, and results count it under the reason of the `Stop`.
        """
        ...

    def next_wakeup(self, cycle: SchedulingPass) -> int | None:
        """Return the time (ns) at which waiting jobs may stop more runs than now, if nothing else happens; None for never.

        Parameters
        ----------
        cycle
            The waiting jobs, and the state now with the running runs.
        """
        return None
