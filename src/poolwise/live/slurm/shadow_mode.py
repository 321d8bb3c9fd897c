"""Shadow mode: decides, and changes nothing. The rights to read are enough."""

from __future__ import annotations

from poolwise.live.slurm.platform import SlurmPlatform
from poolwise.live.slurm.poller import GANG
from poolwise.model import CommitResult, Decision, Plan, Reject, Start, Stop
from poolwise.units import SECOND


class ShadowPlatform(SlurmPlatform):
    """Slurm decides; what the scheduler would have done at the same instants is refused, and stands in the record."""

    def waits(self, gang: GANG) -> bool:
        """Whether Slurm itself could start it now, had it the room."""
        return may_start(gang, self.table.epoch + self.now) and not any(job.held for job in gang)

    def report_wait(self, job: int, why: str) -> None:
        """Tell nobody."""

    def commit(self, plan: Plan) -> CommitResult:
        """Refuse what would change the cluster; rejected jobs leave the queue."""
        committed: list[Decision] = []
        rejected: list[tuple[Decision, str]] = []
        for decision in plan.decisions:
            if isinstance(decision, Start | Stop):
                rejected.append((decision, "shadow mode"))
            else:
                if isinstance(decision, Reject):
                    self.set_aside(self.table.name(decision.job))
                committed.append(decision)
        self.wake_at(plan.wake_at)
        return CommitResult(tuple(committed), tuple(rejected))


class ObservedPlatform(ShadowPlatform):
    """Slurm as it is seen once, whichever mode decides there: jobs that an administrator holds wait for place mode."""

    def waits(self, gang: GANG) -> bool:
        """Whether it may begin, and its user does not hold it."""
        return may_start(gang, self.table.epoch + self.now) and not any(job.held_by_user for job in gang)


def may_start(gang: GANG, now: int) -> bool:
    """Whether a job is pending, depends on no other, and may begin by now (ns since 1970)."""
    pending = all(job.state == "PENDING" and not job.dependent for job in gang)
    return pending and not any(job.reason == "BeginTime" or (job.held and (job.start or 0) > now + SECOND) for job in gang)
