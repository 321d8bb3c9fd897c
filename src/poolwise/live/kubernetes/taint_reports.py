"""Reports of devices that were taken out of service while claims use them.

Kubernetes evicts the pods (device-taint-eviction-controller); the scheduler only reports.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator

from poolwise.live.kubernetes.actions import Actions
from poolwise.live.kubernetes.cache import ClusterCache
from poolwise.live.kubernetes.metrics import KubernetesMetrics
from poolwise.live.kubernetes.node_constraints import untolerated_taint
from poolwise.live.kubernetes.objects.claim import ResourceClaim
from poolwise.live.kubernetes.objects.device import DeviceId
from poolwise.live.kubernetes.objects.node import Taint
from poolwise.live.logs import log_event


class TaintReporter:
    """Reports each claim whose devices have an untolerated `NoExecute` taint: once in the log and to its pods."""

    def __init__(self, cache: ClusterCache, actions: Actions, metrics: KubernetesMetrics) -> None:
        self._cache, self._actions, self._metrics = cache, actions, metrics
        self._reported: set[tuple[str, DeviceId]] = set()  # (claim uid, device)
        self._reported_rules: dict[str, str] = {}  # taint rule -> problem

    def report(self) -> None:
        """Report new cases and rules that cannot be evaluated, and count all cases."""
        self._report_rules()
        cases = {(claim.metadata.uid, device): (claim, taint) for claim, device, taint in self._cases()}
        for (uid, device), (claim, taint) in cases.items():
            if (uid, device) in self._reported:
                continue
            fields = {"device": str(device), "claim": claim.metadata.key, "taint": taint.key}
            log_event("tainted_device_in_use", logging.WARNING, **fields)
            users = {user.uid for user in claim.status.reserved_for}
            note = f"device {device} of claim {claim.metadata.key} has the taint {taint.key}:{taint.effect}"
            for pod in [pod for pod in self._cache.pods.values() if pod.metadata.uid in users and self._cache.is_managed(pod)]:
                self._actions.report_event(pod, "DeviceTainted", note)
        self._reported = {*cases}
        self._metrics.tainted_devices_in_use.set(len({device for _, device in cases}))

    def _report_rules(self) -> None:
        """Report each rule with an expression that cannot be evaluated: it taints the devices that its other criteria match."""
        problems = self._cache.inventory.rule_problems
        for name, problem in sorted(problems.items()):
            if self._reported_rules.get(name) != problem:
                log_event("taint_rule_not_evaluated", logging.WARNING, rule=name, error=problem)
                self._actions.report_rule(
                    self._cache.rules[name], f"{problem}; the rule taints all devices that its other criteria match"
                )
        self._reported_rules = {**problems}

    def _cases(self) -> Iterator[tuple[ResourceClaim, DeviceId, Taint]]:
        inventory, usage = self._cache.inventory, self._cache.usage
        tainted = {device for device in inventory.evicting if usage.in_use(device)}
        if not tainted:
            return
        for claim in self._cache.claims.values():
            for result in claim.allocated_devices:
                if result.id in tainted and not result.admin_access:
                    taints = [t for t in inventory.taints(inventory.devices[result.id]) if t.effect == "NoExecute"]
                    if (taint := untolerated_taint(taints, result.tolerations or ())) is not None:
                        yield claim, result.id, taint
