"""Shadow mode: decides, but changes nothing; read access to Slurm is sufficient."""

from __future__ import annotations

from poolwise.live.platform import without_starts
from poolwise.live.slurm.platform import HetComponents, SlurmPlatform
from poolwise.model import CommitResult, Decisions


class ShadowPlatform(SlurmPlatform):
    """Slurm schedules; starts that the scheduler would have made at the same instants are rejected and recorded."""

    def report_wait(self, job: int, why: str) -> None:
        """Do nothing."""

    def commit(self, decisions: Decisions) -> CommitResult:
        """Reject starts and stops; jobs that the scheduler rejects leave the queue."""
        for job in decisions.rejected:
            self.ignore_job(self.table.name(job))
        self.next_wakeup = decisions.next_wakeup
        committed, refused = without_starts(decisions)
        return CommitResult(committed, refused)


class ObservedPlatform(ShadowPlatform):
    """A one-time view of Slurm, independent of the mode in use there: jobs held by an administrator wait for place mode."""

    def is_schedulable(self, gang: HetComponents) -> bool:
        """Return whether the job may start and is not held by its user."""
        return self.may_start(gang) and not any(job.held_by_user for job in gang)
