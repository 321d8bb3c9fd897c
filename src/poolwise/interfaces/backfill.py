"""Backfilling: the waiting jobs that start now, given their priorities."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar, Protocol

from poolwise.interfaces.order import QueuePolicy
from poolwise.interfaces.scheduling_pass import SchedulingPass
from poolwise.model import JobTable, Machine, Start
from poolwise.model.rules import BackfillRule


class BackfillPolicy(Protocol):
    """Interface of a backfill: which waiting jobs start now, given their priorities.

    Attributes
    ----------
    every_cycle : whether `select` must be called even in passes in which no waiting job fits in the free resources
    chooses_preemptors : whether `select` determines which jobs may stop runs

    Examples
    --------
    >>> import poolwise
    >>> from poolwise.interfaces import BackfillPolicy, Refusal, Start
    >>> class FirstOnly(BackfillPolicy):
    ...     def select(self, cycle):
    ...         first = int(cycle.ranked()[0])
    ...         found = cycle.place(first, cycle.snapshot)
    ...         return [] if isinstance(found, Refusal) else [Start(first, cycle.queue.tasks(first), found)]
    >>> workload = poolwise.Workload.of(["0 s", "0 s"], "1 min")
    >>> poolwise.simulate(workload, poolwise.Machine.flat(1), backfill=FirstOnly(), engine="reference").jobs
    2
    """

    every_cycle: ClassVar[bool] = False
    """Whether `select` must be called even in passes in which no waiting job fits the free resources."""
    chooses_preemptors: ClassVar[bool] = False
    """True if `select` determines which jobs may stop runs, by calling `SchedulingPass.place` for them.

    Otherwise, the jobs up to the heads, in priority order, may stop runs before `select` is called.
    """

    @property
    def keeps_state(self) -> str:
        """State that the policy keeps from pass to pass in addition to the queue and the snapshot; empty for none."""
        return ""

    @property
    def backfill_order(self) -> QueuePolicy | None:
        """Order in which the backfill tries the jobs behind the first that does not fit; None for the order of the queue.

        `Easy` and its subclasses follow it. A backfill that defines its own `select` states the order for engines.
        """
        return None

    def check(self, machine: Machine, jobs: JobTable) -> None:
        """Raise InputError for problems that are known before a run, such as a machine on which it cannot run."""
        return

    def open(self) -> BackfillPolicy:
        """Begin a run. A policy that keeps state between passes returns an object that holds it; others return themselves."""
        return self

    def next_wakeup(self, now: int) -> int | None:
        """Return the time (ns) of the next pass if nothing else happens while a fitting job waits.

        Returns None to wait for the next event.
        """
        return None

    def select(self, cycle: SchedulingPass) -> Iterable[Start]:
        """Choose starts from the waiting jobs.

        For jobs whose wait is to be explained, `cycle.record` and `cycle.place` record the reasons. If no reason is recorded,
        the scheduler states what the job lacks after all starts.

        Parameters
        ----------
        cycle
            The queue, the priorities, the state now, and the placement policy.

        Returns
        -------
        Starts that fit together, at most one per job.
        """
        ...

    def rule(self) -> BackfillRule | None:
        """Return the rule with which compiled engines choose the same starts as `select`; None if no rule describes it."""
        return None
