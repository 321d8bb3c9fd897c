"""Shadow mode: decides, and changes nothing. The rights to read are enough."""

from __future__ import annotations

from poolwise.live.kubernetes.platform import KubernetesPlatform
from poolwise.live.kubernetes.pod_jobs import PodJob
from poolwise.model import CommitResult, Decision, Plan, Start, Stop


class ShadowKubernetes(KubernetesPlatform):
    """Somebody else decides; what the scheduler would have done at the same instants is refused, and stands in the record."""

    def commit(self, plan: Plan) -> CommitResult:
        """Refuse what would change the cluster; rejected jobs leave the queue."""
        refused: tuple[tuple[Decision, str], ...] = tuple(
            (decision, "shadow mode") for decision in plan.decisions if isinstance(decision, Start | Stop)
        )
        rest = tuple(decision for decision in plan.decisions if not isinstance(decision, Start | Stop))
        committed = super().commit(Plan(rest, plan.wake_at)).committed
        return CommitResult(committed, refused, (), self.lacking(plan.starts))

    def go_on(self, job: PodJob) -> None:
        """Leave what somebody else has begun to them."""
