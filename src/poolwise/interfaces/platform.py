"""Platforms: a machine that runs jobs, simulated or real."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from poolwise.model import CommitResult, Decisions, EventBatch, JobTable, Snapshot


class Platform(Protocol):
    """Interface of a platform: a machine that runs jobs, the simulator or a real cluster.

    Attributes
    ----------
    table : the jobs that have arrived; another table replaces it before rows of jobs that are gone get later jobs

    Examples
    --------
    The scheduling loop drives every platform in the same way:

    >>> def drive(platform, queue, dispatcher, changes_of):
    ...     for batch in platform.events():
    ...         decisions = dispatcher.schedule(queue, platform.snapshot(), changes_of(batch))
    ...         platform.commit(decisions)
    """

    table: JobTable

    def events(self) -> Iterator[EventBatch]:
        """Yield the events, instant by instant; the next batch is requested after the decisions on this one are committed.

        A repeated event has no effect. When another process takes over, the platform first yields the arrival of all waiting
        jobs; running jobs are in the snapshot.
        """
        ...

    def snapshot(self) -> Snapshot:
        """Return the state now; resources of committed starts are held, even before they are bound."""
        ...

    def commit(self, decisions: Decisions) -> CommitResult:
        """Commit decisions one by one; a start that does not fit is refused completely.

        A committed start has its run number at once. Binding it may take time: `Started` then follows, or an end with the
        outcome REFUSED that undoes all of it, and none of its tasks starts again while another is still bound.
        """
        ...
