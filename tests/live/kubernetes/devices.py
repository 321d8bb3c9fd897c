"""Devices of every kind on a real API server, allocated and bound by Poolwise (`make test-live`)."""

from __future__ import annotations

import json
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.live.kubernetes import objects as make
from tests.live.kubernetes.api import Api
from tests.live.kubernetes.control_plane import HERE, ControlPlane, kube_scheduler, scheduling

LABEL = "pod-group.scheduling.sigs.k8s.io"
NVME = 'version = 1\nkind = "composition"\nplacement = "nvme_first_fit"\norder = "fcfs"\n'


def set_condition(plane: ControlPlane, claim: dict[str, Any], kind: str) -> None:
    """Set a condition of a device, as its driver would."""
    result = claim["status"]["allocation"]["devices"]["results"][0]
    condition = {"type": kind, "status": "True", "reason": "Test", "message": "set by the test", "lastTransitionTime": now()}
    status = {"driver": result["driver"], "pool": result["pool"], "device": result["device"], "conditions": [condition]}
    patch = json.dumps({"status": {"devices": [status]}})
    name = claim["metadata"]["name"]
    plane.kubectl("patch", "resourceclaim", name, "--subresource=status", "--type=merge", "-p", patch)


def now() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


def allocated(plane: ControlPlane) -> list[dict[str, Any]]:
    return [c for c in plane.get("resourceclaims") if "allocation" in c.get("status", {})]


def given(plane: ControlPlane) -> list[str]:
    """Return the first device of each allocated claim."""
    return [given_to(claim) for claim in allocated(plane)]


def given_to(claim: dict[str, Any]) -> str:
    """Return the first device of an allocated claim."""
    return str(claim["status"]["allocation"]["devices"]["results"][0]["device"])


def test_example_pods_of_every_device_kind_run(cluster: ControlPlane, first_fit: str) -> None:
    """A local GPU, fabric GPUs with binding conditions, shares of a drive, and partitions with counters."""
    cluster.apply([make.node(f"node-000{k}", labels={"example.com/rack": "0"}) for k in range(2)])
    for name in ("01-classes", "02-slices", "03-claims", "04-pods"):
        cluster.kubectl("create", "-f", str(HERE / "examples" / f"{name}.yaml"))
    with scheduling(cluster, first_fit):
        waiting = "example.com/attached"
        cluster.wait(lambda: len(allocated(cluster)) == 6, 30, "all claims are allocated except one for the local GPU")
        cluster.wait(lambda: cluster.phases().get("mig-b") == "Running", 30, "partitions run")
        assert cluster.phases()["fabric"] == "Pending", "its device is not attached yet"
        for claim in allocated(cluster):
            if claim["status"]["allocation"]["devices"]["results"][0].get("bindingConditions") == [waiting]:
                set_condition(cluster, claim, waiting)
        cluster.wait(lambda: cluster.phases()["fabric"] == "Running", 30, "its device is attached")
        assert {name for name, phase in cluster.phases().items() if phase == "Pending"} == {"local"}
        cluster.kubectl("delete", "pod", "either", "--grace-period=0", "--force")
        cluster.wait(lambda: cluster.phases()["local"] == "Running", 30, "the local GPU is free")


@pytest.mark.parametrize("how", ["failure", "timeout"])
def test_failed_attachment_releases_the_device(cluster: ControlPlane, first_fit: str, how: str) -> None:
    """The claim is deallocated; the next attempt allocates the other device and succeeds."""
    cluster.apply([make.node("n0"), make.device_class("fabric", "fabric.example")])
    conditions = {"bindsToNode": True, "bindingConditions": ["x.io/up"], "bindingFailureConditions": ["x.io/failed"]}
    cluster.apply([make.devices("fabric.example", "p", {"name": "f-0", **conditions}, {"name": "f-1", **conditions})])
    cluster.apply([make.claim("one", make.exactly("fabric"))])
    cluster.apply([make.pod("p", seconds=None, claims={"d": {"resourceClaimName": "one"}})])
    with scheduling(cluster, first_fit, "--attach-timeout", "3" if how == "timeout" else "60"):
        cluster.wait(lambda: len(allocated(cluster)) == 1, 20, "a first device")
        assert given(cluster) == ["f-0"]
        if how == "failure":
            set_condition(cluster, allocated(cluster)[0], "x.io/failed")
        cluster.wait(lambda: given(cluster) == ["f-1"], 20, "another device")
        assert ("x.io/failed" if how == "failure" else "not attached within") in cluster.message("p")
        set_condition(cluster, allocated(cluster)[0], "x.io/up")
        cluster.wait(lambda: cluster.phases()["p"] == "Running", 20, "it runs")


@pytest.mark.parametrize("what", ["slice withdrawn", "node deleted", "failure reported"])
def test_gang_goes_elsewhere_if_its_devices_vanish_before_binding(cluster: ControlPlane, first_fit: str, what: str) -> None:
    """All claims are released within 5 s, although most devices of the gang would still be attached on the first node."""
    cluster.apply([make.node("n0"), make.node("n1"), make.device_class("fabric", "fabric.example")])
    conditions = {"bindsToNode": True, "bindingConditions": ["x.io/up"], "bindingFailureConditions": ["x.io/failed"]}
    for node in ("n0", "n1"):
        devices = [{"name": f"{node}-{k}", **conditions} for k in range(2)]
        cluster.apply([make.devices("fabric.example", node, *devices, node=node)])
    labels = {LABEL: "gang", f"{LABEL}/min-available": "2"}
    for k in range(2):
        cluster.apply([make.claim(f"c{k}", make.exactly("fabric"))])
        cluster.apply([make.pod(f"p{k}", seconds=None, labels=labels, claims={"d": {"resourceClaimName": f"c{k}"}})])
    with scheduling(cluster, first_fit, log=cluster.folder / "vanish.log"):
        cluster.wait(lambda: sorted(given(cluster)) == ["n0-0", "n0-1"], 20, "the devices of the first node")
        began = time.monotonic()
        if what == "slice withdrawn":
            cluster.kubectl("delete", "resourceslice", "fabric-example-n0")
        elif what == "node deleted":
            cluster.kubectl("delete", "node", "n0")
        else:
            set_condition(cluster, next(c for c in allocated(cluster) if given_to(c) == "n0-0"), "x.io/failed")
        words = {"slice withdrawn": "no longer published", "node deleted": "was deleted", "failure reported": "x.io/failed"}
        cluster.wait(lambda: words[what] in cluster.message("p0") + cluster.message("p1"), 5, "a condition")
        elsewhere = ["n0-1", "n1-0"] if what == "failure reported" else ["n1-0", "n1-1"]
        cluster.wait(lambda: sorted(given(cluster)) == elsewhere, 5, f"other devices: {given(cluster)}")
        print(f"{what}: {time.monotonic() - began:.1f} s")
        assert time.monotonic() - began < 5
        for claim in allocated(cluster):
            set_condition(cluster, claim, "x.io/up")
        cluster.wait(lambda: cluster.count("Running") == 2, 20, "both run")


def test_claims_shared_by_pods_taints_and_extended_resources(cluster: ControlPlane, first_fit: str) -> None:
    cluster.apply([make.node(f"n{k}", resources={"example.com/card": "2"}) for k in range(2)])
    cluster.apply([make.device_class("gpu", "gpu.example")])
    taint = {"key": "sick", "effect": "NoSchedule"}
    cluster.apply([make.devices("gpu.example", "n1", {"name": "g-0", "taints": [taint]}, {"name": "g-1"}, node="n1")])
    cluster.apply([make.claim("shared", make.exactly("gpu")), make.claim("sick", make.exactly("gpu"))])
    tolerant = make.exactly("gpu", tolerations=[{"key": "sick", "operator": "Exists"}])
    cluster.apply([make.pod(f"s{k}", seconds=None, claims={"g": {"resourceClaimName": "shared"}}) for k in range(3)])
    cluster.apply([make.pod(f"card{k}", seconds=None, extended={"example.com/card": "1"}) for k in range(5)])
    with scheduling(cluster, first_fit):
        cluster.wait(lambda: list(cluster.phases().values()).count("Running") == 7, 30, "all but one card")
        cluster.apply([make.pod("waits", seconds=None, claims={"g": {"resourceClaimName": "sick"}})])
        time.sleep(2)
        assert cluster.phases()["waits"] == "Pending", "the only free device is tainted"
        cluster.apply(
            [make.claim("tolerant", tolerant), make.pod("t", seconds=None, claims={"g": {"resourceClaimName": "tolerant"}})]
        )
        cluster.wait(lambda: cluster.phases()["t"] == "Running", 20, "it tolerates the taint")


def test_fields_that_are_refused_or_not_satisfied_are_reported(cluster: ControlPlane, first_fit: str) -> None:
    cluster.apply([make.node("n0", labels={"kubernetes.io/hostname": "n0"})])
    term = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"a": "b"}}}
    near = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    disk = {"iscsi": {"targetPortal": "10.0.0.1:3260", "iqn": "iqn.2026-11.example:disk", "lun": 0}}
    cases: dict[str, tuple[dict[str, Any], str]] = {
        "disk": ({"volumes": [{"name": "v", **disk}]}, "spec.volumes[v].iscsi is not supported by scheduler poolwise"),
        "near": ({"affinity": near}, "has no pod in its domain that matches the pod's affinity"),
        "volume": ({"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}]}, "claim default/c does not exist"),
        "selected": ({"nodeSelector": {"gone": "yes"}}, "no node matches the pod's node selector"),
    }
    cluster.apply([make.pod(name, **more) for name, (more, _) in cases.items()])
    cluster.apply([make.pod("plain")])
    with scheduling(cluster, first_fit):
        for name, (_, text) in cases.items():
            cluster.wait(lambda pod=name, text=text: text in cluster.message(pod), 40, f"{name}: {cluster.message(name)}")
        cluster.wait(lambda: cluster.phases()["plain"] == "Succeeded", 20, "the supported pod runs")
    assert {name for name, phase in cluster.phases().items() if phase == "Pending"} == {*cases}


def test_flow_placement_with_devices_of_other_nodes(cluster: ControlPlane) -> None:
    """DRMaestro: a pod whose node has no free GPU uses one of the fabric."""
    cluster.apply([make.node(f"n{k}", rack="r0", cpu="4") for k in range(3)])
    cluster.apply([make.device_class("gpu", "gpu.fabric.example")])
    cluster.apply([make.devices("gpu.fabric.example", "r0", *({"name": f"f-{k}"} for k in range(4)))])
    cluster.apply([make.template("two", make.exactly("gpu", count=2)), make.template("one", make.exactly("gpu"))])
    pods = [
        make.pod(f"p{k}", cpu="2", claims={"g": {"resourceClaimTemplateName": "two" if k % 2 else "one"}}) for k in range(8)
    ]
    cluster.apply(pods)
    with scheduling(cluster, "catalog:drmaestro"):
        cluster.wait_done(60)


def test_composition_of_shared_drives(cluster: ControlPlane, tmp_path: Path) -> None:
    (tmp_path / "nvme.toml").write_text('version = 1\nkind = "composition"\norder = "fcfs"\nplacement = "nvme_first_fit"\n')
    cluster.apply([make.node(f"n{k}") for k in range(2)])
    cluster.apply([make.device_class("nvme", "nvme.example")])
    policy = {"default": "1Gi", "validRange": {"min": "1Gi"}}
    capacity = {name: {"value": "8Gi", "requestPolicy": policy} for name in ("bandwidth", "space")}
    drives = [{"name": f"d{k}", "allowMultipleAllocations": True, "capacity": capacity} for k in range(2)]
    cluster.apply([make.devices("nvme.example", "all", *drives)])
    requested = {"requests": {"bandwidth": "3Gi", "space": "2Gi"}}
    cluster.apply([make.template("disk", make.exactly("nvme", capacity=requested))])
    cluster.apply([make.pod(f"p{k}", claims={"d": {"resourceClaimTemplateName": "disk"}}) for k in range(8)])
    with scheduling(cluster, str(tmp_path / "nvme.toml")):
        cluster.wait_done(60)


def test_gangs_by_pod_group(cluster: ControlPlane, first_fit: str) -> None:
    cluster.apply([make.node(f"n{k}", cpu="4") for k in range(2)])
    for name in ("05-gang", "06-gang-pods"):
        cluster.kubectl("create", "-f", str(HERE / "examples" / f"{name}.yaml"))
    with scheduling(cluster, first_fit):
        cluster.wait(lambda: list(cluster.phases().values()) == ["Running"] * 4, 30, f"all four run: {cluster.phases()}")


def test_priority_classes_and_preemption_by_a_policy(cluster: ControlPlane, tmp_path: Path) -> None:
    """The order `classes` starts the highest class first; a custom scheduler stops runs below the first job of the queue."""
    (tmp_path / "evicting.py").write_text(EVICTING)
    (tmp_path / "evicting.toml").write_text(f'version = 1\nkind = "{tmp_path}/evicting.py:Evicting"\n')
    for name, value in (("low", 10), ("middle", 20), ("high", 30)):
        meta = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name}}
        cluster.kubectl("apply", "-f", "-", given=json.dumps({**meta, "value": value, "preemptionPolicy": "Never"}))
    cluster.apply([make.node("n0", cpu="4")])
    cluster.apply([make.pod(name, cpu="4", seconds=None, priorityClassName=name) for name in ("low", "middle")])
    with scheduling(cluster, str(tmp_path / "evicting.toml")):
        cluster.wait(lambda: cluster.phases() == {"low": "Pending", "middle": "Running"}, 20, "the higher class starts first")
        cluster.apply([make.pod("high", cpu="3", seconds=None, priorityClassName="high")])
        cluster.wait(lambda: cluster.phases() == {"low": "Pending", "high": "Running"}, 30, f"evicted: {cluster.phases()}")


EVICTING = '''
from dataclasses import dataclass, field

from poolwise.model import Decisions, Stop
from poolwise.policies.order.priorities import Classes
from poolwise.policies.placement.nodes import placement
from poolwise.schedulers.list import ListScheduler


@dataclass(frozen=True)
class Evicting(ListScheduler):
    """First fit by classes; where nothing starts, runs of a lower priority than the highest that waits are stopped."""

    order: object = field(default_factory=Classes)
    placement: object = field(default_factory=placement.FirstNodes)

    def open(self, machine, seed):
        return Dispatcher(super().open(machine, seed))


@dataclass
class Dispatcher:
    inner: object

    def schedule(self, queue, snapshot, changes):
        decisions, priority = self.inner.schedule(queue, snapshot, changes), queue.table.attributes["priority"]
        if decisions.starts or not len(queue):
            return decisions
        highest = priority[queue.jobs].max()
        lower = [Stop(run.id, False, "a higher class waits") for run in snapshot.runs() if priority[run.job] < highest]
        return Decisions((*decisions, *lower), decisions.next_wakeup, decisions.reasons)
'''


def test_extended_resource_claims_match_those_of_kube_scheduler(cluster: ControlPlane, first_fit: str) -> None:
    """The same pods under both schedulers get claims with the same requests, and the same mappings in the pod status."""
    kind = make.device_class("gpu", "gpu.example")
    kind["spec"]["extendedResourceName"] = "example.com/gpu"
    cluster.apply([kind, make.device_class("nic", "nic.example")])
    cluster.apply([make.node(f"n{k}", resources={"example.com/card": "2"}) for k in range(2)])
    for driver, many in (("gpu.example", 8), ("nic.example", 4)):
        cluster.apply(
            [make.devices(driver, f"n{k}", *({"name": f"d{i}"} for i in range(many)), node=f"n{k}") for k in range(2)]
        )
    nic = "deviceclass.resource.kubernetes.io/nic"

    def pods(scheduler: str) -> list[dict[str, Any]]:
        made = [
            make.pod(f"one-{scheduler}", extended={"example.com/gpu": "2"}),
            make.pod(f"mixed-{scheduler}", extended={"example.com/gpu": "1", nic: "1", "example.com/card": "1"}),
            make.pod(f"phases-{scheduler}", extended={"example.com/gpu": "1"}),
        ]
        inits = [("sidecar", "1", "Always"), ("small", "1", None), ("large", "3", None), ("middle", "2", None)]
        made[2]["spec"]["initContainers"] = [
            {"name": name, "image": "none", "resources": {"limits": {"example.com/gpu": count}}}
            | ({"restartPolicy": when} if when else {})
            for name, count, when in inits
        ]
        for pod in made:
            pod["spec"]["schedulerName"] = scheduler
            pod["metadata"]["annotations"] = {}
        return made

    claims_of: dict[str, dict[str, Any]] = {}
    for scheduler in ("poolwise", "default-scheduler"):
        cluster.apply(pods(scheduler))
    with scheduling(cluster, first_fit), kube_scheduler(cluster):
        cluster.wait(lambda: cluster.count("Running") == 6, 120, f"all run: {cluster.phases()}")
    claims = {claim["metadata"]["name"]: claim for claim in cluster.get("resourceclaims")}
    for pod in cluster.get("pods"):
        claim_status = pod["status"]["extendedResourceClaimStatus"]
        claim = claims[claim_status["resourceClaimName"]]
        assert claim["metadata"]["annotations"] == {"resource.kubernetes.io/extended-resource-claim": "true"}
        name, _, scheduler = pod["metadata"]["name"].partition("-")
        claims_of.setdefault(scheduler, {})[name] = (claim["spec"], sorted(claim_status["requestMappings"], key=str))
    assert claims_of["poolwise"] == claims_of["default-scheduler"]
    cluster.kubectl("delete", "pods", "--all", "--grace-period=0", "--force")
    cluster.wait(lambda: not cluster.get("resourceclaims"), 60, "the claims are deleted with their pods")


def test_pending_extended_resource_pod_gets_a_message_in_an_idle_cluster(cluster: ControlPlane, first_fit: str) -> None:
    """It requests more devices than exist; the other pod starts and ends before the first report is due."""
    kind = make.device_class("gpu", "gpu.example")
    kind["spec"]["extendedResourceName"] = "example.com/gpu"
    cluster.apply([kind, make.node("n0"), make.devices("gpu.example", "n0", {"name": "d0"}, node="n0")])
    cluster.apply([make.pod("many", extended={"example.com/gpu": "40"}), make.pod("one", extended={"example.com/gpu": "1"})])
    with scheduling(cluster, first_fit):
        cluster.wait(lambda: cluster.phases()["one"] == "Succeeded", 40, "the one that can")
        cluster.wait(lambda: cluster.message("many"), 40, "why the other waits")


def patch_finalizers(plane: ControlPlane, pod: str, finalizers: list[str]) -> None:
    plane.kubectl("patch", "pod", pod, "--type=merge", "-p", json.dumps({"metadata": {"finalizers": finalizers}}))


def test_devices_that_a_rule_takes_out_of_service(cluster: ControlPlane, first_fit: str) -> None:
    """They are not allocated unless the claim tolerates the taint; Kubernetes evicts the pods that use them."""
    cluster.apply([make.node("n0")])
    cluster.apply([make.device_class("gpu", "gpu.example")])
    cluster.apply([make.devices("gpu.example", "n0", *({"name": f"g{k}"} for k in range(3)), node="n0")])
    cluster.apply([make.template("gpu", make.exactly("gpu"))])
    tolerations = [{"key": "sick", "operator": "Exists"}]
    cluster.apply([make.template("any", make.exactly("gpu", tolerations=tolerations))])
    cluster.apply([make.taint_rule("broken", "sick", "NoSchedule", driver="gpu.example", device="g0")])
    options = {"seconds": None, "claims": {"g": {"resourceClaimTemplateName": "gpu"}}}
    try:
        with scheduling(cluster, first_fit, log=cluster.folder / "taints.log"):
            cluster.apply([make.pod(f"p{k}", **options) for k in range(3)])
            cluster.wait(lambda: cluster.count("Running") == 2, 30, "two healthy devices are allocated")
            assert sorted(given(cluster)) == ["g1", "g2"]
            cluster.apply([make.pod("tolerant", seconds=None, claims={"g": {"resourceClaimTemplateName": "any"}})])
            cluster.wait(lambda: sorted(given(cluster)) == ["g0", "g1", "g2"], 30, "a claim that tolerates the taint")
            (user,) = (claim["status"]["reservedFor"][0]["name"] for claim in allocated(cluster) if given_to(claim) == "g1")
            patch_finalizers(cluster, user, ["poolwise.test/keep"])  # so that its eviction does not end before it is reported
            cluster.apply([make.taint_rule("gone", "dead", "NoExecute", driver="gpu.example", device="g1")])
            cluster.wait(lambda: "DeviceTainted" in cluster.kubectl("get", "events"), 30, "an event")
            patch_finalizers(cluster, user, [])
            cluster.wait(lambda: sorted(given(cluster)) == ["g0", "g2"], 60, "Kubernetes evicts the pod")
            assert "tainted_device_in_use" in (cluster.folder / "taints.log").read_text()
            cluster.kubectl("delete", "devicetaintrule", "gone")
            cluster.wait(lambda: sorted(given(cluster)) == ["g0", "g1", "g2"], 30, "the device is used again")
    finally:
        cluster.kubectl("delete", "devicetaintrules", "--all")


def test_devices_that_two_schedulers_allocate_are_released_by_one_of_them(cluster: ControlPlane, first_fit: str) -> None:
    """Two processes with different names allocate devices of one driver at the same time, often within one second."""
    devices, pods = 24, 60
    cluster.apply([make.node(f"n{k}", cpu="64") for k in range(4)])
    cluster.apply([make.device_class("gpu", "gpu.example"), make.template("gpu", make.exactly("gpu"))])
    cluster.apply([make.devices("gpu.example", "all", *({"name": f"g{k:02d}"} for k in range(devices)))])
    api, names = Api(cluster), ("first", "second")
    options = {"cpu": "100m", "memory": "16Mi", "seconds": None, "claims": {"g": {"resourceClaimTemplateName": "gpu"}}}
    logs = [cluster.folder / f"{name}.log" for name in names]
    for log in logs:
        log.unlink(missing_ok=True)

    def twice() -> list[str]:
        held = Counter(device for claim in allocated(cluster) for device in devices_of(claim))
        return [device for device, claims in held.items() if claims > 1]

    with (
        scheduling(cluster, first_fit, "--name", names[0], log=logs[0]),
        scheduling(cluster, first_fit, "--name", names[1], log=logs[1]),
    ):
        cluster.wait(lambda: all(log.exists() and "lease_acquired" in log.read_text() for log in logs), 60, "both lead")
        api.create([make.pod(f"{names[k % 2]}-{k:02d}", **options, schedulerName=names[k % 2]) for k in range(pods)])
        cluster.wait(lambda: len(allocated(cluster)) >= devices, 60, "all devices are allocated")
        time.sleep(5)
        cluster.wait(lambda: not twice() and cluster.count("Running") == devices, 90, f"one claim per device: {twice()}")
    reports = sum(log.read_text().count("device_allocated_twice") for log in logs)
    print(f"{reports} reports of devices in two claims")
    events = cluster.kubectl("get", "events", "-o", "jsonpath={.items[*].reason}").split()
    assert not reports or "DeviceAllocatedTwice" in events


def devices_of(claim: dict[str, Any]) -> list[str]:
    """Return the devices of an allocated claim."""
    return [result["device"] for result in claim["status"]["allocation"]["devices"]["results"]]
