"""Volume claims: bound volumes restrict the nodes, others are provisioned on the chosen node, and the rest is refused."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import msgspec
import pytest

from poolwise.live.kubernetes.api_writer import ApiWriter
from poolwise.live.kubernetes.objects.meta import Meta
from poolwise.live.kubernetes.objects.node import Node
from poolwise.live.kubernetes.objects.volume import PersistentVolume, PersistentVolumeClaim
from poolwise.live.kubernetes.start_waits import StartWaits
from poolwise.live.kubernetes.starts import BindFailed, StartFailed, VolumeWrite
from poolwise.live.kubernetes.volume_binder import VolumeBinder
from poolwise.live.kubernetes.volumes import SELECTED_NODE, volume_serves
from poolwise.policies.placement.nodes.placement import FirstNodes
from poolwise.schedulers.list import ListScheduler
from tests.helpers.played_cluster import FakeKubernetes
from tests.helpers.waiting import longest_s, run_other_tasks
from tests.live.kubernetes import objects as make

FIRST_FIT = ListScheduler(placement=FirstNodes())


def pod(name: str = "p", volume: dict[str, Any] | None = None) -> dict[str, Any]:
    return make.pod(name, volumes=[{"name": "v", **(volume or {"persistentVolumeClaim": {"claimName": "c"}})}])


def cluster(*more: dict[str, Any], **options: Any) -> FakeKubernetes:
    zones = {"n0": "a", "n1": "b", "n2": "b"}
    nodes = [make.node(name, labels={"topology.kubernetes.io/zone": zone}) for name, zone in zones.items()]
    return FakeKubernetes(*nodes, *more, **options)


def test_bound_volume_restricts_the_nodes() -> None:
    claim = make.volume_claim("c", volumeName="v1") | {"status": {"phase": "Bound"}}
    kube = cluster(make.volume("v1", node="n2"), claim, pod(), pod("q"))
    assert kube.open(FIRST_FIT).nodes() == {"p": "n2", "q": "n2"}


def test_zone_of_a_bound_volume_restricts_the_nodes() -> None:
    volume = make.volume("v1")
    volume["metadata"]["labels"] = {"topology.kubernetes.io/zone": "b"}
    claim = make.volume_claim("c", volumeName="v1") | {"status": {"phase": "Bound"}}
    assert cluster(volume, claim, pod()).open(FIRST_FIT).nodes() == {"p": "n1"}


@pytest.mark.parametrize(
    ("volume", "node", "serves"),
    [
        ({"topology.kubernetes.io/zone": "a__b"}, {"topology.kubernetes.io/zone": "b"}, True),
        ({"topology.kubernetes.io/zone": "a"}, {"topology.kubernetes.io/zone": "b"}, False),
        ({"topology.kubernetes.io/zone": "a"}, {"disk": "ssd"}, True),  # a cluster with a single zone may lack the labels
        ({"topology.kubernetes.io/zone": "a"}, {"topology.kubernetes.io/region": "r"}, False),
        ({"failure-domain.beta.kubernetes.io/zone": "a"}, {"topology.kubernetes.io/zone": "a"}, True),
        ({"failure-domain.beta.kubernetes.io/zone": "a"}, {"topology.kubernetes.io/zone": "b"}, False),
        ({"topology.kubernetes.io/zone": "a"}, {"failure-domain.beta.kubernetes.io/zone": "a"}, False),
    ],
)
def test_zone_labels_restrict_nodes_as_in_kube_scheduler(volume: dict[str, str], node: dict[str, str], serves: bool) -> None:
    persistent = PersistentVolume(metadata=Meta(name="v", labels=volume))
    assert volume_serves(persistent, Node(metadata=Meta(name="n", labels=node))) == serves


def test_volume_is_provisioned_on_the_chosen_node_and_elsewhere_after_a_failure() -> None:
    kube = cluster(make.storage_class("late", "csi.example"), make.volume_claim("c", "late"), pod(), binds_at_once=False)
    driven = kube.open(FIRST_FIT)
    for attempt, node in enumerate(("n0", "n1", "n2")):
        run, (start,) = kube.started[attempt]
        assert [(write.claim.metadata.name, write.node.metadata.name) for write in start.volumes] == [("c", node)]
        kube.events.put(BindFailed(run, "no space", volumes=((start.volumes[0].claim.metadata.uid, node),)))
        driven.settle()
        (job,) = driven.platform.pod_jobs.jobs()
        job.not_before = 0  # the delay counts in real time
        driven.wait_for_pass()
    assert len(kube.started) == 3 and "no space" in kube.messages["default/p"]


def test_volume_that_is_being_provisioned_keeps_its_node() -> None:
    claim = make.volume_claim("c", "late")
    claim["metadata"]["annotations"] = {SELECTED_NODE: "n2"}
    kube = cluster(make.storage_class("late", "csi.example"), claim, pod(), binds_at_once=False)
    kube.open(FIRST_FIT)
    assert kube.started[0][1][0].node == "n2"


def test_topologies_of_a_storage_class_restrict_the_nodes() -> None:
    terms = [{"matchLabelExpressions": [{"key": "topology.kubernetes.io/zone", "values": ["b"]}]}]
    kind = make.storage_class("late", "csi.example", allowedTopologies=terms)
    kube = cluster(kind, make.volume_claim("c", "late"), pod(), binds_at_once=False)
    kube.open(FIRST_FIT)
    assert kube.started[0][1][0].node == "n1"


@pytest.mark.parametrize(
    ("claim", "message"),
    [
        (make.volume_claim("c", "static"), "its class has no provisioner"),
        (make.volume_claim("c", "late", accessModes=["ReadWriteOncePod"]), "has the access mode ReadWriteOncePod"),
        (make.volume_claim("c", "early"), "volume claim default/c is not bound yet"),
        (make.volume_claim("other", "late"), "volume claim default/c does not exist"),
    ],
)
def test_other_claims_are_refused_by_name(claim: dict[str, Any], message: str) -> None:
    static = make.storage_class("static", "kubernetes.io/no-provisioner")
    early = make.storage_class("early", "csi.example", volumeBindingMode="Immediate")
    driven = cluster(static, early, make.storage_class("late", "csi.example"), claim, pod()).open(FIRST_FIT)
    if "default/p" not in driven.cluster.messages:
        driven.wait_for_pass()
    assert message in driven.cluster.messages["default/p"] and not driven.nodes()


def test_pod_starts_once_its_claim_is_bound() -> None:
    kube = cluster(make.volume("v1", node="n1"), pod())
    driven = kube.open(FIRST_FIT)
    assert not driven.nodes()
    claim = kube.add(make.volume_claim("c", "early", volumeName="v1"))
    assert not driven.settle().nodes()
    kube.put(msgspec.structs.replace(claim, status=msgspec.structs.replace(claim.status, phase="Bound")))
    assert driven.settle().nodes() == {"p": "n1"}


def test_ephemeral_volume_uses_the_claim_of_its_pod() -> None:
    kube = cluster(make.volume("v1", node="n1"), pod(volume={"ephemeral": {"volumeClaimTemplate": {}}}))
    driven = kube.open(FIRST_FIT)
    claim = make.volume_claim("p-v", volumeName="v1") | {"status": {"phase": "Bound"}}
    kube.add(claim)
    assert not driven.settle().nodes(), "another owner"
    (uid,) = driven.platform.cache.pods["default/p"].metadata.uid.split()
    claim["metadata"]["ownerReferences"] = [{"kind": "Pod", "name": "p", "uid": uid}]
    kube.add(claim)
    assert driven.settle().nodes() == {"p": "n1"}


class ProvisioningServer(ApiWriter):
    """A writer and client with one claim and one volume."""

    def __init__(self, volume: dict[str, Any]) -> None:
        super().__init__(cast(Any, None), lambda: None)
        self.volume = msgspec.convert(volume, PersistentVolume)

    async def patch(self, path: str, body: Any, urgency: int, *more: Any, **options: Any) -> bytes:
        return msgspec.json.encode(claim(5, annotations=body["metadata"]["annotations"]))

    async def read(self, path: str, kind: type) -> PersistentVolume:
        return self.volume


def claim(version: int, phase: str = "Pending", **meta: Any) -> PersistentVolumeClaim:
    manifest = make.volume_claim("c", "late", volumeName="v1" if phase == "Bound" else "")
    manifest["metadata"] |= {"uid": "u", "resourceVersion": str(version), **meta}
    return msgspec.convert({**manifest, "status": {"phase": phase}}, PersistentVolumeClaim)


@pytest.mark.parametrize(
    ("then", "home", "message"),
    [
        (claim(6, "Bound"), "n0", ""),
        (claim(6, "Bound"), "n1", "cannot be used on node n0"),
        (claim(6), "n0", "gave up on node n0"),
        (claim(4), "n0", "was not bound within"),  # older than the annotation
        (None, "n0", "was deleted"),
    ],
)
def test_pod_is_bound_only_once_its_volume_is(then: PersistentVolumeClaim | None, home: str, message: str) -> None:
    async def scenario() -> None:
        server: Any = ProvisioningServer(make.volume("v1", node=home))
        binder = VolumeBinder(server, server, timeout=0.2 if "within" in message else 2 * longest_s())
        binder.observe(claim(3), False)
        write = VolumeWrite(claim(3), msgspec.convert(make.node("n0"), Node))
        await binder.select_node([write])
        waiting = asyncio.ensure_future(binder.wait_bound(write, StartWaits()))
        await run_other_tasks()
        assert not waiting.done()
        binder.observe(then if then is not None else claim(3), then is None)
        await asyncio.wait_for(waiting, longest_s())

    if not message:
        asyncio.run(scenario())
        return
    with pytest.raises(StartFailed, match=message) as failed:
        asyncio.run(scenario())
    assert bool(failed.value.volumes) == ("gave up" in message or "within" in message)
