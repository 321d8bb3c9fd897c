"""Shadow mode: decides without changing the cluster; read permissions suffice."""

from __future__ import annotations

from poolwise.live.kubernetes.platform import KubernetesPlatform
from poolwise.live.kubernetes.pod_jobs import PodJob
from poolwise.model import CommitResult, Decision, Plan, Start, Stop


class ShadowKubernetes(KubernetesPlatform):
    """A cluster that another scheduler manages. Starts and stops are refused, and appear in the record only."""

    def commit(self, plan: Plan) -> CommitResult:
        """Refuse starts and stops; rejected jobs leave the queue."""
        refused: tuple[tuple[Decision, str], ...] = tuple(
            (decision, "shadow mode") for decision in plan.decisions if isinstance(decision, Start | Stop)
        )
        rest = tuple(decision for decision in plan.decisions if not isinstance(decision, Start | Stop))
        committed = super().commit(Plan(rest, plan.wake_at)).committed
        return CommitResult(committed, refused, (), self.unplaceable(plan.starts))

    def go_on(self, job: PodJob) -> None:
        """Do nothing: the other scheduler completes its own starts."""
