"""Rows of jobs are numbered anew while things happen: whoever looks sees each event with the name of its job."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import poolwise.live.kubernetes.platform as platform_module
from poolwise.live.kubernetes.objects import Node, Pod
from poolwise.live.kubernetes.renumbering import renumbered_once
from poolwise.live.logs import LoggedPasses
from poolwise.live.platform import Pass
from poolwise.model import Arrival, Ended, Outcome, Renumbered, Wake, Withdrawn
from poolwise.policies.placement.nodes.placement import FirstNodes
from poolwise.schedulers.list import ListScheduler
from tests.helpers.played_cluster import Driven, PlayedCluster
from tests.live.kubernetes import objects as make

FIRST_FIT = ListScheduler(placement=FirstNodes())


def take(driven: Driven, seen: list[tuple[str, str]]) -> None:
    """Take all that was told, as `drive` does it, and note the names that an observer reads."""
    while not driven.cluster.told.empty():
        told = [driven.cluster.told.get() for _ in range(driven.cluster.told.qsize())]
        batch, before = driven.platform.batch(told), driven.loop.queue.table
        if batch is None:
            continue
        outcome = driven.loop.apply_events(batch)
        done = Pass(batch, outcome, driven.loop, before, driven.platform.snapshot(), 0.0, 0.0)
        LoggedPasses().observe_pass(done)
        seen += [
            (type(event).__name__, table.name(event.job))
            for event, table in done.events()
            if isinstance(event, Arrival | Ended | Withdrawn)
        ]


def test_an_end_is_told_by_its_name_when_rows_are_numbered_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where so many jobs are over that the table is made anew: the last row that ends is one that is there no longer."""
    monkeypatch.setattr(platform_module, "SPARE_ROWS", 4)
    made, seen = PlayedCluster(make.node("n0")), list[tuple[str, str]]()
    driven = made.open(FIRST_FIT)
    for k in range(60):
        made.add(make.pod(f"p{k:02d}"))
        take(driven, seen)
        made.finish(f"default/p{k:02d}")
        take(driven, seen)
    expected = [(kind, f"default/p{k:02d}") for k in range(60) for kind in ("Arrival", "Ended")]
    assert seen == expected and driven.platform.state.table.edition > 5


def test_pods_that_come_while_there_is_no_node_start_when_there_is_one() -> None:
    """The machine is built anew several times before the loop is told of any of it."""
    made, seen = PlayedCluster(make.node("n0"), make.pod("a")), list[tuple[str, str]]()
    driven = made.open(FIRST_FIT)
    made.remove(Node, "n0")
    take(driven, seen)
    for name in ("b", "c"):
        made.add(make.pod(name))
        take(driven, seen)
    made.remove(Pod, "default/a")
    take(driven, seen)
    made.remove(Pod, "default/b")
    take(driven, seen)
    for k in (2, 1):
        made.add(make.node(f"n{k}"))
        take(driven, seen)
    assert driven.nodes() == {"c": "n2"}


def test_what_is_asked_first_while_there_is_no_node_is_looked_after_when_there_is_one() -> None:
    made, seen = PlayedCluster(make.node("n0")), list[tuple[str, str]]()
    driven = made.open(FIRST_FIT)
    made.remove(Node, "n0")
    take(driven, seen)
    made.add(make.pod("a", resources={"example.com/x": "2"}))
    take(driven, seen)
    made.add(make.node("n1", resources={"example.com/x": "4"}))
    take(driven, seen)
    assert driven.platform.state.table.requests["example.com/x"].tolist() == [2]
    assert driven.nodes() == {"a": "n1"}


@settings(max_examples=150, deadline=None)
@given(st.integers(0, 2**32))
def test_whatever_comes_and_goes_what_waits_starts_in_the_end(seed: int) -> None:
    """Nodes and pods come and go in any order; each batch of news is taken, or several together."""
    draw = random.Random(seed)
    made, seen = PlayedCluster(make.node("n0")), list[tuple[str, str]]()
    driven = made.open(FIRST_FIT)
    nodes, pods, removed = {"n0"}, list[str](), set[str]()
    for step in range(30):
        match draw.randrange(6):
            case 0:
                made.add(make.node(f"n{step}"))
                nodes.add(f"n{step}")
            case 1 | 2 if nodes:
                name = draw.choice(sorted(nodes))
                nodes.discard(name)
                made.remove(Node, name)
            case 3 if pods:
                name = pods.pop(draw.randrange(len(pods)))
                removed.add(name)
                made.remove(Pod, f"default/{name}")
            case _:
                pods.append(f"p{step}")
                made.add(make.pod(f"p{step}", cpu="12" if draw.random() < 0.5 else "3"))
        if draw.random() < 0.7:
            take(driven, seen)
    for k in range(40):
        made.add(make.node(f"z{k:02d}"))
    take(driven, seen)
    take(driven, seen)
    assert set(pods) <= driven.nodes().keys() and not (removed & driven.nodes().keys())
    assert {name for _, name in seen} <= {f"default/p{k}" for k in range(30)}


def test_events_of_two_numberings() -> None:
    """Told: rows 0 to 3. Then 1 and 3 stay; one comes and goes between; run 5 of the job that was told as row 3 ends."""
    end = Ended(5, 1, (0,), Outcome.FINISHED)
    events = [
        Withdrawn(0),
        Renumbered({1: 0, 3: 1}),
        Arrival(2),
        Arrival(3),
        end,
        Withdrawn(2),
        Renumbered({0: 0, 3: 1}),
        Wake(),
    ]
    assert renumbered_once(events) == [
        Withdrawn(0),
        Ended(5, 3, (0,), Outcome.FINISHED),
        Renumbered({1: 0}),
        Arrival(1),
        Wake(),
    ]
    assert renumbered_once(events[:1]) == events[:1]
