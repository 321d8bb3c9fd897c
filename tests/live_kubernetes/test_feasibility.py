"""Jobs that no node could run are reported and withheld from the queue until the cluster changes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from prometheus_client import Gauge

from poolwise.cli.live import named_scheduler
from poolwise.interfaces import Scheduler
from poolwise.live.kubernetes import feasibility, placement, pod_runs
from poolwise.live.kubernetes.metrics import KubernetesMetrics
from poolwise.live.kubernetes.objects.device import DeviceTaintRule
from poolwise.live.kubernetes.objects.node import Node
from poolwise.live.kubernetes.objects.pod import Pod
from poolwise.live.kubernetes.platform import ShadowKubernetes
from tests.helpers.played_cluster import DrivenPlatform, FakeKubernetes
from tests.live.kubernetes import objects as make
from tests.live.kubernetes.shipped_files import shipped_scheduler

GANG = "pod-group.scheduling.sigs.k8s.io"


@pytest.fixture
def shipped(tmp_path: Path) -> Scheduler:
    (tmp_path / "scheduler.toml").write_text(shipped_scheduler())
    return named_scheduler(str(tmp_path / "scheduler.toml"))


def cluster() -> FakeKubernetes:
    kube = FakeKubernetes(*(make.node(f"n{k}", cpu="16") for k in range(3)), make.device_class("gpu", "gpu.example"))
    kube.add(make.devices("gpu.example", "n0", {"name": "g0"}, {"name": "g1"}, node="n0"))
    return kube


def add_huge(kube: FakeKubernetes, kind: str, name: str = "huge") -> None:
    """Add a pod that no node could run."""
    more: dict[str, Any] = {"cpu": {"cpu": "64"}, "label": {"nodeSelector": {"zone": "x"}}}.get(kind, {})
    if kind == "devices":
        kube.add(make.claim(name, make.exactly("gpu", count=3)))
        more = {"claims": {"g": {"resourceClaimName": name}}}
    if kind == "resource":
        more = {"extended": {"example.com/card": "1"}}
    kube.add(make.pod(name, seconds=None, **more))


def value(metric: Gauge) -> float:
    (family,) = metric.collect()
    return float(family.samples[0].value)


REASONS = {
    "cpu": "no node is large enough: needs 64 cores, the largest has 16",
    "label": "no node matches the pod's node selector, affinity and tolerations",
    "devices": "node n1 has too few free devices of gpu that match the claim, even if none were in use",
    "resource": "no node is large enough: needs 1 example.com/card, the largest has 0",
}


@pytest.mark.parametrize("kind", REASONS)
def test_infeasible_pods_are_reported_and_not_tried(kind: str, shipped: Scheduler, monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[str] = []
    original = pod_runs.place
    monkeypatch.setattr(pod_runs, "place", lambda start, job, *more: tried.append(job.name) or original(start, job, *more))
    kube, metrics = cluster(), KubernetesMetrics()
    for k in range(3):
        add_huge(kube, kind, f"huge{k}")
    driven = kube.open(shipped, metrics=metrics)
    for k in range(3):
        kube.add(make.pod(f"p{k}", seconds=None))
        driven.settle()
    assert set(driven.nodes()) == {"p0", "p1", "p2"} == {name.removeprefix("default/") for name in tried}
    assert not len(driven.loop.queue) and value(metrics.infeasible_jobs) == 3
    while not kube.messages:
        driven.wait_for_pass()
    assert {key: kube.messages[key] for key in sorted(kube.messages)} == {f"default/huge{k}": REASONS[kind] for k in range(3)}


def relax(kube: FakeKubernetes, kind: str) -> None:
    """Change the cluster so that the pod of `add_huge` fits."""
    if kind == "cpu":
        kube.add(make.node("n3", cpu="64"))
    elif kind == "label":
        kube.add(make.node("n1", cpu="16", labels={"zone": "x"}))
    elif kind == "devices":
        kube.add(make.devices("gpu.example", "rack", *({"name": f"r{k}"} for k in range(3))))
    else:
        kube.add(make.node("n3", resources={"example.com/card": "2"}))


@pytest.mark.parametrize("kind", REASONS)
def test_infeasible_pod_starts_once_the_cluster_changes(kind: str, shipped: Scheduler) -> None:
    kube, metrics = cluster(), KubernetesMetrics()
    add_huge(kube, kind)
    driven = kube.open(shipped, metrics=metrics)
    assert not driven.nodes()
    relax(kube, kind)
    driven.settle()
    assert set(driven.nodes()) == {"huge"} and value(metrics.infeasible_jobs) == 0


def test_devices_in_use_do_not_make_a_pod_infeasible(shipped: Scheduler) -> None:
    kube = cluster()
    for name in ("first", "second"):
        kube.add(make.claim(name, make.exactly("gpu", count=2)))
        kube.add(make.pod(name, seconds=None, claims={"g": {"resourceClaimName": name}}))
    driven = kube.open(shipped)
    assert len(driven.nodes()) == 1 and len(driven.loop.queue) == 1


def test_pod_for_tainted_devices_starts_once_the_rule_is_deleted(shipped: Scheduler) -> None:
    kube = cluster()
    kube.add(make.taint_rule("broken", "sick", "NoSchedule", driver="gpu.example", device="g0"))
    kube.add(make.claim("both", make.exactly("gpu", count=2)))
    kube.add(make.pod("p", seconds=None, claims={"g": {"resourceClaimName": "both"}}))
    driven = kube.open(shipped)
    assert not len(driven.loop.queue)
    kube.remove(DeviceTaintRule, "broken")
    assert driven.settle().nodes() == {"p": "n0"}


def test_gang_with_a_pod_that_is_too_large_is_withheld_and_deleted(shipped: Scheduler) -> None:
    kube = cluster()
    for name, cpu in (("a", "64"), ("b", "1")):
        kube.add(make.pod(name, cpu=cpu, seconds=None, labels={GANG: "g", f"{GANG}/min-available": "2"}))
    driven = kube.open(shipped)
    assert not len(driven.loop.queue)
    while not kube.messages:
        driven.wait_for_pass()
    assert set(kube.messages) == {"default/a", "default/b"}
    for name in ("a", "b"):
        kube.remove(Pod, f"default/{name}")
    driven.settle()
    assert not driven.platform._feasibility.infeasible


def test_pods_wait_for_the_first_node(shipped: Scheduler) -> None:
    kube = cluster()
    platform = kube.platform(shipped)
    for k in range(3):
        kube.remove(Node, f"n{k}")
    driven = DrivenPlatform(kube, platform, shipped)
    kube.add(make.pod("p", seconds=None))
    assert not driven.settle().nodes()
    kube.add(make.node("n9"))
    assert driven.settle().nodes() == {"p": "n9"}


def test_number_of_tried_allocations_is_limited(shipped: Scheduler, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feasibility, "MAX_ALLOCATIONS", 1)
    kube = cluster()
    add_huge(kube, "devices")
    assert len(kube.open(shipped).loop.queue) == 1


def test_shadow_queues_all_pods(shipped: Scheduler) -> None:
    kube = cluster()
    add_huge(kube, "cpu")
    assert len(kube.open(shipped, ShadowKubernetes).loop.queue) == 1


@pytest.mark.parametrize("claims", [False, True])
def test_shipped_scheduler_moves_pods_to_nodes_that_their_constraints_allow(shipped: Scheduler, claims: bool) -> None:
    """The placement `pooled` does not model node selectors and taints."""
    kube = FakeKubernetes(make.node("n0", unschedulable=True), make.node("n1"), make.node("n2", labels={"zone": "x"}))
    kube.add(make.device_class("gpu", "gpu.example"))
    kube.add(make.devices("gpu.example", "all", {"name": "g0"}, {"name": "g1"}))
    pods: dict[str, dict[str, Any]] = {"any": {}, "selects": {"nodeSelector": {"zone": "x"}}}
    for name, more in pods.items():
        uses: dict[str, Any] = {"claims": {"g": {"resourceClaimName": name}}} if claims else {}
        kube.add(make.claim(name, make.exactly("gpu")))
        kube.add(make.pod(name, seconds=None, **uses, **more))
    nodes = kube.open(shipped).nodes()
    assert nodes["selects"] == "n2" and nodes["any"] in ("n1", "n2")


def test_one_of_many_equal_pods_whose_nodes_are_full_is_tried(shipped: Scheduler, monkeypatch: pytest.MonkeyPatch) -> None:
    kube = FakeKubernetes(make.node("n0", cpu="64"), make.node("n1", cpu="2", labels={"zone": "x"}))
    for k in range(200):
        kube.add(make.pod(f"p{k:03d}", cpu="1", seconds=None, nodeSelector={"zone": "x"}))
    driven = kube.open(shipped)
    assert set(driven.nodes().values()) == {"n1"} and len(driven.nodes()) == 2
    tried: list[str] = []
    original, before = placement._Placing._start_anywhere, driven.loop.result.passes

    def counting(self: placement._Placing, task: int, pod: Pod, *more: Any) -> Any:
        tried.append(pod.metadata.name)
        return original(self, task, pod, *more)

    monkeypatch.setattr(placement._Placing, "_start_anywhere", counting)
    kube.add(make.pod("other", seconds=None))
    assert driven.settle().nodes()["other"] == "n0"
    assert 0 < len(tried) <= driven.loop.result.passes - before
