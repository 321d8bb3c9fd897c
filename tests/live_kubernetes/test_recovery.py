"""Recovery from interrupted starts, vanished nodes and devices, and wrong clocks, on a cluster in memory.

Each row of the table in `docs/explanation/live-kubernetes.md` is a test.
"""

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from poolwise.files.state import read_state, write_state
from poolwise.live.kubernetes import pod_runs
from poolwise.live.kubernetes.api_writer import ApiWriter
from poolwise.live.kubernetes.bind import Binder, Reservations
from poolwise.live.kubernetes.clock import LiveClock
from poolwise.live.kubernetes.objects.claim import ResourceClaim
from poolwise.live.kubernetes.objects.device import ResourceSlice
from poolwise.live.kubernetes.objects.meta import Meta
from poolwise.live.kubernetes.objects.node import Node
from poolwise.live.kubernetes.objects.pod import Pod
from poolwise.live.kubernetes.starts import BindFailed, Bound, PodStart
from poolwise.live.platform import LiveView
from poolwise.model import Ended, Outcome
from poolwise.policies.placement.nodes.placement import FirstNodes
from poolwise.quantities import SECOND
from poolwise.schedulers.list import ListScheduler
from tests.helpers.played_cluster import DrivenPlatform, FakeKubernetes
from tests.live.kubernetes import objects as make

FIRST_FIT = ListScheduler(placement=FirstNodes())
LABEL = "pod-group.scheduling.sigs.k8s.io"
GPU = {"g": {"resourceClaimName": "c"}}


def cluster(*more: dict[str, Any], devices: int = 2, **options: Any) -> FakeKubernetes:
    """Two nodes with 4 cores, and GPUs that serve both."""
    kube = FakeKubernetes(*(make.node(f"n{k}", cpu="4") for k in range(2)), make.device_class("gpu", "gpu.example"), **options)
    kube.add(make.devices("gpu.example", "all", *({"name": f"g{k}"} for k in range(devices))))
    for item in more:
        kube.add(item)
    return kube


def allocated_claim(
    claim: dict[str, Any], *devices: str, pods: tuple[str, ...] = (), when: str = "10", node: str = ""
) -> dict[str, Any]:
    """A claim with allocated devices that is reserved for pods (uid)."""
    results = [{"request": "device", "driver": "gpu.example", "pool": "all", "device": name} for name in devices]
    allocation: dict[str, Any] = {"devices": {"results": results}, "allocationTimestamp": f"2026-11-22T12:00:{when}Z"}
    if node:
        here = {"key": "metadata.name", "operator": "In", "values": [node]}
        allocation["nodeSelector"] = {"nodeSelectorTerms": [{"matchFields": [here]}]}
    users = [{"resource": "pods", "name": uid, "uid": uid} for uid in pods]
    return {**claim, "status": {"allocation": allocation, "reservedFor": users}}


def pending_pod(pod: dict[str, Any], uid: str, **status: Any) -> dict[str, Any]:
    return {**pod, "metadata": {**pod["metadata"], "uid": uid}, "status": {"phase": "Pending", **status}}


def on_node(pod: dict[str, Any], node: str) -> dict[str, Any]:
    return {**pod, "spec": {**pod["spec"], "nodeName": node}, "status": {"phase": "Running"}}


def allocated_devices(driven: DrivenPlatform, claim: str) -> list[str]:
    allocation = driven.cluster.get(ResourceClaim, f"default/{claim}").status.allocation
    return [] if allocation is None else [result.device for result in allocation.devices.results]


def test_claim_with_only_a_finalizer_is_allocated() -> None:
    claim = make.claim("c", make.exactly("gpu"))
    claim["metadata"]["finalizers"] = ["resource.kubernetes.io/delete-protection"]
    driven = cluster(claim, make.pod("p", claims=GPU)).open(FIRST_FIT)
    assert driven.nodes() == {"p": "n0"} and allocated_devices(driven, "c") == ["g0"] and not driven.cluster.released


def test_allocated_claim_without_reservation_is_released() -> None:
    driven = cluster(allocated_claim(make.claim("c", make.exactly("gpu")), "g1"), make.pod("p", claims=GPU)).open(FIRST_FIT)
    assert set(driven.cluster.released) == {("default/c", "")}
    assert driven.nodes() == {"p": "n0"} and allocated_devices(driven, "c") == ["g0"]


@pytest.mark.parametrize("how", ["by the allocation", "by the pod"])
def test_interrupted_start_is_completed_on_its_intended_node(how: str) -> None:
    node, nominated = ("n1", {}) if how == "by the allocation" else ("", {"nominatedNodeName": "n1"})
    claim = allocated_claim(make.claim("c", make.exactly("gpu")), "g1", pods=("p",), node=node)
    driven = cluster(claim, pending_pod(make.pod("p", claims=GPU), "p", **nominated)).open(FIRST_FIT)
    assert driven.nodes() == {"p": "n1"} and allocated_devices(driven, "c") == ["g1"] and not driven.cluster.released


def test_start_without_an_intended_node_is_completed_where_its_devices_serve() -> None:
    claim = allocated_claim(make.claim("c", make.exactly("gpu")), "g1", pods=("p",))
    full = on_node(make.pod("full", cpu="4", schedulerName="another-scheduler"), "n0")
    driven = cluster(claim, pending_pod(make.pod("p", claims=GPU), "p"), full).open(FIRST_FIT)
    assert (
        driven.nodes() == {"full": "n0", "p": "n1"} and allocated_devices(driven, "c") == ["g1"] and not driven.cluster.released
    )


@pytest.mark.parametrize("why", ["node deleted", "node full"])
def test_interrupted_start_that_cannot_be_completed_is_undone(why: str) -> None:
    node = {"node deleted": "n9", "node full": "n1"}[why]
    claim = allocated_claim(make.claim("c", make.exactly("gpu")), "g1", pods=("p",), node=node)
    other = on_node(make.pod("other", cpu="4", schedulerName="another-scheduler"), "n1")
    driven = cluster(claim, pending_pod(make.pod("p", claims=GPU), "p"), other).open(FIRST_FIT)
    assert set(driven.cluster.released) == {("default/c", "p")}
    assert driven.nodes() == {"other": "n1", "p": "n0"} and allocated_devices(driven, "c") == ["g0"]


@pytest.mark.parametrize(("delay", "released"), [(3600 * SECOND, False), (0, True)])
def test_start_of_another_process_may_complete_before_its_reservation_is_released(
    monkeypatch: pytest.MonkeyPatch, delay: int, released: bool
) -> None:
    """The process reserved the claim after this one saw the pod, and is about to bind it."""
    monkeypatch.setattr(pod_runs, "RELEASE_DELAY", delay)
    claim, full = make.claim("c", make.exactly("gpu")), [make.pod(f"full{k}", cpu="4") for k in range(2)]
    driven = cluster(claim, *full, pending_pod(make.pod("p", cpu="4", claims=GPU), "p")).open(FIRST_FIT)
    assert driven.nodes() == {"full0": "n0", "full1": "n1"}
    uid = driven.cluster.get(ResourceClaim, "default/c").metadata.uid
    reserved = allocated_claim(claim, "g0", pods=("p",))
    driven.cluster.add({**reserved, "metadata": {**claim["metadata"], "uid": uid}})
    driven.cluster.remove(Pod, "default/full1")
    driven.settle()
    assert bool(driven.cluster.released) == released


def test_pod_with_a_node_becomes_a_run() -> None:
    driven = cluster(on_node(make.pod("p", cpu="3"), "n0"), make.pod("q", cpu="2")).open(FIRST_FIT)
    assert driven.nodes() == {"p": "n0", "q": "n1"}
    assert [driven.platform.table.name(run.job) for run in driven.platform.snapshot().runs()] == ["default/p", "default/q"]


def gang(name: str) -> dict[str, Any]:
    return make.pod(name, cpu="3", labels={LABEL: "gang", f"{LABEL}/min-available": "2"})


def test_partly_bound_gang_is_completed() -> None:
    driven = cluster(on_node(gang("a"), "n0"), gang("b")).open(FIRST_FIT)
    assert driven.nodes() == {"a": "n0", "b": "n1"} and not driven.cluster.stopped


def test_gang_that_stays_incomplete_is_evicted_after_its_limit() -> None:
    full = on_node(make.pod("full", cpu="4", schedulerName="another-scheduler"), "n1")
    driven = cluster(on_node(gang("a"), "n0"), gang("b"), full).open(FIRST_FIT, gang_limit=0.2)
    assert not driven.cluster.stopped
    driven.wait_for_pass()
    assert driven.cluster.stopped == [("default/a", "its gang was not complete within the time limit")]


def test_later_pass_request_survives_an_earlier_due_pass() -> None:
    full = on_node(make.pod("full", cpu="4", schedulerName="another-scheduler"), "n1")
    driven = cluster(on_node(gang("a"), "n0"), gang("b"), full).open(FIRST_FIT, gang_limit=100.0)
    driven.platform.clock.request_pass(0)
    assert driven.platform.batch([]) is not None and driven.platform.clock.seconds_left > 50


def test_gang_that_was_complete_is_not_evicted() -> None:
    driven = cluster(on_node(gang("a"), "n0"), on_node(gang("b"), "n1")).open(FIRST_FIT, gang_limit=0.0)
    driven.cluster.remove(Pod, "default/b")
    driven.cluster.add(make.pod("full", cpu="4"))
    driven.cluster.add(gang("b") | {"spec": {**gang("b")["spec"], "nodeSelector": {"no": "where"}}})
    driven.settle()
    assert not driven.cluster.stopped


def test_doubly_allocated_device_is_released_by_the_claim_without_a_bound_pod() -> None:
    first = allocated_claim(make.claim("c", make.exactly("gpu")), "g0", pods=("a",), when="20")
    second = allocated_claim(make.claim("d", make.exactly("gpu")), "g0", pods=("b",), when="10", node="n9")
    bound = on_node(pending_pod(make.pod("a", claims=GPU), "a"), "n0")
    waits = pending_pod(make.pod("b", claims={"g": {"resourceClaimName": "d"}}), "b")
    driven = cluster(first, second, bound, waits).open(FIRST_FIT)
    assert ("default/d", "b") in driven.cluster.released and not driven.cluster.stopped
    assert allocated_devices(driven, "c") == ["g0"] and allocated_devices(driven, "d") == ["g1"]


def test_later_of_two_bound_claims_on_one_device_is_evicted() -> None:
    first = allocated_claim(make.claim("c", make.exactly("gpu")), "g0", pods=("a",), when="20")
    second = allocated_claim(make.claim("d", make.exactly("gpu")), "g0", pods=("b",), when="10")
    pods = [on_node(pending_pod(make.pod("a", claims=GPU), "a"), "n0")]
    pods.append(on_node(pending_pod(make.pod("b", claims={"g": {"resourceClaimName": "d"}}), "b"), "n1"))
    driven = cluster(first, second, *pods).open(FIRST_FIT)
    assert driven.cluster.stopped == [("default/a", "a device is allocated to two claims")]


def test_runs_of_a_deleted_node_are_kept_until_it_returns() -> None:
    driven = cluster(make.pod("p", cpu="3")).open(FIRST_FIT)
    node = driven.cluster.get(Node, "n0")
    driven.cluster.remove(Node, "n0")
    driven.cluster.add(make.pod("q", cpu="3"))
    driven.settle()
    assert driven.nodes() == {"p": "n0", "q": "n1"}
    driven.cluster.add(make.pod("r", cpu="3"))
    driven.cluster.put(node)
    driven.settle()
    assert "r" not in driven.nodes(), "the node's old pod still counts"
    driven.cluster.remove(Pod, "default/p")
    assert driven.settle().nodes() == {"q": "n1", "r": "n0"}


def test_pod_is_not_bound_to_a_node_deleted_in_the_meantime() -> None:
    """The API server would accept the binding, so nothing is written."""
    outcomes: list[Bound | BindFailed] = []
    writer = ApiWriter(None, lambda: None)
    binder = Binder(writer, Reservations(writer), outcomes.append)
    binder.deleted_nodes.add("n9")
    asyncio.run(binder.start(7, [PodStart(Pod(metadata=Meta(name="p", namespace="default")), "n9")]))
    assert outcomes == [BindFailed(7, "node n9 was deleted")]


def test_runs_of_a_deleted_node_are_lost() -> None:
    driven = cluster(make.pod("p", cpu="3")).open(FIRST_FIT)
    driven.cluster.remove(Node, "n0")
    driven.settle()
    driven.cluster.remove(Pod, "default/p")
    batch = driven.platform.batch([driven.cluster.events.get()])
    assert [event.outcome for event in batch.events if isinstance(event, Ended)] == [Outcome.LOST]


def test_pod_on_an_unknown_node_is_adopted_once_the_node_appears() -> None:
    driven = cluster(on_node(make.pod("p", cpu="3"), "n2"), on_node(make.pod("full", cpu="4"), "n0")).open(FIRST_FIT)
    driven.cluster.add(make.pod("q", cpu="3"))
    driven.cluster.add(make.pod("r", cpu="3"))
    driven.cluster.add(make.node("n2", cpu="4"))
    assert driven.settle().nodes() == {"p": "n2", "full": "n0", "q": "n1"}


def test_devices_of_a_deleted_slice_are_unavailable_until_it_returns() -> None:
    kube = cluster()
    driven = kube.open(FIRST_FIT)
    slice = kube.get(ResourceSlice, "gpu-example-all")
    kube.remove(ResourceSlice, "gpu-example-all")
    kube.add(make.claim("c", make.exactly("gpu")))
    kube.add(make.pod("p", claims=GPU))
    assert driven.settle().nodes() == {}
    kube.put(slice)
    assert driven.settle().nodes() == {"p": "n0"} and allocated_devices(driven, "c") == ["g0"]


def test_run_stopped_by_a_policy_ends_as_stopped() -> None:
    driven = cluster(make.pod("p")).open(FIRST_FIT)
    assert driven.platform.runs.stop(0, "for a test") == "" and driven.cluster.stopped == [("default/p", "for a test")]
    driven.cluster.finish("default/p")
    batch = driven.platform.batch([driven.cluster.events.get()])
    assert [event.outcome for event in batch.events if isinstance(event, Ended)] == [Outcome.STOPPED]
    assert driven.platform.runs.stop(0, "again") == "the run has ended"


@pytest.mark.parametrize("hours", [-100_000, 1])
def test_wrong_server_clock_gives_no_negative_waits(hours: int) -> None:
    """No job has waited for less than zero seconds, and a snapshot can be written."""
    pod = make.pod("p", cpu="4")
    pod["metadata"]["creationTimestamp"] = (datetime.now(UTC) + timedelta(hours=hours)).strftime("%Y-%m-%dT%H:%M:%SZ")
    driven = cluster(pod, make.pod("q", cpu="4"), make.pod("r", cpu="4")).open(FIRST_FIT)
    snapshot = driven.platform.snapshot()
    assert (snapshot.table.submit <= snapshot.now).all()
    assert len(driven.nodes()) == 2 and ("p" in driven.nodes()) == (hours < 0)


def test_setting_the_system_clock_back_does_not_stop_the_live_clock() -> None:
    wall, steady = [100 * SECOND], [5 * SECOND]
    clock = LiveClock(40 * SECOND, wall=lambda: wall[0], steady=lambda: steady[0])
    assert clock.tick() == 60 * SECOND
    wall[0], steady[0] = 0, 7 * SECOND
    clock.request_pass(SECOND)
    assert clock.seconds_left == 1.0 and not clock.pop_due()
    assert clock.tick() == 62 * SECOND and clock.pop_due() and clock.seconds_left is None


def test_snapshot_of_a_cluster_has_no_negative_times(tmp_path: Any) -> None:
    kube = cluster(on_node(make.pod("p", cpu="3"), "n0"), make.pod("q", cpu="4"), make.pod("r", cpu="4"))
    view = LiveView.of(kube.open(FIRST_FIT).platform)
    write_state(view.state("a test"), tmp_path / "state")
    state = read_state(tmp_path / "state")
    assert len(state.running) == 2 and [state.jobs.name(row) for row in state.waiting.tolist()] == ["default/r"]


@pytest.mark.parametrize("room", [True, False])
def test_gang_with_some_devices_allocated_is_resumed_or_released(room: bool) -> None:
    """The pod with an allocated claim keeps its intended node; the other one goes to any node that fits, if there is one."""
    labels = {LABEL: "gang", f"{LABEL}/min-available": "2"}
    pods = [
        pending_pod(make.pod(name, cpu="3", labels=labels, claims={"g": {"resourceClaimName": name}}), name) for name in "ab"
    ]
    claims = [
        allocated_claim(make.claim("a", make.exactly("gpu")), "g1", pods=("a",), node="n1"),
        make.claim("b", make.exactly("gpu")),
    ]
    other = on_node(make.pod("other", cpu="1" if room else "2", schedulerName="another-scheduler"), "n0")
    driven = cluster(*claims, *pods, other).open(FIRST_FIT)
    if room:
        assert driven.nodes() == {"a": "n1", "b": "n0", "other": "n0"} and not driven.cluster.released
        assert allocated_devices(driven, "a") == ["g1"] and allocated_devices(driven, "b") == ["g0"]
    else:
        assert driven.nodes() == {"other": "n0"} and set(driven.cluster.released) == {("default/a", "a")}
        assert allocated_devices(driven, "a") == [] == allocated_devices(driven, "b")


def test_run_ends_when_its_devices_are_released_too() -> None:
    """Between the end of a pod and the release of its claim, a job that needs both node and device is not overtaken."""
    kube = cluster(
        make.claim("c", make.exactly("gpu")), make.pod("p", cpu="4", claims=GPU), make.pod("full", cpu="4"), devices=1
    )
    driven = kube.open(FIRST_FIT)
    kube.add(make.claim("d", make.exactly("gpu")))
    kube.add(make.pod("q", cpu="4", claims={"g": {"resourceClaimName": "d"}}))
    kube.add(make.pod("small", cpu="4"))
    assert driven.settle().nodes().keys() == {"p", "full"}
    kube.finish("default/p")
    assert driven.settle().nodes().keys() == {"p", "full"}
    kube.release_claim(kube.get(ResourceClaim, "default/c"), kube.get(Pod, "default/p").metadata.uid)
    assert driven.settle().nodes().keys() == {"p", "full", "q"} and allocated_devices(driven, "d") == ["g0"]


def test_bound_pods_cause_no_pass() -> None:
    driven = cluster(make.pod("p")).open(FIRST_FIT)
    before = driven.loop.result.passes
    driven.cluster.events.put(Bound(0))
    assert driven.settle().loop.result.passes == before


def test_start_that_did_not_fit_is_retried_when_resources_are_released() -> None:
    """Shares of a device that no policy models are checked when a job starts."""
    kube = FakeKubernetes(make.node("n0"), make.device_class("part", "part.example"))
    kube.add(
        make.devices(
            "part.example", "all", {"name": "d0", "allowMultipleAllocations": True, "capacity": {"slots": {"value": "1"}}}
        )
    )
    for name in "ab":
        kube.add(make.claim(name, make.exactly("part", capacity={"requests": {"slots": "1"}})))
        kube.add(make.pod(name, claims={"p": {"resourceClaimName": name}}))
    driven = kube.open(FIRST_FIT)
    assert driven.nodes() == {"a": "n0"} and driven.platform.clock.seconds_left > 30
    kube.finish("default/a")
    kube.release_claim(kube.get(ResourceClaim, "default/a"), kube.get(Pod, "default/a").metadata.uid)
    assert driven.settle().nodes() == {"a": "n0", "b": "n0"}
