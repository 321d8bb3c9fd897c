"""Rows of jobs that are gone are given to later jobs; observers see each event with the name of its job."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from poolwise.live.kubernetes.objects.node import Node
from poolwise.live.kubernetes.objects.pod import Pod
from poolwise.live.logs import PassLogger
from poolwise.live.platform import Pass
from poolwise.model import Arrival, Ended, JobWithdrawn, job_table
from poolwise.policies.placement.nodes.placement import FirstNodes
from poolwise.schedulers.list import ListScheduler
from tests.helpers.played_cluster import DrivenPlatform, FakeKubernetes
from tests.live.kubernetes import objects as make

FIRST_FIT = ListScheduler(placement=FirstNodes())


def process_events(driven: DrivenPlatform, seen: list[tuple[str, str]]) -> None:
    """Process queued events as `drive` does, and append the event names that an observer reads."""
    while not driven.cluster.events.empty():
        received = [driven.cluster.events.get() for _ in range(driven.cluster.events.qsize())]
        batch = driven.platform.batch(received)
        if batch is None:
            continue
        outcome = driven.loop.step(batch)
        done = Pass(batch, outcome, driven.loop, driven.platform.snapshot(), 0.0, 0.0)
        PassLogger().observe_pass(done)
        seen += [
            (type(event).__name__, done.snapshot.table.name(event.job))
            for event in batch.events
            if isinstance(event, Arrival | Ended | JobWithdrawn)
        ]


def test_events_are_reported_by_name_while_rows_are_recycled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows are recycled after so few finished jobs that the table never has more than a few."""
    monkeypatch.setattr(job_table, "SPARE_ROWS", 4)
    kube, seen = FakeKubernetes(make.node("n0")), list[tuple[str, str]]()
    driven = kube.open(FIRST_FIT)
    for k in range(60):
        kube.add(make.pod(f"p{k:02d}"))
        process_events(driven, seen)
        kube.finish(f"default/p{k:02d}")
        process_events(driven, seen)
    expected = [(kind, f"default/p{k:02d}") for k in range(60) for kind in ("Arrival", "Ended")]
    assert seen == expected and len(driven.platform.table) <= 6


def test_pods_submitted_without_nodes_start_on_the_first_node() -> None:
    """The machine is rebuilt several times before the loop receives any event."""
    kube, seen = FakeKubernetes(make.node("n0"), make.pod("a")), list[tuple[str, str]]()
    driven = kube.open(FIRST_FIT)
    kube.remove(Node, "n0")
    process_events(driven, seen)
    for name in ("b", "c"):
        kube.add(make.pod(name))
        process_events(driven, seen)
    kube.remove(Pod, "default/a")
    process_events(driven, seen)
    kube.remove(Pod, "default/b")
    process_events(driven, seen)
    for k in (2, 1):
        kube.add(make.node(f"n{k}"))
        process_events(driven, seen)
    assert driven.nodes() == {"c": "n2"}


def test_resource_first_requested_without_nodes_is_modeled_once_there_is_one() -> None:
    kube, seen = FakeKubernetes(make.node("n0")), list[tuple[str, str]]()
    driven = kube.open(FIRST_FIT)
    kube.remove(Node, "n0")
    process_events(driven, seen)
    kube.add(make.pod("a", resources={"example.com/x": "2"}))
    process_events(driven, seen)
    kube.add(make.node("n1", resources={"example.com/x": "4"}))
    process_events(driven, seen)
    assert driven.platform.state.table.requests["example.com/x"].tolist() == [2]
    assert driven.nodes() == {"a": "n1"}


@settings(max_examples=150, deadline=None)
@given(st.integers(0, 2**32))
def test_all_waiting_pods_start_eventually_under_random_changes(seed: int) -> None:
    """Nodes and pods come and go in random order; batches are processed singly or together."""
    draw = random.Random(seed)
    kube, seen = FakeKubernetes(make.node("n0")), list[tuple[str, str]]()
    driven = kube.open(FIRST_FIT)
    nodes, pods, removed = {"n0"}, list[str](), set[str]()
    for step in range(30):
        match draw.randrange(6):
            case 0:
                kube.add(make.node(f"n{step}"))
                nodes.add(f"n{step}")
            case 1 | 2 if nodes:
                name = draw.choice(sorted(nodes))
                nodes.discard(name)
                kube.remove(Node, name)
            case 3 if pods:
                name = pods.pop(draw.randrange(len(pods)))
                removed.add(name)
                kube.remove(Pod, f"default/{name}")
            case _:
                pods.append(f"p{step}")
                kube.add(make.pod(f"p{step}", cpu="12" if draw.random() < 0.5 else "3"))
        if draw.random() < 0.7:
            process_events(driven, seen)
    for k in range(40):
        kube.add(make.node(f"z{k:02d}"))
    process_events(driven, seen)
    process_events(driven, seen)
    assert set(pods) <= driven.nodes().keys() and not (removed & driven.nodes().keys())
    assert {name for _, name in seen} <= {f"default/p{k}" for k in range(30)}
