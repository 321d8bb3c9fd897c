"""Backfilling: which of the waiting jobs start now, given their priorities."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import ClassVar, Protocol

from poolwise.arrays import FloatArray
from poolwise.interfaces.order import QueuePolicy
from poolwise.interfaces.placement import PlacementPolicy
from poolwise.interfaces.user_class import speaks_for
from poolwise.model import Queue, Reason, Refusal, Rule, Snapshot, Start
from poolwise.model.rules import BackfillRule


class BackfillPolicy(Protocol):
    """Which waiting jobs start now, given their priorities."""

    sees_every_pass: ClassVar[bool] = False
    """Whether it must be asked even in passes in which nothing that waits fits what is free."""

    @property
    def remembers(self) -> str:
        """What it keeps from pass to pass that no queue and snapshot show; empty for nothing."""
        return ""

    @property
    def own_order(self) -> QueuePolicy | None:
        """The order in which it tries jobs beside the first that does not fit; None for the queue's."""
        return None

    def open(self) -> BackfillPolicy:
        """Begin a run. A policy that remembers anything from pass to pass returns what remembers it; others themselves."""
        return self

    def wake_at(self, now: int) -> int | None:
        """When (ns) to be asked again if nothing else happens, while a job waits that fits; None: at the next event."""
        return None

    def select(self, queue: Queue, priority: FloatArray, snapshot: Snapshot, placement: PlacementPolicy) -> Iterable[Start]:
        """Choose starts from the waiting tasks of (n_queued,) jobs, given their (n_queued,) priorities."""
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
        """Say what held back a job that waits, given the `starts` that `select` chose from the rest; see `Dispatcher.why`.

        It need not say how many jobs went before it. The default says what the job lacks beside all starts. Ask by
        `backfill_reason`: a `why` speaks for the `select` that it stands beside.

        Raises PolicyError if by the policy's own rule the job should have started.
        """
        found = placement.place(queue.job(job), snapshot.with_starts(starts))
        if isinstance(found, Refusal):
            return Reason.of(Rule.SHORT, found.reason, found)
        return Reason(Rule.UNSAID, f"it fits, and {type(self).__name__} gives no reason")

    def rule(self) -> BackfillRule | None:
        """Describe what `select` does, so that fast engines can do it (`rule_of`); None if no such rule describes it."""
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
    """Ask a backfill why a job waits (`BackfillPolicy.why`); one whose `select` is not that of its `why` gives no reason."""
    ask = type(backfill).why if speaks_for(type(backfill), "select") else BackfillPolicy.why
    return ask(backfill, job, queue, priority, snapshot, placement, starts)
