"""Extended resources backed by devices: the claim that is created for a pod, and the scheduling of the pod."""

from __future__ import annotations

from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from poolwise.live.kubernetes.demand import node_amounts
from poolwise.live.kubernetes.extended import ExtendedClaim, device_class_of, extended_claim
from poolwise.live.kubernetes.objects.claim import ResourceClaim
from poolwise.live.kubernetes.objects.device import DeviceClass
from poolwise.live.kubernetes.objects.pod import Pod
from poolwise.policies.placement.nodes.placement import FirstNodes
from poolwise.schedulers.list import ListScheduler
from tests.helpers.played_cluster import DrivenPlatform, FakeKubernetes
from tests.live.kubernetes import objects as make

CARD = "example.com/card"


def card(name: str = "gpu", resource: str | None = CARD, made: str = "2026-11-22T12:00:00Z") -> dict[str, Any]:
    kind = make.device_class(name, "gpu.example")
    kind["metadata"]["creationTimestamp"] = made
    if resource is not None:
        kind["spec"]["extendedResourceName"] = resource
    return kind


def driven(*objects: dict[str, Any]) -> tuple[FakeKubernetes, DrivenPlatform]:
    made = FakeKubernetes(*objects)
    return made, made.open(ListScheduler(placement=FirstNodes()))


def gpus(node: str, count: int) -> dict[str, Any]:
    return make.devices("gpu.example", node, *({"name": f"g{k}"} for k in range(count)), node=node)


def test_pods_get_devices_for_an_extended_resource() -> None:
    nodes = [make.node("n0"), make.node("n1")]
    pods = [make.pod(f"p{k}", extended={CARD: "1"}) for k in range(4)]
    made, run = driven(*nodes, card(), gpus("n0", 1), gpus("n1", 2), *pods)
    assert run.nodes() == {"p0": "n0", "p1": "n1", "p2": "n1"}
    claims = [thing for (kind, _), thing in made.objects.items() if kind is ResourceClaim]
    assert sorted(len(claim.status.reserved_for) for claim in claims) == [0, 1, 1, 1]


def test_implicit_resource_name_selects_any_class() -> None:
    pod = make.pod("p", extended={"deviceclass.resource.kubernetes.io/gpu": "2"})
    _, run = driven(make.node("n0"), make.node("n1"), card(resource=None), gpus("n0", 1), gpus("n1", 2), pod)
    assert run.nodes() == {"p": "n1"}


def test_resource_that_nodes_offer_needs_no_claim() -> None:
    made, run = driven(make.node("n0"), make.node("n1", resources={CARD: "2"}), card(), make.pod("p", extended={CARD: "1"}))
    assert run.nodes() == {"p": "n1"}
    assert not [key for kind, key in made.objects if kind is ResourceClaim]


def test_gang_waits_until_each_claim_is_created_once() -> None:
    label = "pod-group.scheduling.sigs.k8s.io"
    labels = {label: "g", f"{label}/min-available": "3"}
    pods = [make.pod(f"p{k}", labels=labels, extended={CARD: "1"}) for k in range(3)]
    made = FakeKubernetes(make.node("n0"), card(), gpus("n0", 3), *pods)
    requested: list[ExtendedClaim] = []
    complete_start, made.create_claim = made.create_claim, requested.append  # type: ignore[method-assign, assignment]
    run = made.open(ListScheduler(placement=FirstNodes()))
    assert len(requested) == 3, "all claims are requested at once"
    for claim in requested[:]:
        assert run.nodes() == {}
        complete_start(claim)
        run.settle()
    assert set(run.nodes()) == {"p0", "p1", "p2"} and len(requested) == 3


def test_most_recent_class_wins_then_the_first_by_name() -> None:
    def kinds(*all: dict[str, Any]) -> list[DeviceClass]:
        return [msgspec.convert(item, DeviceClass) for item in all]

    old, young = "2026-11-22T11:00:00Z", "2026-11-22T12:00:00Z"
    assert device_class_of(CARD, kinds(card("a", made=old), card("c", made=young), card("b", made=young))) == "b"
    assert device_class_of(CARD, kinds(card("a", resource="example.com/other"))) is None


Asked = st.integers(0, 4)
KINDS = st.sampled_from(["init", "sidecar"])


@given(before=st.lists(st.tuples(KINDS, Asked), max_size=5), main=st.lists(Asked, min_size=1, max_size=4))
def test_claim_requests_the_peak_number_of_devices(before: list[tuple[str, int]], main: list[int]) -> None:
    """Each container gets its devices; none is shared with a container that started earlier and still runs."""

    def container(name: str, count: int, **more: Any) -> dict[str, Any]:
        return {"name": name, "resources": {"requests": {"cpu": "1", CARD: str(count)} if count else {"cpu": "1"}}, **more}

    inits = [
        container(f"i{k}", n, **({"restartPolicy": "Always"} if kind == "sidecar" else {}))
        for k, (kind, n) in enumerate(before)
    ]
    spec = {"initContainers": inits, "containers": [container(f"m{k}", n) for k, n in enumerate(main)]}
    pod = msgspec.convert({"metadata": {"name": "p", "namespace": "default", "uid": "a-b"}, "spec": spec}, Pod)
    made = extended_claim(pod, {CARD: "gpu"})
    count = {request.name: request.alternatives[0].count for request in made.requests}
    assert sum(count.values()) == node_amounts(pod).get(CARD, 0) and all(count.values())
    names = [f"i{k}" for k in range(len(before))] + [f"m{k}" for k in range(len(main))]
    needed = dict(zip(names, [n for _, n in before] + main, strict=True))
    used = {name: [request for container, _, request in made.mappings if container == name] for name in names}
    for name in names:
        assert len(set(used[name])) == len(used[name])
        assert sum(count[request] for request in used[name]) >= needed[name] and bool(used[name]) == bool(needed[name])
    for k, (kind, _) in enumerate(before):
        if kind == "sidecar":
            assert not any(set(used[f"i{k}"]) & set(used[name]) for name in names[k + 1 :])
    for index, other in ((a, b) for a in range(len(main)) for b in range(a)):
        assert not set(used[f"m{index}"]) & set(used[f"m{other}"])
