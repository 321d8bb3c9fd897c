"""Pods that lack what no policy counts, such as a model of GPU: they are told so, and hold up nobody."""

import itertools
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from poolwise import loop
from poolwise.live.kubernetes.objects import Pod, ResourceClaim
from poolwise.live.kubernetes.shadow_mode import ShadowKubernetes
from poolwise.live.wait_reasons import WaitReasons
from poolwise.model import Changes, CommitResult, Rule, Start
from poolwise.policies.backfill.easy import Easy
from poolwise.policies.backfill.none import NoBackfill
from poolwise.policies.backfill.skip import Skip
from poolwise.policies.placement.nodes.placement import EmptiestNodes
from poolwise.schedulers.list import ListScheduler
from tests.helpers.played_cluster import PlayedCluster
from tests.live.kubernetes import objects as make

STRICT = ListScheduler(backfill=NoBackfill(), placement=EmptiestNodes())
SECONDS = itertools.count()


def cluster(*models: str, cpu: str = "16") -> PlayedCluster:
    """Nodes with devices of the models that the letters are: "aab" has two of a and one of b."""
    nodes = (make.node(f"n{k}", cpu=cpu) for k in range(len(models)))
    made = PlayedCluster(make.device_class("gpu", "gpu.example"), *nodes)
    for k, letters in enumerate(models):
        devices = ({"name": f"g{i}", "attributes": {"model": {"string": letter}}} for i, letter in enumerate(letters))
        if letters:
            made.add(make.devices("gpu.example", f"n{k}", *devices, node=f"n{k}"))
    return made


def add_pod(made: PlayedCluster, name: str, model: str = "", count: int = 1, **more: Any) -> None:
    """A pod, younger than those before it, that claims devices of one model, or of any."""
    exactly: dict[str, Any] = {"count": count}
    if model:
        exactly["selectors"] = [{"cel": {"expression": f'device.attributes["gpu.example"].model == "{model}"'}}]
    made.add(make.claim(name, make.exactly("gpu", **exactly)))
    one = make.pod(name, claims={"g": {"resourceClaimName": name}}, **{"seconds": None, **more})
    hour, second = divmod(next(SECONDS) % 40000, 3600)
    one["metadata"]["creationTimestamp"] = f"2026-11-22T{hour:02d}:{second // 60:02d}:{second % 60:02d}Z"
    made.add(one)


@pytest.mark.parametrize("scheduler", [STRICT, ListScheduler(backfill=Easy(), placement=EmptiestNodes())], ids=["fcfs", "easy"])
def test_who_lacks_a_model_holds_up_nobody(scheduler: ListScheduler) -> None:
    made = cluster("hh")
    for k in range(3):
        add_pod(made, f"a{k}", "a")
    add_pod(made, "h", "h")
    made.binds = False
    driven = made.open(scheduler)
    assert [pods[0].pod.metadata.name for _, pods in made.started] == ["h"] and driven.loop.result.passes == 1
    assert {driven.platform.table.name(row) for row in driven.loop.aside} == {"default/a0", "default/a1", "default/a2"}


def test_who_lacks_a_model_starts_first_when_there_is_one() -> None:
    made = cluster("h", "a")
    add_pod(made, "first", "a")
    driven = made.open(STRICT)
    for name, model in (("second", "a"), ("third", "a"), ("h", "h")):
        add_pod(made, name, model)
    driven.settle()
    assert set(driven.nodes()) == {"first", "h"}
    made.finish("default/first")
    made.release_claim(made.get(ResourceClaim, "default/first"), made.get(Pod, "default/first").metadata.uid)
    driven.settle()
    assert set(driven.nodes()) == {"first", "h", "second"}


def test_it_is_told_what_it_lacks() -> None:
    made = cluster("h", "h")
    add_pod(made, "p", "a")
    driven = made.open(STRICT)
    (row,) = driven.loop.queue.jobs.tolist()
    said = WaitReasons(STRICT, driven.loop, driven.platform.snapshot()).of(row)
    assert said is not None and said.reason.rule is Rule.ASIDE
    text = "too few free devices of gpu that its claim accepts serve node n0, and no other node will do"
    assert said.text == text == driven.loop.aside[row]


def test_a_taint_that_a_claim_tolerates_is_no_obstacle_to_it() -> None:
    """Nobody tolerated it when the machine was built, and who does not stands before who does."""
    made = PlayedCluster(make.device_class("gpu", "gpu.example"), make.node("n0", cpu="16"))
    taint = {"key": "sick", "effect": "NoSchedule"}
    made.add(make.devices("gpu.example", "n0", {"name": "g", "taints": [taint]}, node="n0"))
    add_pod(made, "waits")
    driven = made.open(STRICT)
    made.add(make.claim("t", make.exactly("gpu", tolerations=[{"key": "sick", "operator": "Exists"}])))
    made.add(make.pod("t", seconds=None, claims={"g": {"resourceClaimName": "t"}}))
    assert set(driven.settle().nodes()) == {"t"}


def test_of_a_thousand_alike_one_is_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    made = cluster("h" * 8, "h" * 8, cpu="2000")
    asked, ask = [0], loop.Loop._ask

    def counted(self: loop.Loop, changes: Changes) -> CommitResult:
        asked[0] += 1
        return ask(self, changes)

    for k in range(1000):
        add_pod(made, f"a{k:04d}", "a")
    add_pod(made, "h", "h")
    monkeypatch.setattr(loop.Loop, "_ask", counted)
    driven = made.open(STRICT)
    assert set(driven.nodes()) == {"h"} and len(driven.loop.aside) == 1000
    assert asked[0] <= 2 * driven.loop.result.passes


def test_a_pass_ends_though_all_lack_something_else() -> None:
    made = cluster("h", cpu="2000")
    for k in range(40):
        add_pod(made, f"a{k}", f"model{k}")
    driven = made.open(STRICT)
    assert len(driven.loop.aside) == loop.ROUNDS and not driven.nodes()


def test_what_is_under_way_is_waited_for() -> None:
    """A claim that is being given devices for another pod: who comes to it keeps its place."""
    made = cluster("h")
    made.binds = False
    made.add(make.claim("shared", make.exactly("gpu")))
    uses = {"g": {"resourceClaimName": "shared"}}
    for name in ("first", "second"):
        made.add(make.pod(name, seconds=None, claims=uses))
    driven = made.open(STRICT)
    assert len(made.started) == 1 and len(driven.loop.queue) == 1 and not driven.loop.aside


def test_a_shadow_sets_aside_as_well() -> None:
    made = cluster("", "h")
    for name in ("a", "h", "i"):
        add_pod(made, name, name.replace("i", "h"))
    made.add(make.devices("gpu.example", "rack", {"name": "x", "attributes": {"model": {"string": "x"}}}))  # nothing is counted
    driven = made.open(STRICT, ShadowKubernetes)
    aside = {driven.platform.table.name(row) for row in driven.loop.aside}
    starts = [decision for decision, _ in driven.loop.result.refused if isinstance(decision, Start)]
    would = [driven.platform.table.name(start.job) for start in starts if start.job not in driven.loop.aside]
    assert aside == {"default/a", "default/i"} and set(would) == {"default/h"} and not made.started
    assert not driven.platform.mirror.usage.claims, "nothing is kept of what was tried"


_pods = st.lists(st.tuples(st.sampled_from(["", "a", "b", "c"]), st.integers(1, 2), st.integers(1, 4)), min_size=1, max_size=12)


@settings(max_examples=60, deadline=None)
@example(["a", "b"], [("c", 1, 1), ("b", 1, 1)])
@example(["aa", "aa", "aa", "ac"], [*[("", 1, 1)] * 3, ("", 1, 4), *[("", 1, 1)] * 2, ("c", 1, 1), ("", 1, 3)])  # it is moved
@given(st.lists(st.text("abc", max_size=4), min_size=1, max_size=4), _pods)
def test_nobody_waits_for_whom_there_is_room(models: list[str], pods: list[tuple[str, int, int]]) -> None:
    """With a greedy policy, for whoever waits in the end no node has cores and devices of the model."""
    made = cluster(*models, cpu="6")
    for k, (model, count, cpu) in enumerate(pods):
        add_pod(made, f"p{k}", model, count, cpu=str(cpu))
    driven = made.open(ListScheduler(backfill=Skip(), placement=EmptiestNodes()))
    while driven.platform.clock.left == 0.0:
        driven.later()
    cores, free = [6] * len(models), list(models)
    where = driven.nodes()
    for k, (_, _, cpu) in enumerate(pods):
        if (name := where.get(f"p{k}")) is not None:
            cores[int(name[1:])] -= cpu
            for result in made.get(ResourceClaim, f"default/p{k}").status.allocation.devices.results:
                assert result.pool == name
                had = models[int(name[1:])][int(result.device[1:])]
                assert pods[k][0] in ("", had)
                free[int(name[1:])] = free[int(name[1:])].replace(had, "", 1)
    for k, (model, count, cpu) in enumerate(pods):
        fits = [n for n, left in enumerate(free) if cores[n] >= cpu and (left.count(model) if model else len(left)) >= count]
        assert f"p{k}" in where or not fits, f"p{k} fits node {fits[0]}"
