"""Nodes and devices come, change and go while a scheduler is at work: it goes on with what there is."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from poolwise.cli.live import named_scheduler
from poolwise.errors import PoolwiseError
from poolwise.interfaces import Scheduler
from poolwise.live.kubernetes import state
from poolwise.live.kubernetes.objects import Node, Pod, ResourceClaim, ResourceSlice
from poolwise.live.kubernetes.watch_client import Stopped
from poolwise.live.wait_reasons import WaitReasons
from poolwise.loop import Loop
from poolwise.policies.backfill.easy import Easy
from poolwise.policies.order.priorities import FCFS
from poolwise.policies.placement.devices.pooled import Pooled
from poolwise.policies.placement.nodes.placement import FirstNodes
from poolwise.policies.placement.nvme.first_fit import NvmeFirstFit
from poolwise.schedulers.composition import CompositionScheduler
from poolwise.schedulers.list import ListScheduler
from tests.helpers.played_cluster import Driven, PlayedCluster
from tests.live.kubernetes import objects as make

WHOLE = named_scheduler("catalog:fm-easy")
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


def cordon(made: PlayedCluster, name: str, unschedulable: bool = True) -> None:
    node = made.get(Node, name)
    made.put(msgspec.structs.replace(node, spec=msgspec.structs.replace(node.spec, unschedulable=unschedulable)))


def finish(made: PlayedCluster, name: str) -> None:
    """Let a pod succeed, and Kubernetes give its devices back."""
    uid = made.get(Pod, f"default/{name}").metadata.uid
    made.finish(f"default/{name}")
    for kind, key in list(made.objects):
        if kind is ResourceClaim and any(user.uid == uid for user in made.get(kind, key).status.reserved_for):
            made.release_claim(made.get(kind, key), uid)


@pytest.fixture
def left_out(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """Name -> why, of what was said to be left out."""
    said: dict[str, str] = {}
    monkeypatch.setattr(state, "say", lambda event, level, *, name, why: said.update({name: why}))
    return said


# Whole nodes


def test_a_node_of_another_size_is_left_out_and_named(left_out: dict[str, str]) -> None:
    made = PlayedCluster(*(make.node(f"n{k}") for k in range(2)))
    driven = made.open(WHOLE)
    made.add(make.node("a", cpu="2", memory="4Gi"))
    made.add(make.node("large", cpu="64", memory="512Gi"))
    for k in range(4):
        made.add(make.pod(f"p{k}", seconds=None))
    driven.settle()
    assert sorted(driven.nodes().values()) == ["large", "n0", "n1"] and list(left_out) == ["a"]


def test_nodes_of_one_kind_differ_a_little(left_out: dict[str, str]) -> None:
    """By what their systems keep for themselves; they count by the least."""
    made = PlayedCluster(*(make.node(f"n{k}", memory=f"{65000 + 10 * k}Mi") for k in range(3)), memory_pool("r0", rack="r0"))
    for k in range(4):
        made.add(make.pod(f"p{k}", seconds=None))
    driven = made.open(WHOLE)
    assert len(driven.nodes()) == 3 and not left_out and driven.platform.state.shape.machine.local_memory == 65000


def test_the_other_nodes_of_a_rack_are_used_while_one_is_cordoned() -> None:
    made = PlayedCluster(*(make.node(f"n{k}") for k in range(3)))
    driven = made.open(WHOLE)
    cordon(made, "n0")
    for k in range(3):
        made.add(make.pod(f"p{k}", seconds=None))
    driven.settle()
    assert sorted(driven.nodes().values()) == ["n1", "n2"] and not driven.loop.aside, "and policies know it"
    cordon(made, "n0", False)
    assert sorted(driven.settle().nodes().values()) == ["n0", "n1", "n2"]


def test_nodes_that_no_pod_may_have_do_not_say_what_is_common(left_out: dict[str, str]) -> None:
    """Such as those of the control plane."""
    taint = {"key": "node-role.kubernetes.io/control-plane", "effect": "NoSchedule"}
    made = PlayedCluster(*(make.node(f"c{k}", cpu="2", memory="4Gi", taints=[taint]) for k in range(3)), make.node("n0"))
    made.add(make.pod("p", memory="32Gi", seconds=None))
    assert made.open(WHOLE).nodes() == {"p": "n0"} and set(left_out) == {"c0", "c1", "c2"}


def test_a_cordoned_node_is_let_go_when_its_run_ends() -> None:
    made = PlayedCluster(*(make.node(f"n{k}") for k in range(3)))
    made.add(make.pod("old", seconds=None))
    driven = made.open(WHOLE)
    cordon(made, driven.nodes()["old"])
    for k in range(3):
        made.add(make.pod(f"p{k}", seconds=None))
    assert len(driven.settle().nodes()) == 3, "it and one on each of the others"
    finish(made, "old")
    assert len(driven.settle().nodes()) == 3


def test_who_tolerates_it_may_have_a_cordoned_node() -> None:
    made = PlayedCluster(make.node("n0"))
    made.add(make.pod("p", seconds=None))
    driven = made.open(WHOLE)
    finish(made, "p")
    cordon(made, "n0")
    made.add(make.pod("other", seconds=None))
    made.add(make.pod("tolerant", seconds=None, tolerations=[CORDONED]))
    driven.settle()
    assert {"p", "tolerant"} == set(driven.nodes())


def test_a_rack_has_one_pool_of_memory(left_out: dict[str, str]) -> None:
    made = PlayedCluster(make.node("n0"), make.node("n1", rack="r1"), memory_pool("small", rack="r0"))
    driven = made.open(WHOLE)
    made.add(memory_pool("large", "128Gi", rack="r0"))
    made.add(memory_pool("anywhere"))
    made.add(make.pod("p", seconds=None))
    assert set(driven.settle().nodes()) == {"p"}
    assert left_out == {
        "pool.example/small/pool": "its rack has another pool of memory",
        "pool.example/anywhere/pool": "it does not serve the nodes of one rack",
    }


# All schedulers


@pytest.mark.parametrize("name", SCHEDULERS)
def test_it_waits_for_the_first_node(name: str) -> None:
    made = PlayedCluster(make.pod("p", seconds=None))
    platform = made.platform(SCHEDULERS[name])
    assert not platform.has_nodes
    made.add(make.node("n1"))
    assert Driven(made, platform, SCHEDULERS[name]).nodes() == {"p": "n1"}


@pytest.mark.parametrize("name", SCHEDULERS)
def test_it_goes_on_when_all_nodes_were_gone(name: str) -> None:
    made = PlayedCluster(make.node("n1"), make.pod("p", seconds=None))
    driven = made.open(SCHEDULERS[name])
    made.remove(Node, "n1")
    made.remove(Pod, "default/p")
    made.add(make.pod("q", seconds=None))
    assert driven.settle().nodes() == {}
    made.add(make.node("n2"))
    assert driven.settle().nodes() == {"q": "n2"}


class Changing:
    """A cluster that changes by chance, and a scheduler at work on it."""

    def __init__(self, scheduler: Scheduler, random: Random) -> None:
        self.scheduler, self.random, self.count = scheduler, random, Counter[str]()
        classes = (make.device_class(kind, f"{kind}.example") for kind in ("gpu", "nvme", "pool"))
        self.made = PlayedCluster(*classes)
        self.nodes: list[str] = []
        self.slices: list[str] = []
        self.checked: set[str] = set()
        for _ in range(3):
            self.add_node()
        self.driven = self.made.open(scheduler)

    def new(self, kind: str) -> str:
        self.count[kind] += 1
        return f"{kind}{self.count[kind]}"

    def add_node(self) -> None:
        cpu, memory = self.random.choice(["4", "4", "8"]), self.random.choice(["64Gi", "64Gi", "65000Mi"])
        self.nodes.append(self.new("n"))
        self.made.add(make.node(self.nodes[-1], rack=self.random.choice(["r0", "r1"]), cpu=cpu, memory=memory))

    def add_slice(self) -> None:
        name, rack = self.new("s"), {"rack": self.random.choice(["r0", "r1"])}
        where: dict[str, Any] = self.random.choice([rack, {}, {"node": self.random.choice(self.nodes)} if self.nodes else rack])
        policy = {"default": "1Gi", "validRange": {"min": "1Gi"}}
        capacity = {name: {"value": "8Gi", "requestPolicy": policy} for name in ("bandwidth", "space")}
        shared = {"allowMultipleAllocations": True, "capacity": capacity}
        one = self.random.choice(
            [
                make.devices("gpu.example", name, {"name": "a"}, {"name": "b"}, **where),
                make.devices("nvme.example", name, *({"name": drive, **shared} for drive in "ab"), **where),
                memory_pool(name, **where),
            ]
        )
        self.made.add(one)
        self.slices.append(one["metadata"]["name"])

    def add_pod(self) -> None:
        name, more = self.new("p"), dict[str, Any]()
        kind, claims = self.random.choice(["", "gpu", "nvme", "pool"]), dict[str, Any]()
        if kind:
            asked = {"nvme": {"bandwidth": "2Gi", "space": "2Gi"}, "pool": {"memory": "4Gi"}}.get(kind)
            count = {"count": self.random.randint(1, 2)} if asked is None else {"capacity": {"requests": asked}}
            self.made.add(make.claim(name, make.exactly(kind, **count)))
            claims = {"d": {"resourceClaimName": name}}
        if self.random.random() < 0.15:
            more["tolerations"] = [CORDONED]
        seconds = self.random.choice([None, 5])
        self.made.add(make.pod(name, cpu=str(self.random.randint(1, 3)), seconds=seconds, claims=claims, **more))

    def step(self) -> None:
        chance = self.random.random()
        running = [name for name in self.driven.nodes() if self.made.get(Pod, f"default/{name}").status.phase == "Running"]
        if chance < 0.15:
            self.add_node()
        elif chance < 0.3:
            self.add_slice()
        elif chance < 0.4 and self.slices:
            self.made.remove(ResourceSlice, self.slices.pop(self.random.randrange(len(self.slices))))
        elif chance < 0.5 and self.nodes:
            self.made.remove(Node, self.nodes.pop(self.random.randrange(len(self.nodes))))
        elif chance < 0.6 and self.nodes:
            name = self.random.choice(self.nodes)
            cordon(self.made, name, not self.made.get(Node, name).spec.unschedulable)
        elif chance < 0.75 and running:
            finish(self.made, self.random.choice(sorted(running)))
        else:
            self.add_pod()
        self.driven.settle()
        self.check()

    def check(self) -> None:
        """Look at what was started since the last time, and at what is held; ask why the others wait."""
        platform, loop = self.driven.platform, self.driven.loop
        if platform.has_nodes and len(loop.queue):
            reasons = WaitReasons(self.scheduler, loop, platform.snapshot())
            assert all(said is None or said.text for said in map(reasons.of, loop.queue.jobs.tolist()))
        for name, node in self.driven.nodes().items():
            pod = self.made.get(Pod, f"default/{name}")
            if name not in self.checked:
                self.checked.add(name)
                assert node in self.nodes, f"{name} was started on {node}, which is gone"
                assert pod.spec.tolerations or not self.made.get(Node, node).spec.unschedulable, f"{node} is cordoned"
        if platform.state.view == "whole":
            pods = (self.made.get(Pod, f"default/{name}") for name in self.driven.nodes())
            assert max(Counter(pod.spec.node_name for pod in pods if not pod.over).values(), default=0) <= 1
        whole, parts = Counter[tuple[str, str]](), Counter[tuple[str, str]]()
        for (kind, _), claim in self.made.objects.items():
            if kind is ResourceClaim and claim.status.allocation is not None:
                for result in claim.status.allocation.devices.results:
                    (whole if result.consumed_capacity is None else parts)[result.pool, result.device] += 1
        assert all(count == 1 for count in whole.values()), f"a device twice: {whole}"
        assert all(count <= 16 for count in parts.values())


@pytest.mark.parametrize("name", SCHEDULERS)
@settings(max_examples=40, deadline=None)
@given(random=st.randoms(use_true_random=False))
def test_whatever_comes_and_goes_it_goes_on(name: str, random: Random) -> None:
    changing = Changing(SCHEDULERS[name], random)
    for _ in range(20):
        changing.step()


def test_a_link_that_fails_ends_the_run_at_once() -> None:
    """What was told before is taken in; then nothing more is waited for."""
    made = PlayedCluster(make.node("n0"))
    platform = made.platform(SCHEDULERS["nodes"])
    loop, events = Loop(platform, SCHEDULERS["nodes"]), platform.events()
    loop.apply_events(next(events))
    made.add(make.pod("p", seconds=None))
    made.told.put(Stopped("the API server is gone"))
    loop.apply_events(next(events))
    assert len(made.started) == 1
    with pytest.raises(PoolwiseError, match="the API server is gone"):
        next(events)
