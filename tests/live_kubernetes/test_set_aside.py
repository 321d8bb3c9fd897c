"""Pods that need devices that no policy models, such as a GPU model, are reported and do not block others."""

import itertools
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from poolwise import loop
from poolwise.live.kubernetes.objects.claim import ResourceClaim
from poolwise.live.kubernetes.objects.pod import Pod
from poolwise.live.kubernetes.platform import KubernetesPlatform, ShadowKubernetes
from poolwise.live.wait_reasons import WaitReasons
from poolwise.model import Changes, CommitResult, Start, WaitCause
from poolwise.policies.backfill.easy import Easy
from poolwise.policies.backfill.none import NoBackfill
from poolwise.policies.backfill.skip import Skip
from poolwise.policies.placement.nodes.placement import EmptiestNodes
from poolwise.schedulers.list import ListScheduler
from tests.helpers.played_cluster import FakeKubernetes
from tests.live.kubernetes import objects as make

STRICT = ListScheduler(backfill=NoBackfill(), placement=EmptiestNodes())
SECONDS = itertools.count()


def cluster(*models: str, cpu: str = "16") -> FakeKubernetes:
    """Nodes with devices, one per letter, which names the model: "aab" has two of model a and one of b."""
    nodes = (make.node(f"n{k}", cpu=cpu) for k in range(len(models)))
    kube = FakeKubernetes(make.device_class("gpu", "gpu.example"), *nodes)
    for k, letters in enumerate(models):
        devices = ({"name": f"g{i}", "attributes": {"model": {"string": letter}}} for i, letter in enumerate(letters))
        if letters:
            kube.add(make.devices("gpu.example", f"n{k}", *devices, node=f"n{k}"))
    return kube


def add_pod(kube: FakeKubernetes, name: str, model: str = "", count: int = 1, **more: Any) -> None:
    """Add a pod, younger than earlier ones, that claims devices of one model, or of any."""
    exactly: dict[str, Any] = {"count": count}
    if model:
        exactly["selectors"] = [{"cel": {"expression": f'device.attributes["gpu.example"].model == "{model}"'}}]
    kube.add(make.claim(name, make.exactly("gpu", **exactly)))
    manifest = make.pod(name, claims={"g": {"resourceClaimName": name}}, **{"seconds": None, **more})
    hour, second = divmod(next(SECONDS) % 40000, 3600)
    manifest["metadata"]["creationTimestamp"] = f"2026-11-22T{hour:02d}:{second // 60:02d}:{second % 60:02d}Z"
    kube.add(manifest)


@pytest.fixture
def all_queued(monkeypatch: pytest.MonkeyPatch) -> None:
    """Queue the pods whose devices do not exist too."""
    monkeypatch.setattr(KubernetesPlatform, "withholds_infeasible", False)


@pytest.mark.usefixtures("all_queued")
@pytest.mark.parametrize("scheduler", [STRICT, ListScheduler(backfill=Easy(), placement=EmptiestNodes())], ids=["fcfs", "easy"])
def test_pods_without_a_matching_model_do_not_block_others(scheduler: ListScheduler) -> None:
    kube = cluster("hh")
    for k in range(3):
        add_pod(kube, f"a{k}", "a")
    add_pod(kube, "h", "h")
    kube.binds_at_once = False
    driven = kube.open(scheduler)
    assert [pods[0].pod.metadata.name for _, pods in kube.started] == ["h"] and driven.loop.result.passes == 1
    assert {driven.platform.table.name(row) for row in driven.loop.aside} == {"default/a0", "default/a1", "default/a2"}


def test_pod_set_aside_starts_first_once_its_model_is_free() -> None:
    kube = cluster("h", "a")
    add_pod(kube, "first", "a")
    driven = kube.open(STRICT)
    for name, model in (("second", "a"), ("third", "a"), ("h", "h")):
        add_pod(kube, name, model)
    driven.settle()
    assert set(driven.nodes()) == {"first", "h"}
    kube.finish("default/first")
    kube.release_claim(kube.get(ResourceClaim, "default/first"), kube.get(Pod, "default/first").metadata.uid)
    driven.settle()
    assert set(driven.nodes()) == {"first", "h", "second"}


@pytest.mark.usefixtures("all_queued")
def test_wait_reason_of_a_pod_set_aside_names_the_devices() -> None:
    kube = cluster("h", "h")
    add_pod(kube, "p", "a")
    driven = kube.open(STRICT)
    (row,) = driven.loop.queue.jobs.tolist()
    reason = WaitReasons(STRICT, driven.loop, driven.platform.snapshot(), [row]).of(row)
    assert reason is not None and reason.reason.cause is WaitCause.ASIDE
    text = "node n0 has too few free devices of gpu that match the claim, and no other node fits"
    assert reason.text == text == driven.loop.aside[row]


def test_tainted_device_is_usable_by_a_tolerating_claim() -> None:
    """No claim tolerated the taint when the machine was built, and a pod that does not tolerate it is first in the queue."""
    kube = FakeKubernetes(make.device_class("gpu", "gpu.example"), make.node("n0", cpu="16"))
    taint = {"key": "sick", "effect": "NoSchedule"}
    kube.add(make.devices("gpu.example", "n0", {"name": "g", "taints": [taint]}, node="n0"))
    add_pod(kube, "waits")
    driven = kube.open(STRICT)
    kube.add(make.claim("t", make.exactly("gpu", tolerations=[{"key": "sick", "operator": "Exists"}])))
    kube.add(make.pod("t", seconds=None, claims={"g": {"resourceClaimName": "t"}}))
    assert set(driven.settle().nodes()) == {"t"}


@pytest.mark.usefixtures("all_queued")
def test_one_of_a_thousand_equal_pods_is_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    kube = cluster("h" * 8, "h" * 8, cpu="2000")
    calls, ask = [0], loop.Loop._ask

    def counting(self: loop.Loop, changes: Changes) -> CommitResult:
        calls[0] += 1
        return ask(self, changes)

    for k in range(1000):
        add_pod(kube, f"a{k:04d}", "a")
    add_pod(kube, "h", "h")
    monkeypatch.setattr(loop.Loop, "_ask", counting)
    driven = kube.open(STRICT)
    assert set(driven.nodes()) == {"h"} and len(driven.loop.aside) == 1000
    assert calls[0] <= 2 * driven.loop.result.passes


@pytest.mark.usefixtures("all_queued")
def test_pass_ends_if_all_pods_lack_different_devices() -> None:
    kube = cluster("h", cpu="2000")
    for k in range(40):
        add_pod(kube, f"a{k}", f"model{k}")
    driven = kube.open(STRICT)
    assert len(driven.loop.aside) == loop.ROUNDS and not driven.nodes()


def test_pod_waits_for_a_claim_that_is_being_allocated() -> None:
    """Another pod's start is allocating the shared claim, so the second pod keeps its place in the queue."""
    kube = cluster("h")
    kube.binds_at_once = False
    kube.add(make.claim("shared", make.exactly("gpu")))
    uses = {"g": {"resourceClaimName": "shared"}}
    for name in ("first", "second"):
        kube.add(make.pod(name, seconds=None, claims=uses))
    driven = kube.open(STRICT)
    assert len(kube.started) == 1 and len(driven.loop.queue) == 1 and not driven.loop.aside


def test_shadow_mode_sets_pods_aside_too() -> None:
    kube = cluster("", "h")
    for name in ("a", "h", "i"):
        add_pod(kube, name, name.replace("i", "h"))
    kube.add(make.devices("gpu.example", "rack", {"name": "x", "attributes": {"model": {"string": "x"}}}))  # not modeled
    driven = kube.open(STRICT, ShadowKubernetes)
    aside = {driven.platform.table.name(row) for row in driven.loop.aside}
    starts = [decision for decision, _ in driven.loop.result.refused if isinstance(decision, Start)]
    would = [driven.platform.table.name(start.job) for start in starts if start.job not in driven.loop.aside]
    assert aside == {"default/a", "default/i"} and set(would) == {"default/h"} and not kube.started
    assert not driven.platform.cache.usage.claims, "nothing stays assumed"


_pods = st.lists(st.tuples(st.sampled_from(["", "a", "b", "c"]), st.integers(1, 2), st.integers(1, 4)), min_size=1, max_size=12)


@settings(max_examples=60, deadline=None)
@example(["a", "b"], [("c", 1, 1), ("b", 1, 1)])
@example(
    ["aa", "aa", "aa", "ac"], [*[("", 1, 1)] * 3, ("", 1, 4), *[("", 1, 1)] * 2, ("c", 1, 1), ("", 1, 3)]
)  # a pod is moved
@given(st.lists(st.text("abc", max_size=4), min_size=1, max_size=4), _pods)
def test_no_pod_waits_while_a_node_fits_it(models: list[str], pods: list[tuple[str, int, int]]) -> None:
    """With a greedy policy, no node has cores and devices of the model for a pod that still waits in the end."""
    kube = cluster(*models, cpu="6")
    for k, (model, count, cpu) in enumerate(pods):
        add_pod(kube, f"p{k}", model, count, cpu=str(cpu))
    driven = kube.open(ListScheduler(backfill=Skip(), placement=EmptiestNodes()))
    while driven.platform.clock.seconds_left == 0.0:
        driven.wait_for_pass()
    cores, free = [6] * len(models), list(models)
    where = driven.nodes()
    for k, (_, _, cpu) in enumerate(pods):
        if (name := where.get(f"p{k}")) is not None:
            cores[int(name[1:])] -= cpu
            for result in kube.get(ResourceClaim, f"default/p{k}").status.allocation.devices.results:
                assert result.pool == name
                had = models[int(name[1:])][int(result.device[1:])]
                assert pods[k][0] in ("", had)
                free[int(name[1:])] = free[int(name[1:])].replace(had, "", 1)
    for k, (model, count, cpu) in enumerate(pods):
        fits = [n for n, left in enumerate(free) if cores[n] >= cpu and (left.count(model) if model else len(left)) >= count]
        assert f"p{k}" in where or not fits, f"p{k} fits node {fits[0]}"
