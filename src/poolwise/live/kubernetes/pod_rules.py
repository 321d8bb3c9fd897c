"""Fields of a pod that relate it to other pods, or that prefer nodes. Few pods have them; other pods cost nothing."""

from __future__ import annotations

from dataclasses import dataclass

from poolwise.live.kubernetes.host_ports import HostPort, host_ports
from poolwise.live.kubernetes.objects.pod import Pod, PodAffinityTerm, PreferredNodes, SpreadConstraint, WeightedPodAffinityTerm


@dataclass(frozen=True)
class PodRules:
    """Placement rules of one pod."""

    ports: tuple[HostPort, ...] = ()
    affinity: tuple[PodAffinityTerm, ...] = ()  # required
    anti_affinity: tuple[PodAffinityTerm, ...] = ()  # required
    preferred_pods: tuple[WeightedPodAffinityTerm, ...] = ()  # the weight is negative for anti-affinity
    preferred_nodes: tuple[PreferredNodes, ...] = ()
    required_spread: tuple[SpreadConstraint, ...] = ()  # DoNotSchedule
    preferred_spread: tuple[SpreadConstraint, ...] = ()  # ScheduleAnyway

    @classmethod
    def of(cls, pod: Pod) -> PodRules | None:
        """Read the rules of a pod; None without any."""
        spec = pod.spec
        ports = host_ports(pod)
        if spec.affinity is None and not spec.topology_spread_constraints and not ports:
            return None
        towards = spec.affinity.pod_affinity if spec.affinity is not None else None
        away = spec.affinity.pod_anti_affinity if spec.affinity is not None else None
        nodes = spec.affinity.node_affinity if spec.affinity is not None else None
        preferred = [*towards.preferred_during_scheduling_ignored_during_execution] if towards is not None else []
        preferred += [
            WeightedPodAffinityTerm(weight=-term.weight, pod_affinity_term=term.pod_affinity_term)
            for term in (away.preferred_during_scheduling_ignored_during_execution if away is not None else ())
        ]
        rules = cls(
            ports,
            tuple(towards.required_during_scheduling_ignored_during_execution) if towards is not None else (),
            tuple(away.required_during_scheduling_ignored_during_execution) if away is not None else (),
            tuple(preferred),
            tuple(nodes.preferred_during_scheduling_ignored_during_execution) if nodes is not None else (),
            tuple(
                constraint
                for constraint in spec.topology_spread_constraints
                if constraint.when_unsatisfiable == "DoNotSchedule"
            ),
            tuple(
                constraint
                for constraint in spec.topology_spread_constraints
                if constraint.when_unsatisfiable == "ScheduleAnyway"
            ),
        )
        return rules if rules != _NONE else None

    @property
    def relates_to_pods(self) -> bool:
        """True if the pod has affinity or anti-affinity terms, which also count when other pods are placed."""
        return bool(self.affinity or self.anti_affinity or self.preferred_pods)

    @property
    def has_preferences(self) -> bool:
        """True if the pod prefers some nodes to others."""
        return bool(self.preferred_pods or self.preferred_nodes or self.preferred_spread)


_NONE = PodRules()
