"""Platforms: a machine that runs jobs, simulated or there."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from poolwise.model import CommitResult, EventBatch, JobTable, Plan, Snapshot


class Platform(Protocol):
    """A machine that runs jobs: simulated, or a cluster that is there.

    Attributes
    ----------
    table : the jobs that have arrived; a table of another edition takes its place when rows are numbered anew
    """

    table: JobTable

    def events(self) -> Iterator[EventBatch]:
        """Yield what happened, instant by instant; the next batch is asked for when the plan for this one is committed.

        An event that is repeated changes nothing. A platform that is taken over from another process first tells
        the arrival of all that waits; what is at work stands in the snapshot.
        """
        ...

    def snapshot(self) -> Snapshot:
        """Show the state now; what was committed is held, whether or not it has become real."""
        ...

    def commit(self, plan: Plan) -> CommitResult:
        """Carry out a plan, decision by decision; a start that does not fit is refused whole.

        A committed start has its run number at once. It may take time to become real: then follows `Started`, or an end
        with the outcome REFUSED that undoes all of it, and no task of it starts again while another is still bound.
        """
        ...
