"""Nodes and devices come, change and go during a run; the scheduler continues with the current ones."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from poolwise.cli.live import named_scheduler
from poolwise.errors import InputError, PoolwiseError
from poolwise.interfaces import Scheduler
from poolwise.live.kubernetes import state
from poolwise.live.kubernetes.machine import RACK_LABEL, read_layout
from poolwise.live.kubernetes.objects.claim import ResourceClaim
from poolwise.live.kubernetes.objects.device import ResourceSlice
from poolwise.live.kubernetes.objects.node import Node
from poolwise.live.kubernetes.objects.pod import Pod
from poolwise.live.kubernetes.watch_client import Stopped
from poolwise.live.wait_reasons import WaitReasons
from poolwise.loop import Loop
from poolwise.policies.backfill.easy import Easy
from poolwise.policies.order.priorities import FCFS
from poolwise.policies.placement.devices.pooled import Pooled
from poolwise.policies.placement.nodes.placement import FirstNodes
from poolwise.policies.placement.nvme.policies import NvmeFirstFit
from poolwise.schedulers.composition import CompositionScheduler
from poolwise.schedulers.list import ListScheduler
from tests.helpers.played_cluster import DrivenPlatform, FakeKubernetes
from tests.live.kubernetes import objects as make

WHOLE = named_scheduler("catalog:fm-easy")
LABEL = "pod-group.scheduling.sigs.k8s.io"
CORDONED = {"key": "node.kubernetes.io/unschedulable", "operator": "Exists"}
SCHEDULERS: dict[str, Scheduler] = {
    "nodes": ListScheduler(backfill=Easy(), placement=FirstNodes()),
    "pooled": ListScheduler(backfill=Easy(), placement=Pooled()),
    "nvme": ListScheduler(backfill=Easy(), placement=NvmeFirstFit()),
    "composition": CompositionScheduler(FCFS(), NvmeFirstFit()),
    "flow": named_scheduler("catalog:drmaestro"),
    "whole nodes": WHOLE,
}


def memory_pool(name: str, size: str = "64Gi", **where: Any) -> dict[str, Any]:
    return make.devices("pool.example", name, make.memory_pool("pool", size), **where)


def cordon(kube: FakeKubernetes, name: str, unschedulable: bool = True) -> None:
    node = kube.get(Node, name)
    kube.put(msgspec.structs.replace(node, spec=msgspec.structs.replace(node.spec, unschedulable=unschedulable)))


def finish(kube: FakeKubernetes, name: str) -> None:
    """Let a pod succeed and release its claims, as Kubernetes does."""
    kube.finish(f"default/{name}")
    release(kube, kube.get(Pod, f"default/{name}").metadata.uid)


def release(kube: FakeKubernetes, uid: str) -> None:
    """Release the claims of a pod that has ended or was deleted."""
    for kind, key in list(kube.objects):
        if kind is ResourceClaim and any(user.uid == uid for user in kube.get(kind, key).status.reserved_for):
            kube.release_claim(kube.get(kind, key), uid)


@pytest.fixture
def excluded(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """Name -> reason of resources that were logged as excluded."""
    logged: dict[str, str] = {}
    monkeypatch.setattr(state, "log_event", lambda event, level, *, name, why: logged.update({name: why}))
    return logged


# Whole nodes


def test_smaller_node_is_excluded_and_logged(excluded: dict[str, str]) -> None:
    kube = FakeKubernetes(*(make.node(f"n{k}") for k in range(2)))
    driven = kube.open(WHOLE)
    kube.add(make.node("a", cpu="2", memory="4Gi"))
    kube.add(make.node("large", cpu="64", memory="512Gi"))
    for k in range(4):
        kube.add(make.pod(f"p{k}", seconds=None))
    driven.settle()
    assert sorted(driven.nodes().values()) == ["large", "n0", "n1"] and list(excluded) == ["a"]


def test_nodes_of_one_kind_may_differ_slightly(excluded: dict[str, str]) -> None:
    """They differ by what their systems reserve, and count with the smallest memory."""
    kube = FakeKubernetes(*(make.node(f"n{k}", memory=f"{65000 + 10 * k}Mi") for k in range(3)), memory_pool("r0", rack="r0"))
    for k in range(4):
        kube.add(make.pod(f"p{k}", seconds=None))
    driven = kube.open(WHOLE)
    assert len(driven.nodes()) == 3 and not excluded and driven.platform.state.mapping.machine.local_memory == 65000


def test_other_nodes_of_a_rack_are_used_while_one_is_cordoned() -> None:
    kube = FakeKubernetes(*(make.node(f"n{k}") for k in range(3)))
    driven = kube.open(WHOLE)
    cordon(kube, "n0")
    for k in range(3):
        kube.add(make.pod(f"p{k}", seconds=None))
    driven.settle()
    assert sorted(driven.nodes().values()) == ["n1", "n2"] and not driven.loop.aside, "policies see the cordoned node"
    cordon(kube, "n0", False)
    assert sorted(driven.settle().nodes().values()) == ["n0", "n1", "n2"]


def test_unschedulable_nodes_do_not_determine_the_node_size(excluded: dict[str, str]) -> None:
    """Such as those of the control plane."""
    taint = {"key": "node-role.kubernetes.io/control-plane", "effect": "NoSchedule"}
    kube = FakeKubernetes(*(make.node(f"c{k}", cpu="2", memory="4Gi", taints=[taint]) for k in range(3)), make.node("n0"))
    kube.add(make.pod("p", memory="32Gi", seconds=None))
    assert kube.open(WHOLE).nodes() == {"p": "n0"} and set(excluded) == {"c0", "c1", "c2"}


def test_cordoned_node_is_removed_when_its_run_ends() -> None:
    kube = FakeKubernetes(*(make.node(f"n{k}") for k in range(3)))
    kube.add(make.pod("old", seconds=None))
    driven = kube.open(WHOLE)
    cordon(kube, driven.nodes()["old"])
    for k in range(3):
        kube.add(make.pod(f"p{k}", seconds=None))
    assert len(driven.settle().nodes()) == 3, "the old pod, and one on each of the other nodes"
    finish(kube, "old")
    assert len(driven.settle().nodes()) == 3


def test_tolerating_pod_may_use_a_cordoned_node() -> None:
    kube = FakeKubernetes(make.node("n0"))
    kube.add(make.pod("p", seconds=None))
    driven = kube.open(WHOLE)
    finish(kube, "p")
    cordon(kube, "n0")
    kube.add(make.pod("other", seconds=None))
    kube.add(make.pod("tolerant", seconds=None, tolerations=[CORDONED]))
    driven.settle()
    assert {"p", "tolerant"} == set(driven.nodes())


def test_largest_memory_pool_of_a_rack_is_used(excluded: dict[str, str]) -> None:
    kube = FakeKubernetes(make.node("n0"), make.node("n1", rack="r1"), memory_pool("small", rack="r0"))
    driven = kube.open(WHOLE)
    kube.add(memory_pool("large", "128Gi", rack="r0"))
    kube.add(memory_pool("anywhere"))
    kube.add(make.pod("p", seconds=None))
    assert set(driven.settle().nodes()) == {"p"}
    assert excluded == {
        "pool.example/small/pool": "its rack already has a memory pool",
        "pool.example/anywhere/pool": "it does not serve exactly one rack",
    }


# All schedulers


@pytest.mark.parametrize("name", SCHEDULERS)
def test_run_waits_for_the_first_node(name: str) -> None:
    kube = FakeKubernetes(make.pod("p", seconds=None))
    platform = kube.platform(SCHEDULERS[name])
    assert not platform.has_nodes
    kube.add(make.node("n1"))
    assert DrivenPlatform(kube, platform, SCHEDULERS[name]).nodes() == {"p": "n1"}


@pytest.mark.parametrize("name", SCHEDULERS)
def test_run_continues_after_all_nodes_were_deleted(name: str) -> None:
    kube = FakeKubernetes(make.node("n1"), make.pod("p", seconds=None))
    driven = kube.open(SCHEDULERS[name])
    kube.remove(Node, "n1")
    kube.remove(Pod, "default/p")
    kube.add(make.pod("q", seconds=None))
    assert driven.settle().nodes() == {}
    kube.add(make.node("n2"))
    assert driven.settle().nodes() == {"q": "n2"}


class Changing:
    """A cluster that changes randomly, and a scheduler that runs on it."""

    def __init__(self, scheduler: Scheduler, random: Random) -> None:
        self.scheduler, self.random, self.count = scheduler, random, Counter[str]()
        classes = (make.device_class(kind, f"{kind}.example") for kind in ("gpu", "nvme", "pool"))
        self.kube = FakeKubernetes(*classes)
        self.nodes: list[str] = []
        self.slices: list[str] = []
        self.pods: dict[str, dict[str, Any]] = {}  # name -> manifest
        self.deleted: list[str] = []  # uid of deleted pods whose claims are still reserved
        self.checked: set[str] = set()
        for _ in range(3):
            self.add_node()
        self.driven = self.kube.open(scheduler)

    def new(self, kind: str) -> str:
        self.count[kind] += 1
        return f"{kind}{self.count[kind]}"

    def add_node(self) -> None:
        cpu, memory = self.random.choice(["4", "4", "8"]), self.random.choice(["64Gi", "64Gi", "65000Mi"])
        self.nodes.append(self.new("n"))
        self.kube.add(make.node(self.nodes[-1], rack=self.random.choice(["r0", "r1"]), cpu=cpu, memory=memory))

    def add_slice(self) -> None:
        name, rack = self.new("s"), {"rack": self.random.choice(["r0", "r1"])}
        where: dict[str, Any] = self.random.choice([rack, {}, {"node": self.random.choice(self.nodes)} if self.nodes else rack])
        policy = {"default": "1Gi", "validRange": {"min": "1Gi"}}
        capacity = {name: {"value": "8Gi", "requestPolicy": policy} for name in ("bandwidth", "space")}
        shared = {"allowMultipleAllocations": True, "capacity": capacity}
        published = self.random.choice(
            [
                make.devices("gpu.example", name, {"name": "a"}, {"name": "b"}, **where),
                make.devices("nvme.example", name, *({"name": drive, **shared} for drive in "ab"), **where),
                memory_pool(name, **where),
            ]
        )
        self.kube.add(published)
        self.slices.append(published["metadata"]["name"])

    def add_pod(self) -> None:
        name, more = self.new("p"), dict[str, Any]()
        kind, claims = self.random.choice(["", "gpu", "nvme", "pool"]), dict[str, Any]()
        if kind:
            amounts = {"nvme": {"bandwidth": "2Gi", "space": "2Gi"}, "pool": {"memory": "4Gi"}}.get(kind)
            count = {"count": self.random.randint(1, 2)} if amounts is None else {"capacity": {"requests": amounts}}
            self.kube.add(make.claim(name, make.exactly(kind, **count)))
            claims = {"d": {"resourceClaimName": name}}
        if self.random.random() < 0.15:
            more["tolerations"] = [CORDONED]
        if self.random.random() < 0.4:
            gang = f"g{self.random.randrange(4)}"
            more["labels"] = {LABEL: gang, f"{LABEL}/min-available": "2"}
        seconds = self.random.choice([None, 5])
        self.pods[name] = make.pod(name, cpu=str(self.random.randint(1, 3)), seconds=seconds, claims=claims, **more)
        self.kube.add(self.pods[name])

    def replace_pod(self) -> None:
        """Delete a pod and create one of the same name, perhaps of another scheduler; the watch may miss the deletion.

        The claims of the deleted pod are released now or later.
        """
        name = self.random.choice(sorted(self.pods))
        self.deleted.append(self.kube.get(Pod, f"default/{name}").metadata.uid)
        if self.random.random() < 0.5:
            release(self.kube, self.deleted.pop())
        if self.random.random() < 0.5:
            self.kube.remove(Pod, f"default/{name}")
        if self.random.random() < 0.3:
            self.driven.settle()
        manager = self.random.choice(["poolwise", "poolwise", "another"])
        self.kube.add({**self.pods[name], "spec": {**self.pods[name]["spec"], "schedulerName": manager}})

    def drain(self) -> None:
        """End all pods and check that nothing is held any more."""
        while self.deleted:
            release(self.kube, self.deleted.pop())
        for name in self.pods:
            finish(self.kube, name)
        self.driven.settle()
        state, platform = self.driven.platform.state, self.driven.platform
        assert not platform.runs.active and not state.run_pods and not state.run_pods_on and not state.related
        assert not platform.pod_jobs.by_pod and not state.held.any() and not platform.cache.usage.claims

    def step(self) -> None:
        chance = self.random.random()
        running = [name for name in self.driven.nodes() if self.kube.get(Pod, f"default/{name}").status.phase == "Running"]
        if chance < 0.15:
            self.add_node()
        elif chance < 0.3:
            self.add_slice()
        elif chance < 0.4 and self.slices:
            self.kube.remove(ResourceSlice, self.slices.pop(self.random.randrange(len(self.slices))))
        elif chance < 0.5 and self.nodes:
            self.kube.remove(Node, self.nodes.pop(self.random.randrange(len(self.nodes))))
        elif chance < 0.6 and self.nodes:
            name = self.random.choice(self.nodes)
            cordon(self.kube, name, not self.kube.get(Node, name).spec.unschedulable)
        elif chance < 0.7 and running:
            finish(self.kube, self.random.choice(sorted(running)))
        elif chance < 0.8 and self.pods:
            self.replace_pod()
        elif chance < 0.85 and self.deleted:
            release(self.kube, self.deleted.pop())
        else:
            self.add_pod()
        self.driven.settle()
        self.check()

    def check(self) -> None:
        """Check the pods that were started and the devices in use, and explain why the others wait."""
        platform, loop = self.driven.platform, self.driven.loop
        if platform.has_nodes and len(loop.queue):
            jobs = loop.queue.jobs.tolist()
            reasons = WaitReasons(self.scheduler, loop, platform.snapshot(), jobs)
            assert all(reason is None or reason.text for reason in map(reasons.of, jobs))
        pod_jobs = platform.pod_jobs
        for name in self.pods:
            pod = platform.cache.pending_pod(key := f"default/{name}")
            job = pod_jobs.by_pod.get(key)
            queued = pod is None or (job is not None and pod.metadata.uid in job.uids)
            assert queued or key in pod_jobs.messages.reasons, f"{name} is ignored"
        for name, node in self.driven.nodes().items():
            pod = self.kube.get(Pod, f"default/{name}")
            if pod.metadata.uid not in self.checked:
                self.checked.add(pod.metadata.uid)
                assert node in self.nodes, f"{name} was started on {node}, which is deleted"
                assert pod.spec.tolerations or not self.kube.get(Node, node).spec.unschedulable, f"{node} is cordoned"
        if platform.state.view == "whole":
            pods = (self.kube.get(Pod, f"default/{name}") for name in self.driven.nodes())
            assert max(Counter(pod.spec.node_name for pod in pods if not pod.terminated).values(), default=0) <= 1
        whole, parts = Counter[tuple[str, str]](), Counter[tuple[str, str]]()
        for (kind, _), claim in self.kube.objects.items():
            if kind is ResourceClaim and claim.status.allocation is not None:
                for result in claim.status.allocation.devices.results:
                    (whole if result.consumed_capacity is None else parts)[result.pool, result.device] += 1
        assert all(count == 1 for count in whole.values()), f"a device is allocated twice: {whole}"
        assert all(count <= 16 for count in parts.values())


@pytest.mark.parametrize("name", SCHEDULERS)
@settings(max_examples=40, deadline=None)
@given(random=st.randoms(use_true_random=False))
def test_random_changes_do_not_stop_the_run(name: str, random: Random) -> None:
    changing = Changing(SCHEDULERS[name], random)
    for _ in range(20):
        changing.step()
    changing.drain()


def test_failed_watch_client_ends_the_run() -> None:
    """Events received before the failure are processed; the run does not wait for more."""
    kube = FakeKubernetes(make.node("n0"))
    platform = kube.platform(SCHEDULERS["nodes"])
    loop, events = Loop(platform, SCHEDULERS["nodes"]), platform.events()
    loop.step(next(events))
    kube.add(make.pod("p", seconds=None))
    kube.events.put(Stopped("the API server is unreachable"))
    loop.step(next(events))
    assert len(kube.started) == 1
    with pytest.raises(PoolwiseError, match="the API server is unreachable"):
        next(events)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ('allocation = "half"', "allocation"),
        ('rack = "r"', "unknown key 'rack'"),
        ("link = 10", "is not a quantity"),
        ("version = 2", "unsupported version 2"),
        ("link =", "not valid TOML"),
    ],
)
def test_mistakes_in_the_overlay_file_are_reported_with_their_line(tmp_path: Path, line: str, words: str) -> None:
    file = tmp_path / "overlay.toml"
    file.write_text(f'rack_label = "example.com/rack"\n{line}\n')
    with pytest.raises(InputError, match=words) as caught:
        read_layout(file)
    assert (caught.value.file, caught.value.line) == (file, 2)


def test_overlay_file_is_read(tmp_path: Path) -> None:
    file = tmp_path / "overlay.toml"
    file.write_text('allocation = "whole"\nlink = "10 GB/s"\n')
    assert (read_layout(file).allocation, read_layout(file).link) == ("whole", 10_000)
    assert read_layout(None).rack_label == RACK_LABEL
