"""What is made of what another process left, of nodes and devices that vanish, and of wrong clocks: on a cluster in memory.

Each row of the table in `docs/explanation/live-kubernetes.md` is a test.
"""

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from poolwise.files.state import read_state, write_state
from poolwise.live.kubernetes.api_writer import ApiWriter
from poolwise.live.kubernetes.bind import Binder
from poolwise.live.kubernetes.claim_reservation import Reservations
from poolwise.live.kubernetes.clock import LiveClock
from poolwise.live.kubernetes.objects import Meta, Node, Pod, ResourceClaim, ResourceSlice
from poolwise.live.kubernetes.starts import Bound, NotBound, PodStart
from poolwise.live.platform import LiveView
from poolwise.model import Ended, Outcome
from poolwise.policies.placement.nodes.placement import FirstNodes
from poolwise.schedulers.list import ListScheduler
from poolwise.units import SECOND
from tests.helpers.played_cluster import Driven, PlayedCluster
from tests.live.kubernetes import objects as make

FIRST_FIT = ListScheduler(placement=FirstNodes())
LABEL = "pod-group.scheduling.sigs.k8s.io"
GPU = {"g": {"resourceClaimName": "c"}}


def cluster(*more: dict[str, Any], devices: int = 2, **options: Any) -> PlayedCluster:
    """Two nodes of 4 cores, and GPUs that both can use."""
    made = PlayedCluster(*(make.node(f"n{k}", cpu="4") for k in range(2)), make.device_class("gpu", "gpu.example"), **options)
    made.add(make.devices("gpu.example", "all", *({"name": f"g{k}"} for k in range(devices))))
    for one in more:
        made.add(one)
    return made


def with_devices(
    claim: dict[str, Any], *devices: str, pods: tuple[str, ...] = (), when: str = "10", node: str = ""
) -> dict[str, Any]:
    """A claim that has devices, and is reserved for pods (uid)."""
    results = [{"request": "device", "driver": "gpu.example", "pool": "all", "device": name} for name in devices]
    allocation: dict[str, Any] = {"devices": {"results": results}, "allocationTimestamp": f"2026-11-22T12:00:{when}Z"}
    if node:
        here = {"key": "metadata.name", "operator": "In", "values": [node]}
        allocation["nodeSelector"] = {"nodeSelectorTerms": [{"matchFields": [here]}]}
    users = [{"resource": "pods", "name": uid, "uid": uid} for uid in pods]
    return {**claim, "status": {"allocation": allocation, "reservedFor": users}}


def known(pod: dict[str, Any], uid: str, **status: Any) -> dict[str, Any]:
    return {**pod, "metadata": {**pod["metadata"], "uid": uid}, "status": {"phase": "Pending", **status}}


def on(pod: dict[str, Any], node: str) -> dict[str, Any]:
    return {**pod, "spec": {**pod["spec"], "nodeName": node}, "status": {"phase": "Running"}}


def has(driven: Driven, claim: str) -> list[str]:
    allocation = driven.cluster.get(ResourceClaim, f"default/{claim}").status.allocation
    return [] if allocation is None else [result.device for result in allocation.devices.results]


def test_a_claim_with_a_finalizer_only() -> None:
    claim = make.claim("c", make.exactly("gpu"))
    claim["metadata"]["finalizers"] = ["resource.kubernetes.io/delete-protection"]
    driven = cluster(claim, make.pod("p", claims=GPU)).open(FIRST_FIT)
    assert driven.nodes() == {"p": "n0"} and has(driven, "c") == ["g0"] and not driven.cluster.given_back


def test_devices_that_are_reserved_for_nobody_are_given_back() -> None:
    driven = cluster(with_devices(make.claim("c", make.exactly("gpu")), "g1"), make.pod("p", claims=GPU)).open(FIRST_FIT)
    assert set(driven.cluster.given_back) == {("default/c", "")}
    assert driven.nodes() == {"p": "n0"} and has(driven, "c") == ["g0"]


@pytest.mark.parametrize("how", ["by the allocation", "by the pod"])
def test_a_start_that_was_begun_is_finished_at_the_same_node(how: str) -> None:
    node, nominated = ("n1", {}) if how == "by the allocation" else ("", {"nominatedNodeName": "n1"})
    claim = with_devices(make.claim("c", make.exactly("gpu")), "g1", pods=("p",), node=node)
    driven = cluster(claim, known(make.pod("p", claims=GPU), "p", **nominated)).open(FIRST_FIT)
    assert driven.nodes() == {"p": "n1"} and has(driven, "c") == ["g1"] and not driven.cluster.given_back


def test_a_start_of_which_nothing_says_where_is_finished_where_its_devices_can_be_used() -> None:
    claim = with_devices(make.claim("c", make.exactly("gpu")), "g1", pods=("p",))
    full = on(make.pod("full", cpu="4", schedulerName="somebody-else"), "n0")
    driven = cluster(claim, known(make.pod("p", claims=GPU), "p"), full).open(FIRST_FIT)
    assert driven.nodes() == {"full": "n0", "p": "n1"} and has(driven, "c") == ["g1"] and not driven.cluster.given_back


@pytest.mark.parametrize("why", ["the node is gone", "the node is full"])
def test_a_start_that_cannot_be_finished_is_undone(why: str) -> None:
    node = {"the node is gone": "n9", "the node is full": "n1"}[why]
    claim = with_devices(make.claim("c", make.exactly("gpu")), "g1", pods=("p",), node=node)
    other = on(make.pod("other", cpu="4", schedulerName="somebody-else"), "n1")
    driven = cluster(claim, known(make.pod("p", claims=GPU), "p"), other).open(FIRST_FIT)
    assert set(driven.cluster.given_back) == {("default/c", "p")}
    assert driven.nodes() == {"other": "n1", "p": "n0"} and has(driven, "c") == ["g0"]


def test_a_pod_with_a_node_is_a_run() -> None:
    driven = cluster(on(make.pod("p", cpu="3"), "n0"), make.pod("q", cpu="2")).open(FIRST_FIT)
    assert driven.nodes() == {"p": "n0", "q": "n1"}
    assert [driven.platform.table.name(run.job) for run in driven.platform.snapshot().runs()] == ["default/p", "default/q"]


def gang(name: str) -> dict[str, Any]:
    return make.pod(name, cpu="3", labels={LABEL: "gang", f"{LABEL}/min-available": "2"})


def test_a_gang_of_which_a_part_has_nodes_is_completed() -> None:
    driven = cluster(on(gang("a"), "n0"), gang("b")).open(FIRST_FIT)
    assert driven.nodes() == {"a": "n0", "b": "n1"} and not driven.cluster.stopped


def test_a_gang_that_cannot_be_completed_is_evicted_after_its_limit() -> None:
    full = on(make.pod("full", cpu="4", schedulerName="somebody-else"), "n1")
    driven = cluster(on(gang("a"), "n0"), gang("b"), full).open(FIRST_FIT, gang_limit=0.2)
    assert not driven.cluster.stopped
    driven.later()
    if not driven.cluster.stopped:  # its limit counts from a moment later
        driven.later()
    assert driven.cluster.stopped == [("default/a", "its gang could not be completed in time")]


def test_a_pass_that_is_wanted_later_is_not_lost_where_one_is_due() -> None:
    full = on(make.pod("full", cpu="4", schedulerName="somebody-else"), "n1")
    driven = cluster(on(gang("a"), "n0"), gang("b"), full).open(FIRST_FIT, gang_limit=100.0)
    driven.platform.clock.retry(0)
    assert driven.platform.batch([]) is not None and driven.platform.clock.left > 50


def test_a_gang_that_was_whole_is_left_alone() -> None:
    driven = cluster(on(gang("a"), "n0"), on(gang("b"), "n1")).open(FIRST_FIT, gang_limit=0.0)
    driven.cluster.remove(Pod, "default/b")
    driven.cluster.add(make.pod("full", cpu="4"))
    driven.cluster.add(gang("b") | {"spec": {**gang("b")["spec"], "nodeSelector": {"no": "where"}}})
    driven.settle()
    assert not driven.cluster.stopped


def test_a_device_in_two_claims_is_taken_from_the_one_without_a_node() -> None:
    first = with_devices(make.claim("c", make.exactly("gpu")), "g0", pods=("a",), when="20")
    second = with_devices(make.claim("d", make.exactly("gpu")), "g0", pods=("b",), when="10", node="n9")
    bound = on(known(make.pod("a", claims=GPU), "a"), "n0")
    waits = known(make.pod("b", claims={"g": {"resourceClaimName": "d"}}), "b")
    driven = cluster(first, second, bound, waits).open(FIRST_FIT)
    assert ("default/d", "b") in driven.cluster.given_back and not driven.cluster.stopped
    assert has(driven, "c") == ["g0"] and has(driven, "d") == ["g1"]


def test_where_both_have_nodes_the_later_one_is_evicted() -> None:
    first = with_devices(make.claim("c", make.exactly("gpu")), "g0", pods=("a",), when="20")
    second = with_devices(make.claim("d", make.exactly("gpu")), "g0", pods=("b",), when="10")
    pods = [on(known(make.pod("a", claims=GPU), "a"), "n0")]
    pods.append(on(known(make.pod("b", claims={"g": {"resourceClaimName": "d"}}), "b"), "n1"))
    driven = cluster(first, second, *pods).open(FIRST_FIT)
    assert driven.cluster.stopped == [("default/a", "a device is in two claims")]


def test_a_node_that_vanishes_takes_its_runs_with_it_and_may_come_back() -> None:
    driven = cluster(make.pod("p", cpu="3")).open(FIRST_FIT)
    node = driven.cluster.get(Node, "n0")
    driven.cluster.remove(Node, "n0")
    driven.cluster.add(make.pod("q", cpu="3"))
    driven.settle()
    assert driven.nodes() == {"p": "n0", "q": "n1"}
    driven.cluster.add(make.pod("r", cpu="3"))
    driven.cluster.put(node)
    driven.settle()
    assert "r" not in driven.nodes(), "the pod that the node had is still counted there"
    driven.cluster.remove(Pod, "default/p")
    assert driven.settle().nodes() == {"q": "n1", "r": "n0"}


def test_nobody_is_bound_to_a_node_that_has_vanished_meanwhile() -> None:
    """The API server would do it; nothing is written."""
    told: list[Bound | NotBound] = []
    writer = ApiWriter(None, lambda: None)
    binder = Binder(writer, Reservations(writer), told.append)
    binder.gone.add("n9")
    asyncio.run(binder.start(7, [PodStart(Pod(metadata=Meta(name="p", namespace="default")), "n9")]))
    assert told == [NotBound(7, "node n9 is gone")]


def test_pods_of_a_node_that_is_gone_are_lost_runs() -> None:
    driven = cluster(make.pod("p", cpu="3")).open(FIRST_FIT)
    driven.cluster.remove(Node, "n0")
    driven.settle()
    driven.cluster.remove(Pod, "default/p")
    batch = driven.platform.batch([driven.cluster.told.get()])
    assert [event.outcome for event in batch.events if isinstance(event, Ended)] == [Outcome.LOST]


def test_a_pod_on_a_node_that_is_not_there_yet_is_no_job() -> None:
    driven = cluster(on(make.pod("p", cpu="3"), "n2"), on(make.pod("full", cpu="4"), "n0")).open(FIRST_FIT)
    driven.cluster.add(make.pod("q", cpu="3"))
    driven.cluster.add(make.pod("r", cpu="3"))
    driven.cluster.add(make.node("n2", cpu="4"))
    assert driven.settle().nodes() == {"p": "n2", "full": "n0", "q": "n1"}


def test_devices_of_a_slice_that_vanishes_are_not_given_and_come_back() -> None:
    made = cluster()
    driven = made.open(FIRST_FIT)
    slice = made.get(ResourceSlice, "gpu-example-all")
    made.remove(ResourceSlice, "gpu-example-all")
    made.add(make.claim("c", make.exactly("gpu")))
    made.add(make.pod("p", claims=GPU))
    assert driven.settle().nodes() == {}
    made.put(slice)
    assert driven.settle().nodes() == {"p": "n0"} and has(driven, "c") == ["g0"]


def test_runs_that_a_policy_stops_end_as_stopped() -> None:
    driven = cluster(make.pod("p")).open(FIRST_FIT)
    assert driven.platform.runs.stop(0, "for a test") == "" and driven.cluster.stopped == [("default/p", "for a test")]
    driven.cluster.finish("default/p")
    batch = driven.platform.batch([driven.cluster.told.get()])
    assert [event.outcome for event in batch.events if isinstance(event, Ended)] == [Outcome.STOPPED]
    assert driven.platform.runs.stop(0, "again") == "the run is over"


@pytest.mark.parametrize("hours", [-48, 1])
def test_a_servers_clock_that_is_wrong(hours: int) -> None:
    """Nobody has waited for less than nothing, and a snapshot can be written."""
    pod = make.pod("p", cpu="4")
    pod["metadata"]["creationTimestamp"] = (datetime.now(UTC) + timedelta(hours=hours)).strftime("%Y-%m-%dT%H:%M:%SZ")
    driven = cluster(pod, make.pod("q", cpu="4"), make.pod("r", cpu="4")).open(FIRST_FIT)
    snapshot = driven.platform.snapshot()
    assert (snapshot.table.submit <= snapshot.now).all()
    assert len(driven.nodes()) == 2 and ("p" in driven.nodes()) == (hours < 0)


def test_a_system_clock_that_is_set_back_does_not_stop_the_clock() -> None:
    wall, steady = [100 * SECOND], [5 * SECOND]
    clock = LiveClock(40 * SECOND, wall=lambda: wall[0], steady=lambda: steady[0])
    assert clock.tick() == 60 * SECOND
    wall[0], steady[0] = 0, 7 * SECOND
    clock.retry(SECOND)
    assert clock.left == 1.0 and not clock.ring()
    assert clock.tick() == 62 * SECOND and clock.ring() and clock.left is None


def test_a_snapshot_is_a_state_without_negative_times(tmp_path: Any) -> None:
    made = cluster(on(make.pod("p", cpu="3"), "n0"), make.pod("q", cpu="4"), make.pod("r", cpu="4"))
    view = LiveView.of(made.open(FIRST_FIT).platform)
    write_state(view.state("a test"), tmp_path / "state")
    state = read_state(tmp_path / "state")
    assert len(state.running) == 2 and [state.jobs.name(row) for row in state.waiting.tolist()] == ["default/r"]


@pytest.mark.parametrize("room", [True, False])
def test_a_gang_of_which_a_part_has_devices_is_gone_on_with(room: bool) -> None:
    """The pod whose claim has devices goes where it was meant to be; the other is put where there is room, if there is any."""
    labels = {LABEL: "gang", f"{LABEL}/min-available": "2"}
    pods = [known(make.pod(name, cpu="3", labels=labels, claims={"g": {"resourceClaimName": name}}), name) for name in "ab"]
    claims = [
        with_devices(make.claim("a", make.exactly("gpu")), "g1", pods=("a",), node="n1"),
        make.claim("b", make.exactly("gpu")),
    ]
    other = on(make.pod("other", cpu="1" if room else "2", schedulerName="somebody-else"), "n0")
    driven = cluster(*claims, *pods, other).open(FIRST_FIT)
    if room:
        assert driven.nodes() == {"a": "n1", "b": "n0", "other": "n0"} and not driven.cluster.given_back
        assert has(driven, "a") == ["g1"] and has(driven, "b") == ["g0"]
    else:
        assert driven.nodes() == {"other": "n0"} and set(driven.cluster.given_back) == {("default/a", "a")}
        assert has(driven, "a") == [] == has(driven, "b")


def test_a_run_ends_when_its_devices_are_given_back_too() -> None:
    """Where a pod is over and its claim is not, a job that needs both a node and the device is not overtaken."""
    made = cluster(
        make.claim("c", make.exactly("gpu")), make.pod("p", cpu="4", claims=GPU), make.pod("full", cpu="4"), devices=1
    )
    driven = made.open(FIRST_FIT)
    made.add(make.claim("d", make.exactly("gpu")))
    made.add(make.pod("q", cpu="4", claims={"g": {"resourceClaimName": "d"}}))
    made.add(make.pod("small", cpu="4"))
    assert driven.settle().nodes().keys() == {"p", "full"}
    made.finish("default/p")
    assert driven.settle().nodes().keys() == {"p", "full"}
    made.release_claim(made.get(ResourceClaim, "default/c"), made.get(Pod, "default/p").metadata.uid)
    assert driven.settle().nodes().keys() == {"p", "full", "q"} and has(driven, "d") == ["g0"]


def test_starts_that_become_real_are_no_reason_for_a_pass() -> None:
    driven = cluster(make.pod("p")).open(FIRST_FIT)
    before = driven.loop.result.passes
    driven.cluster.told.put(Bound(0))
    assert driven.settle().loop.result.passes == before


def test_a_start_that_did_not_fit_is_tried_again_when_something_is_given_back_and_not_all_the_time() -> None:
    """Shares of a device that no policy knows are checked when a job starts."""
    made = PlayedCluster(make.node("n0"), make.device_class("part", "part.example"))
    made.add(
        make.devices(
            "part.example", "all", {"name": "d0", "allowMultipleAllocations": True, "capacity": {"slots": {"value": "1"}}}
        )
    )
    for name in "ab":
        made.add(make.claim(name, make.exactly("part", capacity={"requests": {"slots": "1"}})))
        made.add(make.pod(name, claims={"p": {"resourceClaimName": name}}))
    driven = made.open(FIRST_FIT)
    assert driven.nodes() == {"a": "n0"} and driven.platform.clock.left > 30
    made.finish("default/a")
    made.release_claim(made.get(ResourceClaim, "default/a"), made.get(Pod, "default/a").metadata.uid)
    assert driven.settle().nodes() == {"a": "n0", "b": "n0"}
