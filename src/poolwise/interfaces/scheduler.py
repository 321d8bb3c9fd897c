"""Schedulers and their dispatchers, which decide from the queue and a snapshot."""

from __future__ import annotations

from typing import NamedTuple, Protocol

from poolwise.interfaces.backfill import BackfillPolicy
from poolwise.interfaces.order import QueuePolicy
from poolwise.interfaces.placement import PlacementPolicy
from poolwise.model import Changes, Decisions, JobTable, Machine, Queue, Snapshot
from poolwise.short_repr import short_repr


class Scheduler(Protocol):
    """Interface of a scheduler: an algorithm and its settings, without the state of a run.

    Examples
    --------
    >>> import poolwise
    >>> from poolwise.interfaces import Decisions, Dispatcher, Scheduler, Start
    >>> class OneAtATime(Scheduler, Dispatcher):
    ...     def open(self, machine, seed):
    ...         return self
    ...
    ...     def schedule(self, queue, snapshot, changes):
    ...         if snapshot.n_run or not len(queue):
    ...             return Decisions()
    ...         job = queue.job(int(queue.jobs[0]))
    ...         nodes = snapshot.machine.placement({"rack0.nodes": {"nodes": job.nodes}})
    ...         return Decisions((Start(job.index, job.numbers, nodes),))
    >>> workload = poolwise.Workload.of(["0 s", "0 s"], "1 min")
    >>> run = poolwise.simulate(workload, poolwise.Machine.flat(4), scheduler=OneAtATime(), engine="reference")
    >>> run.metrics["makespan_s"]
    120.0
    """

    @property
    def supports_partitions(self) -> bool:
        """True if it respects the machine's partitions, features, limits, windows (`Machine.restricted`) and licenses."""
        return False

    @property
    def resizes(self) -> bool:
        """True if the scheduler may resize running jobs."""
        return False

    @property
    def preempts(self) -> bool:
        """True if the scheduler may stop running jobs to start others."""
        return False

    @property
    def keeps_state(self) -> str:
        """State that a dispatcher keeps and that queue and snapshot do not contain, such as reservations that it must keep.

        Empty means none: the dispatcher may then be replaced by a new one in any pass without changing a decision.
        """
        return ""

    def open(self, machine: Machine, seed: int) -> Dispatcher:
        """Begin a run on a machine.

        No job has arrived yet. When owners join or leave, a new dispatcher is opened on the changed machine.

        Parameters
        ----------
        machine
            The machine.
        seed
            Random seed of the run.

        Raises
        ------
        InputError
            The algorithm does not work on this machine.
        """
        ...

    def check(self, machine: Machine, jobs: JobTable) -> None:
        """Raise InputError for problems known before a run, such as jobs that request resources which the machine lacks."""
        return

    def rule(self) -> ListRule | None:
        """Return the scheduler's rule as list scheduling, for compiled engines (`rule_of`); None for other algorithms."""
        return None


class ListRule(NamedTuple):
    """Description of a scheduler as list scheduling, complete enough for compiled engines.

    Attributes
    ----------
    order, backfill, placement : policies of the scheduler
    warm_up : number of first jobs that run first come, first served without backfilling, until the last of them has started

    Examples
    --------
    >>> from poolwise.interfaces import ListRule
    >>> from poolwise.policies import FCFS, Easy, RackPlacement
    >>> ListRule(FCFS(), Easy(), RackPlacement()).warm_up
    0
    """

    order: QueuePolicy
    backfill: BackfillPolicy
    placement: PlacementPolicy
    warm_up: int = 0

    def __repr__(self) -> str:
        return short_repr(self)


class Dispatcher(Protocol):
    """Interface of a dispatcher: one run of a scheduler.

    It may keep only caches that can be rebuilt from the queue and a snapshot (`Scheduler.keeps_state` declares exceptions). A
    dispatcher that has run for a week and a new one must make the same decisions, whatever `changes` they get.

    Examples
    --------
    See `Scheduler`; one class may be both:

    >>> from poolwise.interfaces import Changes, Dispatcher, Decisions
    >>> class Idle(Dispatcher):
    ...     def schedule(self, queue, snapshot, changes):
    ...         return Decisions()
    >>> Idle().schedule(None, None, Changes()).starts
    ()
    """

    def schedule(self, queue: Queue, snapshot: Snapshot, changes: Changes) -> Decisions:
        """Decide what to do now. The queue and the snapshot must not be changed.

        A job that can never run is rejected. A pass that only rejects jobs is followed by another pass, unless the arrival of
        these jobs is all that happened. While the machine may still grow (`Snapshot.may_grow`), such a job waits instead, and
        blocks no other.

        Parameters
        ----------
        queue
            The waiting jobs.
        snapshot
            The state now.
        changes
            Changes since the last pass, as a hint for caches, and the jobs whose wait the pass must explain. The decisions must
            not depend on them.

        Returns
        -------
        The decisions, in the order in which they are committed.
        """
        ...
