"""Pods without placement rules and volume claims: the machinery of rules is not used, so that it costs them nothing."""

from __future__ import annotations

from typing import Any

import pytest

from poolwise.live.kubernetes import placement
from poolwise.policies.backfill.none import NoBackfill
from poolwise.policies.placement.nodes.placement import FirstNodes
from poolwise.schedulers.list import ListScheduler
from tests.helpers.played_cluster import FakeKubernetes
from tests.live.kubernetes import objects as make


def test_pods_without_rules_start_without_evaluating_any(monkeypatch: pytest.MonkeyPatch) -> None:
    def unexpected(*_: Any) -> None:
        raise AssertionError("rules were evaluated")

    for name in ("PlacedPods", "PlacementRules", "VolumeFilter"):
        monkeypatch.setattr(placement, name, unexpected)
    cluster = FakeKubernetes(*(make.node(f"n{k}", cpu="4") for k in range(3)), *(make.pod(f"p{k}", cpu="1") for k in range(9)))
    driven = cluster.open(ListScheduler(backfill=NoBackfill(), placement=FirstNodes()))
    cluster.add(make.pod("late", cpu="1"))
    driven.settle()
    assert len(driven.nodes()) == 10


def test_pod_with_a_rule_evaluates_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """The counterpart, which shows that the names above are those in use."""
    made: list[Any] = []
    placed_pods = placement.PlacedPods

    def recorded(*arguments: Any) -> placement.PlacedPods:
        made.append(arguments)
        return placed_pods(*arguments)

    monkeypatch.setattr(placement, "PlacedPods", recorded)
    spread = {"topologyKey": "zone", "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule", "labelSelector": {}}
    cluster = FakeKubernetes(make.node("n0", labels={"zone": "a"}), make.pod("p0", topologySpreadConstraints=[spread]))
    assert cluster.open(ListScheduler(backfill=NoBackfill(), placement=FirstNodes())).nodes() == {"p0": "n0"}
    assert made
