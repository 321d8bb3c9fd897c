"""Demand of pods: amounts, requested times, node constraints and unsupported fields."""

import pytest

from poolwise.errors import InputError
from poolwise.live.kubernetes.demand import node_amounts, requested_time
from poolwise.live.kubernetes.node_constraints import NodeConstraints
from poolwise.live.kubernetes.objects.meta import Condition, Meta, ResourceRequests
from poolwise.live.kubernetes.objects.node import Node, NodeSpec, Taint, Toleration
from poolwise.live.kubernetes.objects.pod import Container, Pod, PodSpec, PodStatus
from poolwise.live.kubernetes.quantity import available_amount, parse_quantity, quantity_text, requested_amount
from poolwise.quantities import SECOND, UNKNOWN


def container(cpu: str, memory: str, **more: str) -> Container:
    return Container(name="c", resources=ResourceRequests(requests={"cpu": cpu, "memory": memory}), **more)  # type: ignore[arg-type]


def test_containers_sidecars_init_containers_and_overhead() -> None:
    spec = PodSpec(
        containers=[container("500m", "1Gi"), container("1", "1Gi")],
        init_containers=[container("200m", "1Gi", restart_policy="Always"), container("4", "1Gi")],
        overhead={"cpu": "100m"},
    )
    assert node_amounts(Pod(spec=spec)) == {"pods": 1, "cores": 4300, "memory": 3 * 1024}


def test_requested_time() -> None:
    assert requested_time(Pod()) == UNKNOWN
    assert requested_time(Pod(spec=PodSpec(active_deadline_seconds=7))) == 7 * SECOND
    assert requested_time(Pod(metadata=Meta(annotations={"poolwise/duration": "2 min"}))) == 120 * SECOND
    with pytest.raises(InputError, match="default/p"):
        requested_time(Pod(metadata=Meta(name="p", namespace="default", annotations={"poolwise/duration": "soon"})))


@pytest.mark.parametrize(("text", "value"), [("1500m", 1.5), ("2Ki", 2048), ("1e3", 1000), ("3", 3), (".5", 0.5), ("2M", 2e6)])
def test_quantities(text: str, value: float) -> None:
    assert parse_quantity(text) == value
    assert parse_quantity(quantity_text(parse_quantity(text))) == value


def test_requests_are_rounded_up_and_capacities_down() -> None:
    assert requested_amount("memory", "1") == 1 and available_amount("memory", "1") == 0
    assert requested_amount("cpu", "1500u") == 2 and available_amount("cpu", "1500u") == 1
    with pytest.raises(InputError):
        parse_quantity("much")


def test_node_selector_and_tolerations_restrict_nodes() -> None:
    node = Node(metadata=Meta(name="n", labels={"a": "1"}), spec=NodeSpec(taints=[Taint(key="t", effect="NoSchedule")]))
    tolerant = [Toleration(key="t", operator="Exists")]
    assert not NodeConstraints.of(Pod()).allows(node)
    assert NodeConstraints.of(Pod(spec=PodSpec(tolerations=tolerant))).allows(node)
    assert NodeConstraints.of(Pod(spec=PodSpec(tolerations=tolerant, node_selector={"a": "1"}))).allows(node)
    assert not NodeConstraints.of(Pod(spec=PodSpec(tolerations=tolerant, node_selector={"a": "2"}))).allows(node)


def test_pod_is_scheduled_when_its_condition_says_so() -> None:
    meta, scheduled_at = Meta(creation_timestamp="2026-11-22T12:00:00Z"), "2026-11-22T12:05:00Z"
    condition = Condition(type="PodScheduled", status="True", last_transition_time=scheduled_at)
    waits = Condition(type="PodScheduled", status="False", last_transition_time="2026-11-22T12:01:00Z")
    assert (
        Pod(metadata=meta, status=PodStatus(conditions=[condition], start_time="2026-11-22T12:06:00Z")).scheduled_at
        == scheduled_at
    )
    assert Pod(metadata=meta, status=PodStatus(conditions=[waits], start_time="2026-11-22T12:06:00Z")).scheduled_at.endswith(
        "06:00Z"
    )
    assert Pod(metadata=meta).scheduled_at == meta.creation_timestamp
