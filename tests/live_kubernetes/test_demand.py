"""What pods ask for."""

import pytest

from poolwise.errors import InputError
from poolwise.live.kubernetes.demand import amounts_of, requested_of, unsupported_fields
from poolwise.live.kubernetes.node_constraints import NodeConstraints
from poolwise.live.kubernetes.objects import (
    Condition,
    Container,
    ContainerResources,
    Meta,
    Node,
    NodeSpec,
    Pod,
    PodAffinity,
    PodSpec,
    PodStatus,
    Taint,
    Toleration,
)
from poolwise.live.kubernetes.quantity import needed, offered, parse_quantity, quantity_text
from poolwise.units import SECOND, UNKNOWN


def container(cpu: str, memory: str, **more: str) -> Container:
    return Container(name="c", resources=ContainerResources(requests={"cpu": cpu, "memory": memory}), **more)  # type: ignore[arg-type]


def test_containers_sidecars_init_containers_and_overhead() -> None:
    spec = PodSpec(
        containers=[container("500m", "1Gi"), container("1", "1Gi")],
        init_containers=[container("200m", "1Gi", restart_policy="Always"), container("4", "1Gi")],
        overhead={"cpu": "100m"},
    )
    assert amounts_of(Pod(spec=spec)) == {"pods": 1, "cores": 4300, "memory": 3 * 1024}


def test_requested_time() -> None:
    assert requested_of(Pod()) == UNKNOWN
    assert requested_of(Pod(spec=PodSpec(active_deadline_seconds=7))) == 7 * SECOND
    assert requested_of(Pod(metadata=Meta(annotations={"poolwise/duration": "2 min"}))) == 120 * SECOND
    with pytest.raises(InputError, match="default/p"):
        requested_of(Pod(metadata=Meta(name="p", namespace="default", annotations={"poolwise/duration": "soon"})))


@pytest.mark.parametrize(("text", "value"), [("1500m", 1.5), ("2Ki", 2048), ("1e3", 1000), ("3", 3), (".5", 0.5), ("2M", 2e6)])
def test_quantities(text: str, value: float) -> None:
    assert parse_quantity(text) == value
    assert parse_quantity(quantity_text(parse_quantity(text))) == value


def test_what_is_needed_is_rounded_up_and_what_there_is_down() -> None:
    assert needed("memory", "1") == 1 and offered("memory", "1") == 0
    assert needed("cpu", "1500u") == 2 and offered("cpu", "1500u") == 1
    with pytest.raises(InputError):
        parse_quantity("much")


def test_where_a_pod_may_run() -> None:
    node = Node(metadata=Meta(name="n", labels={"a": "1"}), spec=NodeSpec(taints=[Taint(key="t", effect="NoSchedule")]))
    tolerant = [Toleration(key="t", operator="Exists")]
    assert not NodeConstraints.of(Pod()).allows(node)
    assert NodeConstraints.of(Pod(spec=PodSpec(tolerations=tolerant))).allows(node)
    assert NodeConstraints.of(Pod(spec=PodSpec(tolerations=tolerant, node_selector={"a": "1"}))).allows(node)
    assert not NodeConstraints.of(Pod(spec=PodSpec(tolerations=tolerant, node_selector={"a": "2"}))).allows(node)


def test_unsupported_fields_are_named() -> None:
    spec = PodSpec(affinity=PodAffinity(pod_affinity={"x": 1}), topology_spread_constraints=[{}])
    assert [field for field, _ in unsupported_fields(Pod(spec=spec))] == [
        "spec.affinity.podAffinity",
        "spec.topologySpreadConstraints",
    ]


def test_a_pod_began_when_it_got_its_node() -> None:
    meta, given = Meta(creation_timestamp="2026-11-22T12:00:00Z"), "2026-11-22T12:05:00Z"
    condition = Condition(type="PodScheduled", status="True", last_transition_time=given)
    waits = Condition(type="PodScheduled", status="False", last_transition_time="2026-11-22T12:01:00Z")
    assert Pod(metadata=meta, status=PodStatus(conditions=[condition], start_time="2026-11-22T12:06:00Z")).began == given
    assert Pod(metadata=meta, status=PodStatus(conditions=[waits], start_time="2026-11-22T12:06:00Z")).began.endswith("06:00Z")
    assert Pod(metadata=meta).began == meta.creation_timestamp
