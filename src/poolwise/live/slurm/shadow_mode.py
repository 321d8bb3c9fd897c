"""Shadow mode: decides, but changes nothing; read access to Slurm is sufficient."""

from __future__ import annotations

from poolwise.live.slurm.platform import HetComponents, SlurmPlatform
from poolwise.model import CommitResult, Decision, Plan, Reject, Start, Stop
from poolwise.units import SECOND


class ShadowPlatform(SlurmPlatform):
    """Slurm schedules; starts that the scheduler would have made at the same instants are rejected and recorded."""

    def is_schedulable(self, gang: HetComponents) -> bool:
        """Return whether Slurm could start the job now if resources were free."""
        return may_start(gang, self.table.epoch + self.now) and not any(job.held for job in gang)

    def report_wait(self, job: int, why: str) -> None:
        """Do nothing."""

    def commit(self, plan: Plan) -> CommitResult:
        """Reject starts and stops; jobs that the scheduler rejects leave the queue."""
        committed: list[Decision] = []
        rejected: list[tuple[Decision, str]] = []
        for decision in plan.decisions:
            if isinstance(decision, Start | Stop):
                rejected.append((decision, "shadow mode"))
            else:
                if isinstance(decision, Reject):
                    self.ignore_job(self.table.name(decision.job))
                committed.append(decision)
        self.wake_at(plan.wake_at)
        return CommitResult(tuple(committed), tuple(rejected))


class ObservedPlatform(ShadowPlatform):
    """A one-time view of Slurm, independent of the mode in use there: jobs held by an administrator wait for place mode."""

    def is_schedulable(self, gang: HetComponents) -> bool:
        """Return whether the job may start and is not held by its user."""
        return may_start(gang, self.table.epoch + self.now) and not any(job.held_by_user for job in gang)


def may_start(gang: HetComponents, now: int) -> bool:
    """Return whether a job is pending, has no unsatisfied dependency, and may begin by now (ns since 1970)."""
    pending = all(job.state == "PENDING" and not job.dependent for job in gang)
    return pending and not any(job.reason == "BeginTime" or (job.held and (job.start or 0) > now + SECOND) for job in gang)
