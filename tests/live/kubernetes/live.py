"""Poolwise schedules pods on a real API server; an independent checker then verifies the cluster (`make test-live`)."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from tests.live.kubernetes import objects as make
from tests.live.kubernetes.checker import problems
from tests.live.kubernetes.control_plane import ControlPlane, scheduling

POOLED = 'version = 1\norder = "fcfs"\nbackfill = "easy"\nplacement = "pooled"\n'


@pytest.fixture
def pooled(tmp_path: Path) -> str:
    (tmp_path / "pooled.toml").write_text(POOLED)
    return str(tmp_path / "pooled.toml")


def test_pods_without_claims_run(cluster: ControlPlane, first_fit: str) -> None:
    cluster.apply([make.node(f"n{k}") for k in range(4)])
    cluster.apply([make.pod(f"p{k}", cpu="8") for k in range(16)])
    with scheduling(cluster, first_fit):
        cluster.wait_done()


def test_fair_memory_on_whole_nodes_with_pools(cluster: ControlPlane) -> None:
    """Pool memory is the consumable capacity of a device that the nodes of a rack share."""
    cluster.apply([make.node(f"n{k}", rack=f"r{k // 4}") for k in range(8)])
    cluster.apply([make.device_class("pool-memory", "memory.example")])
    cluster.apply([make.devices("memory.example", r, make.memory_pool("pool", "128Gi"), rack=r) for r in ("r0", "r1")])
    cluster.apply(
        [make.template(f"m{g}", make.exactly("pool-memory", capacity={"requests": {"memory": f"{g}Gi"}})) for g in (32, 96)]
    )
    pods = [
        make.pod(
            f"p{k:02d}", seconds=1.5, claims={"m": {"resourceClaimTemplateName": f"m{32 if k % 3 else 96}"}} if k % 2 else {}
        )
        for k in range(24)
    ]
    cluster.apply(pods)
    with scheduling(cluster, "catalog:fm-easy"):
        cluster.wait_done(90)


def test_local_and_fabric_devices(cluster: ControlPlane, pooled: str) -> None:
    """The first available alternative is a local GPU, else one of the rack."""
    cluster.apply([make.node(f"n{k}", rack="r0") for k in range(2)])
    cluster.apply([make.device_class("local-gpu", "gpu.example"), make.device_class("fabric-gpu", "gpu.fabric.example")])
    cluster.apply([make.devices("gpu.example", f"n{k}", {"name": "gpu-0"}, node=f"n{k}") for k in range(2)])
    cluster.apply([make.devices("gpu.fabric.example", "r0", {"name": "f-0"}, {"name": "f-1"}, rack="r0")])
    either = {
        "name": "gpu",
        "firstAvailable": [
            {"name": "local", "deviceClassName": "local-gpu"},
            {"name": "fabric", "deviceClassName": "fabric-gpu"},
        ],
    }
    cluster.apply([make.template("either", either)])
    cluster.apply([make.pod(f"p{k}", seconds=None, claims={"gpu": {"resourceClaimTemplateName": "either"}}) for k in range(5)])
    with scheduling(cluster, pooled):
        cluster.wait(lambda: sorted(cluster.phases().values()) == ["Pending", *["Running"] * 4], 40, "four of five run")
        allocated = [
            c["status"]["allocation"]["devices"]["results"][0]
            for c in cluster.get("resourceclaims")
            if "allocation" in c.get("status", {})
        ]
        assert sorted((r["request"], r["device"]) for r in allocated) == [
            ("gpu/fabric", "f-0"),
            ("gpu/fabric", "f-1"),
            ("gpu/local", "gpu-0"),
            ("gpu/local", "gpu-0"),
        ]


def test_gangs_by_label_start_together(cluster: ControlPlane, first_fit: str) -> None:
    cluster.apply([make.node(f"n{k}", cpu="4") for k in range(4)])
    label = "pod-group.scheduling.sigs.k8s.io"
    for gang in range(5):
        labels = {label: f"g{gang}", f"{label}/min-available": "3"}
        cluster.apply([make.pod(f"g{gang}-{k}", cpu="4", labels=labels) for k in range(3)])
    with scheduling(cluster, first_fit):
        cluster.wait_done()


def test_pod_that_takes_the_name_of_a_deleted_one_starts(cluster: ControlPlane, first_fit: str) -> None:
    """As pods of a StatefulSet do, in a gang whose other pods run and alone."""
    cluster.apply([make.node(f"n{k}", cpu="8") for k in range(2)])
    label = "pod-group.scheduling.sigs.k8s.io"
    labels = {label: "g", f"{label}/min-available": "3"}
    pods = [*(make.pod(f"g-{k}", cpu="1", labels=labels, seconds=None) for k in range(3)), make.pod("alone", seconds=None)]
    cluster.apply(pods)
    with scheduling(cluster, first_fit):
        cluster.wait(lambda: cluster.count("Running") == 4, 60, "all pods run")
        for _ in range(3):
            for pod in pods[1:4:2]:
                cluster.kubectl("replace", "--force", "--grace-period", "0", "-f", "-", given=json.dumps(pod))
            cluster.wait(lambda: cluster.count("Running") == 4, 60, f"replaced pods run: {cluster.phases()}")
    assert problems(cluster) == []


def test_profiles_of_one_process_share_nodes_and_devices(cluster: ControlPlane, first_fit: str, pooled: str) -> None:
    """Pods of two schedulerNames compete for the same devices; those of a third one stay pending."""
    cluster.apply([make.node(f"n{k}", cpu="8") for k in range(4)])
    cluster.apply([make.device_class("gpu", "gpu.example"), make.template("gpu", make.exactly("gpu"))])
    cluster.apply([make.devices("gpu.example", f"n{k}", {"name": "g0"}, {"name": "g1"}, node=f"n{k}") for k in range(4)])
    claims, names = {"gpu": {"resourceClaimTemplateName": "gpu"}}, ("poolwise", "pooled")
    cluster.apply(
        [make.pod(f"profile{k:02d}", cpu="2", claims=claims, seconds=0.5, schedulerName=names[k % 2]) for k in range(60)]
    )
    cluster.apply([make.pod("foreign", seconds=None, schedulerName="another")])
    with scheduling(cluster, first_fit, "--profile", f"pooled={pooled}"):
        until = time.monotonic() + 120
        while cluster.count("Succeeded") < 60:
            assert time.monotonic() < until, cluster.phases()
            assert problems(cluster, moving=True) == []
            time.sleep(0.3)
    assert cluster.phases()["foreign"] == "Pending"
    events = cluster.get("events.events.k8s.io", "--field-selector", "reason=Scheduled")
    seen = {event["regarding"]["name"]: event["reportingController"] for event in events}
    assert all(seen.get(f"profile{k:02d}", names[k % 2]) == names[k % 2] for k in range(60))


def test_resized_pods_count_with_their_new_size(cluster: ControlPlane, first_fit: str) -> None:
    """Whichever scheduler placed them; the checker compares the sums with the sizes of the nodes."""
    cluster.apply([make.node("n0", cpu="8")])
    cluster.apply([make.pod("mine", cpu="2", seconds=None), make.pod("other", cpu="2", seconds=None, nodeName="n0")])
    with scheduling(cluster, first_fit):
        cluster.wait(lambda: cluster.count("Running") == 2, 30, "both run")
        for name in ("mine", "other"):
            reported = {"name": "main", "resources": {"requests": {"cpu": "2"}}, "allocatedResources": {"cpu": "2"}}
            status = json.dumps({"status": {"containerStatuses": [reported]}})  # the API server requires it of the kubelet
            cluster.kubectl("patch", "pod", name, "--subresource", "status", "-p", status)
            resources = {"requests": {"cpu": "3"}}
            patch = {"spec": {"containers": [{"name": "main", "resources": resources}]}}
            cluster.kubectl("patch", "pod", name, "--subresource", "resize", "-p", json.dumps(patch))
        cluster.apply([make.pod(f"p{k}", cpu="2", seconds=None) for k in range(2)])
        cluster.wait(lambda: cluster.count("Running") == 3, 30, "3 + 3 + 2 of 8 cores")
        time.sleep(2)
        assert cluster.count("Running") == 3


def test_every_waiting_pod_has_a_reason_and_started_pods_have_an_event(cluster: ControlPlane, pooled: str) -> None:
    cluster.apply([make.node("n0", cpu="8")])
    cluster.apply([make.pod(f"w{k:02d}", cpu="2", seconds=None) for k in range(94)])
    log = cluster.folder / "reasons.log"
    log.unlink(missing_ok=True)
    with scheduling(cluster, pooled, log=log):
        cluster.wait(lambda: len(reasons(cluster)) == 90, 40, f"conditions of 90 pods: {len(reasons(cluster))}")
        time.sleep(5)
        events = cluster.get("events.events.k8s.io")
        seen = [event["reason"] for event in events if event["regarding"]["name"].startswith("w")]
        assert seen.count("FailedScheduling") <= 90 + 20, "each pod once; those at the front again if their reason changed"
        assert seen.count("Scheduled") == 4
    starts = [json.loads(line) for line in log.read_text().splitlines() if '"event": "start"' in line]
    assert len(starts) == 4


def reasons(plane: ControlPlane) -> list[str]:
    """Return the messages of the conditions of pods that are not scheduled."""
    conditions = [condition for pod in plane.get("pods") for condition in pod["status"].get("conditions", [])]
    return [
        condition["message"]
        for condition in conditions
        if condition["type"] == "PodScheduled" and condition["status"] == "False" and condition["message"]
    ]
