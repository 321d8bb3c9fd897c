"""Every field of pods that affects scheduling is applied or refused; the documentation lists all of them."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from poolwise.live.kubernetes.objects.node import Toleration
from poolwise.live.kubernetes.objects.pod import Pod
from poolwise.live.kubernetes.pod_features import FEATURES, PodFeature
from poolwise.policies.placement.nodes.placement import FirstNodes
from poolwise.schedulers.list import ListScheduler
from tests.helpers.played_cluster import FakeKubernetes
from tests.live.kubernetes import objects as make
from tests.live_kubernetes.feature_tests import FEATURE_TESTS, PAGE, feature_table, is_live, missing_tests

SCHEDULER = ListScheduler(placement=FirstNodes())


REFUSED: dict[str, dict[str, Any]] = {
    "spec.tolerations with operator Gt": {"tolerations": [{"key": "a", "operator": "Gt", "value": "3"}]},
    "spec.volumes[v].gcePersistentDisk": {"volumes": [{"name": "v", "gcePersistentDisk": {"pdName": "d"}}]},
    "spec.volumes[v].iscsi": {"volumes": [{"name": "v", "iscsi": {"iqn": "i"}}]},
}
"""Start of the refused path -> pod that uses it."""
VOLUME_CLAIMS = "volume claims with `ReadWriteOncePod`, or `WaitForFirstConsumer` without a provisioner"
"""Refused by the volume claim instead of the pod; `test_volumes.py` tests them."""


@pytest.mark.parametrize("path", REFUSED)
def test_unsupported_field_is_refused_and_reported(path: str) -> None:
    kube = FakeKubernetes(make.node("n0"), make.pod("p", seconds=None, **REFUSED[path]), make.pod("q", seconds=None))
    assert kube.open(SCHEDULER).nodes() == {"q": "n0"}
    assert path in kube.messages["default/p"] and "is not supported by scheduler poolwise" in kube.messages["default/p"]


def test_every_refused_feature_is_tested() -> None:
    pods = [msgspec.convert(make.pod("p", **more), Pod) for more in REFUSED.values()]
    untested = {
        feature.name
        for feature in FEATURES
        if feature.support == "refused" and not any(list(feature.find(pod)) for pod in pods)
    }
    assert untested == {"topology and claims of a `PodGroup`", VOLUME_CLAIMS}


@pytest.mark.parametrize("field", ["schedulingConstraints", "resourceClaims"])
def test_unsupported_field_of_a_pod_group_is_refused(field: str) -> None:
    kube = FakeKubernetes(make.node("n0"))
    content = {"schedulingConstraints": {"topology": [{"key": "rack"}]}, "resourceClaims": [{"name": "c"}]}[field]
    policy = {"gang": {"minCount": 1}}
    meta = {"name": "g", "namespace": "default"}
    kube.add({"kind": "PodGroup", "metadata": meta, "spec": {"schedulingPolicy": policy, field: content}})
    kube.add(make.pod("p", seconds=None, schedulingGroup={"podGroupName": "g"}))
    assert not kube.open(SCHEDULER).nodes()
    assert f"spec.{field} of PodGroup g is not supported" in kube.messages["default/p"]


def tolerate(kube: FakeKubernetes, name: str) -> None:
    pod = kube.get(Pod, f"default/{name}")
    spec = msgspec.structs.replace(pod.spec, tolerations=[Toleration(key="sick", operator="Exists")])
    kube.put(msgspec.structs.replace(pod, spec=spec))


@pytest.mark.parametrize("scheduler", [SCHEDULER, ListScheduler()])
def test_toleration_added_to_a_waiting_pod_takes_effect(scheduler: ListScheduler) -> None:
    kube = FakeKubernetes(make.node("n0", taints=[{"key": "sick", "effect": "NoSchedule"}]), make.pod("p", seconds=None))
    driven = kube.open(scheduler)
    assert not driven.nodes()
    tolerate(kube, "p")
    assert driven.settle().nodes() == {"p": "n0"}


def test_gang_waits_while_its_pods_have_different_tolerations() -> None:
    label = "pod-group.scheduling.sigs.k8s.io"
    kube = FakeKubernetes(make.node("n0", taints=[{"key": "sick", "effect": "NoSchedule"}]))
    for k in range(2):
        kube.add(make.pod(f"p{k}", seconds=None, labels={label: "g", f"{label}/min-available": "2"}))
    driven = kube.open(SCHEDULER)
    tolerate(kube, "p0")
    assert not driven.settle().nodes() and "different node selectors" in kube.messages["default/p0"]
    tolerate(kube, "p1")
    assert driven.settle().nodes() == {"p0": "n0", "p1": "n0"}


def test_condition_of_a_pod_with_priority_states_that_others_are_not_preempted() -> None:
    kube = FakeKubernetes(make.node("n0", cpu="2"), make.pod("low", cpu="2", seconds=None))
    driven = kube.open(SCHEDULER)
    kube.add(make.pod("high", cpu="2", seconds=None, priority=5))
    kube.add(make.pod("patient", cpu="2", seconds=None, priority=5, preemptionPolicy="Never"))
    driven.settle()
    for row in driven.loop.queue.jobs.tolist():
        driven.platform.report_wait(row, "short of cores")
    assert kube.messages == {
        "default/high": "short of cores; pods with a lower priority are not preempted",
        "default/patient": "short of cores",
    }


def test_pod_with_scheduling_gates_waits_until_they_are_removed() -> None:
    kube = FakeKubernetes(make.node("n0"), make.pod("p", seconds=None, schedulingGates=[{"name": "example.com/gate"}]))
    driven = kube.open(SCHEDULER)
    assert not driven.nodes()
    pod = kube.get(Pod, "default/p")
    kube.put(msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, scheduling_gates=[])))
    assert driven.settle().nodes() == {"p": "n0"}


def test_documentation_lists_every_feature_with_its_tests() -> None:
    assert feature_table() in PAGE.read_text(), "run python -m tests.live_kubernetes.feature_tests"


@pytest.mark.parametrize("feature", FEATURES, ids=lambda feature: feature.name)
def test_every_feature_has_tests_that_exist(feature: PodFeature) -> None:
    """Applied and reported fields have a test with a control plane too; the API server drops some of the refused fields."""
    tests = FEATURE_TESTS[feature.name]
    assert missing_tests(tests) == []
    assert any(not is_live(test) for test in tests)
    assert any(is_live(test) for test in tests) or feature.support == "refused"


def test_tests_name_known_features_only() -> None:
    assert FEATURE_TESTS.keys() == {feature.name for feature in FEATURES}
    assert missing_tests(["test_pod_features::test_absent", "absent::test_absent"]) == [
        "test_pod_features::test_absent",
        "absent::test_absent",
    ]
