"""Priority classes order the queue and are visible to policies."""

from poolwise.policies.order.priorities import Classes
from poolwise.policies.placement.nodes.placement import FirstNodes
from poolwise.schedulers.list import ListScheduler
from tests.helpers.played_cluster import FakeKubernetes
from tests.live.kubernetes import objects as make

LABEL = "pod-group.scheduling.sigs.k8s.io"


def test_priority_of_a_pod_group_replaces_those_of_its_pods() -> None:
    kube = FakeKubernetes(make.node("n0", cpu="2"), make.pod("single", cpu="2", priority=5))
    spec = {"schedulingPolicy": {"gang": {"minCount": 2}}, "priority": 7, "priorityClassName": "urgent"}
    kube.add({"kind": "PodGroup", "metadata": {"name": "g", "namespace": "default"}, "spec": spec})
    for name in ("a", "b"):
        kube.add(make.pod(name, cpu="1", priority=1, schedulingGroup={"podGroupName": "g"}))
    driven = kube.open(ListScheduler(order=Classes(), placement=FirstNodes()))
    assert set(driven.nodes()) == {"a", "b"}
    (group,) = driven.platform.runs.active.values()
    assert (group.job.priority, driven.platform.class_of(group.job.row)) == (7, "urgent")


def test_highest_priority_starts_first_and_a_gang_has_the_highest_of_its_pods() -> None:
    kube = FakeKubernetes(make.node("n0", cpu="4"), make.pod("low", cpu="4", priority=1))
    labels = {LABEL: "gang", f"{LABEL}/min-available": "2"}
    kube.add(make.pod("a", cpu="2", labels=labels, priority=2))
    kube.add(make.pod("b", cpu="2", labels=labels, priority=9))
    kube.add(make.pod("middle", cpu="4", priority=5))
    driven = kube.open(ListScheduler(order=Classes(), placement=FirstNodes()))
    table = driven.platform.table
    priorities = {table.name(row): int(table.attributes["priority"][row]) for row in range(len(table))}
    assert priorities == {"default/low": 1, "default/gang": 9, "default/middle": 5}
    order = [set(driven.nodes())]
    for done in (("a", "b"), ("middle",)):
        before = set(driven.nodes())
        for name in done:
            kube.finish(f"default/{name}")
        order.append(driven.settle().nodes().keys() - before)
    assert order == [{"a", "b"}, {"middle"}, {"low"}]
