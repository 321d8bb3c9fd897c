"""Platforms: a machine that runs jobs, simulated or real."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from poolwise.model import CommitResult, Decisions, EventBatch, JobTable, Snapshot


class Platform(Protocol):
    """Interface of a platform: a machine that runs jobs, the simulator or a real cluster.

    Attributes
    ----------
    table : the jobs that have arrived; another table replaces it before later jobs reuse the rows of jobs that are gone

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
        """Yield the events, instant by instant; the caller requests a batch after committing the decisions on the previous one.

        A repeated event has no effect. When another process takes over, the platform first yields the arrival of all waiting
        jobs; running jobs are in the snapshot.
        """
        ...

    def snapshot(self) -> Snapshot:
        """Return the state now; resources of committed starts are held, even before they are bound."""
        ...

    def commit(self, decisions: Decisions) -> CommitResult:
        """Commit decisions one by one; a start that does not fit is refused completely.

        A committed start gets its run number at once. Binding it may take time: then either `Started` follows, or an end with
        the outcome REFUSED, which undoes the whole start. No task of a refused start starts again while another is still bound.
        """
        ...
