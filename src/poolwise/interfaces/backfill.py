"""Backfilling: the waiting jobs that start now, given their priorities."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import ClassVar, Protocol

from poolwise.arrays import FloatArray
from poolwise.interfaces.order import QueuePolicy
from poolwise.interfaces.placement import PlacementPolicy
from poolwise.interfaces.user_class import defined_with
from poolwise.model import Queue, Reason, Refusal, Rule, Snapshot, Start
from poolwise.model.rules import BackfillRule


class BackfillPolicy(Protocol):
    """Interface of a backfill: which waiting jobs start now, given their priorities.

    Attributes
    ----------
    sees_every_pass : whether `select` must be called even in passes in which no waiting job fits the free resources

    Examples
    --------
    >>> import numpy as np, poolwise
    >>> from poolwise.interfaces import BackfillPolicy, Refusal, Start
    >>> class FirstOnly(BackfillPolicy):
    ...     def select(self, queue, priority, snapshot, placement):
    ...         first = queue.job(int(queue.jobs[np.argmax(priority)]))
    ...         found = placement.place(first, snapshot)
    ...         return [] if isinstance(found, Refusal) else [Start(first.index, first.numbers, found)]
    >>> workload = poolwise.Workload.of(["0 s", "0 s"], "1 min")
    >>> poolwise.simulate(workload, poolwise.Machine.flat(1), backfill=FirstOnly(), engine="reference").jobs
    2
    """

    sees_every_pass: ClassVar[bool] = False
    """Whether `select` must be called even in passes in which no waiting job fits the free resources."""

    @property
    def remembers(self) -> str:
        """State that it keeps from pass to pass and that queue and snapshot do not contain; empty for none."""
        return ""

    @property
    def own_order(self) -> QueuePolicy | None:
        """Order in which it tries the jobs behind the first that does not fit; None for the order of the queue."""
        return None

    def open(self) -> BackfillPolicy:
        """Begin a run. A policy that keeps state from pass to pass returns an object for it; others return themselves."""
        return self

    def wake_at(self, now: int) -> int | None:
        """Return ns of the next pass if nothing else happens while a fitting job waits; None for the next event."""
        return None

    def select(self, queue: Queue, priority: FloatArray, snapshot: Snapshot, placement: PlacementPolicy) -> Iterable[Start]:
        """Choose starts from the waiting jobs.

        Parameters
        ----------
        queue
            The waiting jobs; it must not be changed.
        priority
            (n_queued,) priorities, higher first; ties go to the job that is earlier in the queue.
        snapshot
            The state now; `with_started` and `at` return imagined states.
        placement
            Placement policy of the scheduler.

        Returns
        -------
        Starts that fit together, at most one per job.
        """
        ...

    def why(
        self,
        job: int,
        queue: Queue,
        priority: FloatArray,
        snapshot: Snapshot,
        placement: PlacementPolicy,
        starts: Sequence[Start],
    ) -> Reason:
        """Return what held back a waiting job, given the `starts` that `select` chose; see `Dispatcher.why`.

        It need not count the jobs of higher priority. The default names what the job lacks after all starts. Callers use
        `backfill_reason`, since a `why` describes only the `select` of its own class.

        Raises PolicyError if by the policy's own rule the job should have started.
        """
        found = placement.place(queue.job(job), snapshot.with_starts(starts))
        if isinstance(found, Refusal):
            return Reason.of(Rule.SHORT, found.reason, found)
        return Reason(Rule.UNSAID, f"it fits, and {type(self).__name__} gives no reason")

    def rule(self) -> BackfillRule | None:
        """Return the rule by which compiled engines choose the same starts as `select`; None if no rule describes it."""
        return None


def backfill_reason(
    backfill: BackfillPolicy,
    job: int,
    queue: Queue,
    priority: FloatArray,
    snapshot: Snapshot,
    placement: PlacementPolicy,
    starts: Sequence[Start],
) -> Reason:
    """Return why a job waits (`BackfillPolicy.why`); without a reason if a subclass overrides `select` but not `why`."""
    ask = type(backfill).why if defined_with(type(backfill), "select") else BackfillPolicy.why
    return ask(backfill, job, queue, priority, snapshot, placement, starts)
