"""A pod that gets the name of one that has ended, as pods of a StatefulSet do, is scheduled at once, also in a gang."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
import pytest

from poolwise.live.kubernetes.informer import Synced, WatchEvent
from poolwise.live.kubernetes.objects.claim import ResourceClaim
from poolwise.live.kubernetes.objects.pod import Pod
from poolwise.live.kubernetes.starts import BindFailed
from poolwise.policies.placement.nodes.placement import FirstNodes
from poolwise.schedulers.list import ListScheduler
from tests.helpers.played_cluster import DrivenPlatform, FakeKubernetes
from tests.live.kubernetes import objects as make

LABEL = "pod-group.scheduling.sigs.k8s.io"
FIRST_FIT = ListScheduler(placement=FirstNodes())


def gang_pod(k: int, size: int) -> dict[str, Any]:
    labels = {LABEL: "gang", f"{LABEL}/min-available": str(size)}
    return make.pod(f"p{k}", cpu="1", memory="1Mi", seconds=None, labels=labels, claims={"g": {"resourceClaimName": f"c{k}"}})


def opened(pods: list[dict[str, Any]], cpu: str = "8") -> DrivenPlatform:
    """Return a cluster of a node with ten GPUs on which pods run."""
    kube = FakeKubernetes(make.node("n0", cpu=cpu), make.device_class("gpu", "gpu.example"))
    kube.add(make.devices("gpu.example", "n0", *({"name": f"g{k}"} for k in range(10)), node="n0"))
    for k, pod in enumerate(pods):
        kube.add(make.claim(f"c{k}", make.exactly("gpu")))
        kube.add(pod)
    return kube.open(FIRST_FIT)


def with_replaced_pod() -> DrivenPlatform:
    """Return a cluster on which p0 with claim c1 has replaced p0 with claim c0, which is still reserved."""

    def pod(claim: str) -> dict[str, Any]:
        return make.pod("p0", cpu="1", memory="1Mi", seconds=None, claims={"g": {"resourceClaimName": claim}})

    driven = opened([pod("c0")])
    driven.cluster.remove(Pod, "default/p0")
    driven.cluster.add(make.claim("c1", make.exactly("gpu")))
    driven.cluster.add(pod("c1"))
    driven.settle()
    return driven


def release(driven: DrivenPlatform, claim: str) -> None:
    """Deallocate a claim, as the controller does once the pods that it is reserved for have ended."""
    now = driven.cluster.get(ResourceClaim, f"default/{claim}")
    driven.cluster.put(
        msgspec.structs.replace(now, status=msgspec.structs.replace(now.status, reserved_for=[], allocation=None))
    )


def check_at_end(driven: DrivenPlatform, many: int) -> None:
    """Assert that nothing is held once all pods have ended."""
    for k in range(many):
        driven.cluster.finish(f"default/p{k}")
        release(driven, f"c{k}")
    driven.settle()
    state, runs = driven.platform.state, driven.platform.runs
    assert not runs.active and not state.run_pods and not state.run_pods_on and not state.related
    assert not driven.platform.pod_jobs.by_pod
    assert not state.held.any() and np.array_equal(state.free, state.capacity)


@pytest.mark.parametrize("between", [False, True], ids=["at once", "later"])
def test_replaced_pod_of_a_gang_starts_while_the_others_run(between: bool) -> None:
    driven = opened([gang_pod(k, 3) for k in range(3)])
    assert driven.nodes() == dict.fromkeys(("p0", "p1", "p2"), "n0")
    driven.cluster.remove(Pod, "default/p1")
    release(driven, "c1")
    if between:
        driven.settle()
    driven.cluster.add(gang_pod(1, 3))
    driven.settle()
    assert driven.nodes() == dict.fromkeys(("p0", "p1", "p2"), "n0")
    assert [len(pods) for _, pods in driven.cluster.started] == [3, 1]
    check_at_end(driven, 3)


@pytest.mark.parametrize("between", [False, True], ids=["at once", "later"])
def test_gang_whose_pods_are_all_replaced_starts_together(between: bool) -> None:
    driven = opened([gang_pod(k, 2) for k in range(2)])
    for k in range(2):
        driven.cluster.remove(Pod, f"default/p{k}")
        release(driven, f"c{k}")
    if between:
        driven.settle()
    for k in range(2):
        driven.cluster.add(gang_pod(k, 2))
    driven.settle()
    assert [len(pods) for _, pods in driven.cluster.started] == [2, 2]
    check_at_end(driven, 2)


def test_one_pod_is_replaced_while_the_claim_of_its_predecessor_is_still_reserved() -> None:
    """The run of the predecessor ends with the release of its claim, and the successor keeps its own run."""
    driven = with_replaced_pod()
    assert driven.nodes() == {"p0": "n0"} and len(driven.platform.runs.active) == 2
    release(driven, "c0")
    driven.settle()
    assert [active.job.claims for active in driven.platform.runs.active.values()] == [(("default/c1",),)]
    release(driven, "c1")
    check_at_end(driven, 1)
    release(driven, "c0")  # no pod uses it any more
    driven.settle()


def test_pod_without_claims_is_replaced_at_once() -> None:
    pod = make.pod("p0", cpu="6", memory="1Mi", seconds=None)
    driven = opened([pod])
    driven.cluster.remove(Pod, "default/p0")
    driven.cluster.add(pod)
    driven.settle()
    assert driven.nodes() == {"p0": "n0"} and len(driven.cluster.started) == 2
    check_at_end(driven, 1)


def test_replaced_pod_of_a_gang_waits_for_room() -> None:
    """The resources of a run return together: those of the predecessor are held until the gang ends."""
    driven = opened([gang_pod(k, 3) for k in range(3)], cpu="3")
    driven.cluster.remove(Pod, "default/p1")
    release(driven, "c1")
    driven.cluster.add(gang_pod(1, 3))
    driven.settle()
    assert "p1" not in driven.nodes()
    for k in (0, 2):
        driven.cluster.finish(f"default/p{k}")
        release(driven, f"c{k}")
    driven.settle()
    assert driven.nodes()["p1"] == "n0"
    check_at_end(driven, 3)


def relist(driven: DrivenPlatform, kind: type) -> None:
    """List all objects of a kind again, as after a watch that was interrupted: deletions are not reported one by one."""
    items = [item for (of, _), item in driven.cluster.objects.items() if of is kind]
    for item in items:
        driven.cluster.events.put(WatchEvent(item))
    driven.cluster.events.put(Synced(kind, frozenset(item.metadata.key for item in items)))
    driven.settle()


def test_device_of_a_claim_that_is_replaced_unseen_is_free_again() -> None:
    driven = opened([make.pod("p0", cpu="1", memory="1Mi", seconds=None, claims={"g": {"resourceClaimName": "c0"}})])
    driven.cluster.finish("default/p0")
    driven.settle()
    kube = driven.cluster
    del kube.objects[Pod, "default/p0"], kube.objects[ResourceClaim, "default/c0"]
    while not kube.events.empty():
        kube.events.get()
    replaced = make.claim("c0", make.exactly("gpu"))
    kube.add(replaced)
    kube.events.get()  # the watch does not see it
    relist(driven, Pod)
    relist(driven, ResourceClaim)
    assert not driven.platform.cache.usage.claims
    check_at_end(driven, 0)


def test_pod_that_is_replaced_unseen_by_one_of_another_scheduler_leaves_the_queue() -> None:
    for cpu in ("1", "9"):  # it runs, or waits
        driven = opened([make.pod("p0", cpu=cpu, memory="1Mi", seconds=None)])
        driven.cluster.add(make.pod("p0", cpu=cpu, memory="1Mi", seconds=None, schedulerName="another"))
        driven.settle()
        check_at_end(driven, 0)


def test_successor_of_a_pod_gets_a_message_of_its_own() -> None:
    pod = make.pod("p0", cpu="1", seconds=None, claims={"g": {"resourceClaimName": "missing"}})
    driven = opened([])
    driven.cluster.add(pod)
    driven.settle().wait_for_pass()
    assert "missing" in driven.cluster.messages.pop("default/p0")
    driven.cluster.remove(Pod, "default/p0")
    driven.cluster.add(pod)
    driven.settle().wait_for_pass()
    assert "missing" in driven.cluster.messages["default/p0"]


def test_pod_whose_label_names_another_group_leaves_its_group() -> None:
    driven = opened([])
    for name, group in (("a", "one"), ("b", "one"), ("c", "other")):
        driven.cluster.add(make.pod(name, cpu="1", seconds=None, labels={LABEL: group, f"{LABEL}/min-available": "2"}))
    driven.settle()
    assert set(driven.nodes()) == {"a", "b"}
    b = driven.cluster.get(Pod, "default/b")
    labels = {**b.metadata.labels, LABEL: "other"}
    driven.cluster.put(msgspec.structs.replace(b, metadata=msgspec.structs.replace(b.metadata, labels=labels)))
    driven.settle()
    assert driven.platform.pod_jobs._members == {"default/one": {"default/a"}, "default/other": {"default/b", "default/c"}}


def test_gang_whose_start_fails_starts_with_the_successor_of_a_pod() -> None:
    driven = opened([])
    driven.cluster.binds_at_once = False
    for k in range(2):
        driven.cluster.add(make.claim(f"c{k}", make.exactly("gpu")))
        driven.cluster.add(gang_pod(k, 2))
    driven.settle()
    ((number, first),) = driven.cluster.started
    driven.cluster.remove(Pod, "default/p0")
    successor = driven.cluster.add(gang_pod(0, 2))
    driven.settle()
    driven.cluster.events.put(BindFailed(number, "pod p0 no longer exists", lost=True))
    driven.settle()
    while len(driven.cluster.started) == 1:
        driven.wait_for_pass()
    _, again = driven.cluster.started[1]
    assert [start.pod.metadata.uid for start in again] == [successor.metadata.uid, first[1].pod.metadata.uid]
    driven.cluster.complete_start(*driven.cluster.started[1])
    check_at_end(driven.settle(), 2)


def test_stopping_the_run_of_a_gang_evicts_no_successor() -> None:
    driven = opened([gang_pod(k, 2) for k in range(2)])
    driven.cluster.remove(Pod, "default/p0")
    release(driven, "c0")
    driven.cluster.add(gang_pod(0, 2))
    driven.settle()
    driven.platform.runs.stop(0, "preempted")
    assert driven.cluster.stopped == [("default/p1", "preempted")]


def test_claim_is_released_after_the_successor_of_its_pod_has_ended() -> None:
    driven = with_replaced_pod()
    driven.cluster.remove(Pod, "default/p0")
    release(driven, "c1")
    driven.settle()
    release(driven, "c0")
    driven.settle()
    check_at_end(driven, 0)
