"""Device taints of drivers and of administrators' rules: tainted devices are not allocated, and reported if in use."""

from __future__ import annotations

from typing import Any

import pytest

from poolwise.live.kubernetes import taint_reports
from poolwise.live.kubernetes.metrics import KubernetesMetrics
from poolwise.live.kubernetes.objects.device import DeviceTaintRule
from poolwise.policies.placement.devices.pooled import Pooled
from poolwise.policies.placement.nodes.placement import FirstNodes
from poolwise.schedulers.list import ListScheduler
from tests.helpers.played_cluster import FakeKubernetes
from tests.live.kubernetes import objects as make

TOLERATES = {"tolerations": [{"key": "sick", "operator": "Exists"}]}


def cluster(*devices: str) -> FakeKubernetes:
    kube = FakeKubernetes(make.device_class("gpu", "gpu.example"), make.node("n0", cpu="16"))
    kube.add(make.devices("gpu.example", "n0", *({"name": name} for name in devices), node="n0"))
    return kube


def add_pod(kube: FakeKubernetes, name: str, **request: Any) -> None:
    kube.add(make.claim(name, make.exactly("gpu", **request)))
    kube.add(make.pod(name, seconds=None, claims={"g": {"resourceClaimName": name}}))


@pytest.mark.parametrize("placement", [FirstNodes(), Pooled()])
@pytest.mark.parametrize("effect", ["NoSchedule", "NoExecute"])
def test_device_tainted_by_a_rule_is_not_allocated(placement: Any, effect: str) -> None:
    kube = cluster("g0", "g1")
    kube.add(make.taint_rule("broken", "sick", effect, driver="gpu.example", pool="n0", device="g0"))
    for name in ("a", "b"):
        add_pod(kube, name)
    driven = kube.open(ListScheduler(placement=placement))
    ((_, (start,)),) = kube.started
    assert start.claims[0].allocation is not None and start.claims[0].allocation.devices.results[0].device == "g1"
    kube.remove(DeviceTaintRule, "broken")
    assert set(driven.settle().nodes()) == {"a", "b"}


def test_rule_that_is_created_during_the_run_applies() -> None:
    kube = cluster("g0")
    driven = kube.open(ListScheduler(placement=FirstNodes()))
    kube.add(make.taint_rule("broken", "sick", "NoSchedule", driver="gpu.example"))
    add_pod(kube, "a")
    assert not driven.settle().nodes()
    add_pod(kube, "b", **TOLERATES)
    assert set(driven.settle().nodes()) == {"b"}


@pytest.mark.parametrize(
    ("selector", "tainted"),
    [
        ({}, True),
        ({"driver": "gpu.example"}, True),
        ({"driver": "other.example"}, False),
        ({"pool": "n0"}, True),
        ({"pool": "n1"}, False),
        ({"device": "g1"}, False),
        ({"deviceClassName": "gpu"}, True),
        ({"deviceClassName": "other"}, False),
        ({"selectors": [{"cel": {"expression": 'device.driver == "gpu.example"'}}]}, True),
        ({"selectors": [{"cel": {"expression": "false"}}]}, False),
        ({"selectors": [{"cel": {"expression": "unknown(device)"}}]}, True),  # rather idle than defective
    ],
)
def test_all_criteria_of_a_rule_must_match(selector: dict[str, Any], tainted: bool) -> None:
    kube = cluster("g0")
    kube.add(make.taint_rule("broken", "sick", "NoSchedule", **selector))
    add_pod(kube, "a")
    assert bool(kube.open(ListScheduler(placement=FirstNodes())).nodes()) is not tainted


@pytest.mark.parametrize("effect", ["None", "Unknown"])
def test_taint_without_effect_does_not_prevent_allocation(effect: str) -> None:
    kube = cluster("g0")
    kube.add(make.taint_rule("informational", "sick", effect))
    add_pod(kube, "a")
    assert kube.open(ListScheduler(placement=FirstNodes())).nodes() == {"a": "n0"}


def test_device_that_is_taken_out_of_service_while_in_use_is_reported_once(monkeypatch: pytest.MonkeyPatch) -> None:
    logged: list[dict[str, str]] = []
    monkeypatch.setattr(taint_reports, "log_event", lambda event, level, **fields: logged.append(fields))
    kube, metrics = cluster("g0", "g1", "g2"), KubernetesMetrics()
    add_pod(kube, "a")
    add_pod(kube, "tolerant", **TOLERATES)
    driven = kube.open(ListScheduler(placement=FirstNodes()), metrics=metrics)
    kube.add(make.taint_rule("broken", "sick", "NoExecute", driver="gpu.example"))
    driven.settle()
    add_pod(kube, "b")
    driven.settle()
    assert logged == [{"device": "gpu.example/n0/g0", "claim": "default/a", "taint": "sick"}]
    note = "device gpu.example/n0/g0 of claim default/a has the taint sick:NoExecute"
    assert [event for event in kube.reported if event[1] == "DeviceTainted"] == [("default/a", "DeviceTainted", note)]
    assert metrics.tainted_devices_in_use._value.get() == 1
    kube.remove(DeviceTaintRule, "broken")
    driven.settle()
    assert metrics.tainted_devices_in_use._value.get() == 0


def test_rule_that_cannot_be_evaluated_is_reported_once(monkeypatch: pytest.MonkeyPatch) -> None:
    logged: list[tuple[str, str]] = []
    monkeypatch.setattr(taint_reports, "log_event", lambda event, level, **fields: logged.append((event, fields["rule"])))
    kube = cluster("g0", "g1")
    driven = kube.open(ListScheduler(placement=FirstNodes()))
    kube.add(make.taint_rule("broken", "sick", "NoSchedule", selectors=[{"cel": {"expression": "unknown(device)"}}]))
    driven.settle()
    add_pod(kube, "a")
    driven.settle()
    assert logged == [("taint_rule_not_evaluated", "broken")]
    ((name, reason, note),) = kube.reported
    assert (name, reason) == ("broken", "TaintRuleNotEvaluated") and "unknown" in note
    kube.remove(DeviceTaintRule, "broken")
    assert driven.settle().nodes() == {"a": "n0"}
