"""The shipped roles suffice on a real API server, and shadow mode needs only read access."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import yaml

from tests.live.kubernetes import objects as make
from tests.live.kubernetes.api import Api
from tests.live.kubernetes.control_plane import ControlPlane, kube_scheduler, scheduling
from tests.live.kubernetes.shipped_files import DEPLOY, shipped_scheduler

LABEL = "pod-group.scheduling.sigs.k8s.io"
USER = [{"kind": "User", "name": "poolwise", "apiGroup": "rbac.authorization.k8s.io"}]


def grant(plane: ControlPlane, file: str) -> None:
    """Grant the shipped roles to a user instead of the service account."""
    text = (DEPLOY / file).read_text().replace("system:serviceaccount:poolwise:poolwise", "poolwise")
    objects = [made for made in yaml.safe_load_all(text) if made["kind"] != "ServiceAccount"]
    for made in objects:
        if made["kind"] in ("ClusterRoleBinding", "RoleBinding"):
            made["subjects"] = USER
    plane.kubectl("apply", "-f", "-", given=yaml.safe_dump_all(objects))


def events(plane: ControlPlane) -> str:
    return plane.kubectl("get", "events", "-o", "jsonpath={.items[*].note}{.items[*].message}")


def workload(plane: ControlPlane) -> int:
    plane.apply([make.node(f"n{k}") for k in range(2)])
    plane.apply([make.device_class("gpu", "gpu.example")])
    plane.apply([make.devices("gpu.example", "all", {"name": "g-0"}, {"name": "g-1"})])
    plane.apply([make.template("gpu", make.exactly("gpu"))])
    labels = {LABEL: "gang", f"{LABEL}/min-available": "2"}
    plane.apply([make.pod(f"p{k}", claims={"g": {"resourceClaimTemplateName": "gpu"}}) for k in range(4)])
    plane.apply([make.pod(f"g{k}", labels=labels) for k in range(2)])
    plane.apply([make.pod("volume", volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}])])
    plane.apply([make.pod("other", schedulerName="another-scheduler")])
    plane.apply([make.pod("by-name", extended={"deviceclass.resource.kubernetes.io/gpu": "1"})])
    return 7


def test_shipped_role_suffices_and_reads_no_secrets(cluster: ControlPlane, tmp_path: Path) -> None:
    (tmp_path / "s.toml").write_text(shipped_scheduler())
    grant(cluster, "rbac.yaml")
    many = workload(cluster)
    with scheduling(cluster, str(tmp_path / "s.toml"), "--lease", "poolwise/poolwise", user="poolwise", log=tmp_path / "log"):
        cluster.wait(
            lambda: cluster.count("Succeeded") == many, 60, f"all pods that Poolwise manages and supports: {cluster.phases()}"
        )
        cluster.wait(lambda: "volume claim default/c does not exist" in events(cluster), 20, "an event")
    assert {cluster.phases()["volume"], cluster.phases()["other"]} == {"Pending"}
    assert "Forbidden" not in (tmp_path / "log").read_text()
    for verb, what in (("get", "secrets"), ("create", "pods"), ("delete", "pods"), ("patch", "nodes")):
        assert cluster.kubectl("auth", "can-i", verb, what, "--as", "poolwise", check=False).strip() == "no"


_CLAIMS = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims"
_PLACES = {"pods": "/api/v1/namespaces/default/pods", "claims": _CLAIMS}
_PLACES["volumes"] = "/api/v1/namespaces/default/persistentvolumeclaims"


def refusal(plane: ControlPlane, method: str, kind: str, name: str, body: dict[str, Any]) -> str:
    """Send a request as the scheduler; return the error of the API server, "" if it succeeds."""
    try:
        Api(plane, "poolwise").ask(method, f"{_PLACES[kind]}{name}", body)
    except AssertionError as error:
        return str(error)
    return ""


def test_admission_policy_narrows_the_rights_of_the_scheduler(cluster: ControlPlane) -> None:
    grant(cluster, "rbac.yaml")
    cluster.apply([make.pod("own", seconds=None), make.pod("foreign", seconds=None, schedulerName="another")])
    cluster.apply([make.device_class("gpu", "gpu.example"), make.claim("c", make.exactly("gpu"))])
    volume = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "v"}}
    size = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    cluster.apply([{**volume, "spec": size}])
    protection = "resource.kubernetes.io/delete-protection"

    def patched(kind: str, name: str, **body: Any) -> str:
        return refusal(cluster, "PATCH", kind, f"/{name}", body)

    nominated, selected = {"nominatedNodeName": "n0"}, {"volume.kubernetes.io/selected-node": "n0"}
    cluster.wait(lambda: "own pods only" in patched("pods", "foreign/status", status=nominated), 60, "the policy applies")
    assert patched("pods", "own/status", status=nominated) == ""
    for meta, why in (({"finalizers": ["a.b/c"]}, "may add the finalizer"), ({"labels": {"a": "b"}}, "may not change labels")):
        assert why in patched("claims", "c", metadata=meta)
    assert patched("claims", "c", metadata={"finalizers": [protection]}) == ""
    assert "may add the finalizer" in patched("claims", "c", metadata={"finalizers": []})
    for meta in ({"finalizers": []}, {"annotations": {"a": "b"}}, {"labels": {"a": "b"}}):
        assert "select the node" in patched("volumes", "v", metadata=meta)
    assert patched("volumes", "v", metadata={"annotations": selected}) == ""
    created = refusal(cluster, "POST", "claims", "", make.claim("d", make.exactly("gpu")))
    assert "may create claims for extended" in created
    cluster.kubectl("patch", "resourceclaim", "c", "--type=merge", "-p", '{"metadata": {"finalizers": []}}')
    cluster.kubectl("delete", "pvc", "v")


def test_rights_withdrawn_for_a_while_do_not_end_the_scheduler(cluster: ControlPlane, tmp_path: Path) -> None:
    """The API server denies every request for eight seconds; all pods run afterwards."""
    (tmp_path / "s.toml").write_text(shipped_scheduler())
    grant(cluster, "rbac.yaml")
    cluster.apply([make.node("n0", cpu="64"), make.device_class("gpu", "gpu.example")])
    cluster.apply([make.devices("gpu.example", "n0", *({"name": f"g{k}"} for k in range(40)), node="n0")])
    cluster.apply([make.template("gpu", make.exactly("gpu"))])
    claims = {"g": {"resourceClaimTemplateName": "gpu"}}
    with scheduling(cluster, str(tmp_path / "s.toml"), "--lease", "poolwise/poolwise", user="poolwise") as process:
        cluster.apply([make.pod(f"before{k}", seconds=None, claims=claims) for k in range(10)])
        cluster.wait(lambda: cluster.count("Running") == 10, 60, f"pods run: {cluster.phases()}")
        cluster.kubectl("delete", "clusterrolebinding", "poolwise-scheduler")
        try:
            cluster.apply([make.pod(f"after{k}", seconds=None, claims=claims) for k in range(10)])
            time.sleep(8)
        finally:
            grant(cluster, "rbac.yaml")
        assert process.poll() is None
        cluster.wait(lambda: cluster.count("Running") == 20, 90, f"all pods run: {cluster.phases()}")


def test_reserved_devices_are_allocated_by_the_scheduler_only(cluster: ControlPlane, tmp_path: Path) -> None:
    """An administrator and kube-scheduler are rejected, except for devices of other drivers; the scheduler is not."""
    (tmp_path / "s.toml").write_text(shipped_scheduler())
    grant(cluster, "rbac.yaml")
    policy = (DEPLOY / "reserve-devices.yaml").read_text().replace("system:serviceaccount:poolwise:poolwise", "poolwise")
    cluster.kubectl("apply", "-f", "-", given=policy)
    try:
        cluster.apply([make.node("n0"), make.device_class("gpu", "gpu.example"), make.device_class("disk", "disk.example")])
        cluster.apply(
            [make.devices(f"{kind}.example", "n0", {"name": "d0"}, {"name": "d1"}, node="n0") for kind in ("gpu", "disk")]
        )
        cluster.apply([make.template(kind, make.exactly(kind)) for kind in ("gpu", "disk")])
        cluster.apply([make.claim("foreign", make.exactly("gpu"))])
        plain = allocation("gpu.example", "d0")
        cluster.wait(
            lambda: "allocated by poolwise only" in allocate(cluster, plain, "--dry-run=server"), 60, "the policy applies"
        )
        assert "allocated by poolwise only" in allocate(cluster, plain)
        assert "allocated by poolwise only" in allocate(cluster, allocation("disk.example", "d1", "gpu.example", "d0"))
        assert allocate(cluster, allocation("disk.example", "d1")) == ""
        for kind in ("gpu", "disk"):
            claims = {"d": {"resourceClaimTemplateName": kind}}
            cluster.apply([make.pod(f"theirs-{kind}", seconds=None, claims=claims, schedulerName="default-scheduler")])
        cluster.apply([make.pod(f"ours-{k}", claims={"d": {"resourceClaimTemplateName": "gpu"}}) for k in range(4)])
        options = ["--lease", "poolwise/poolwise"]
        with kube_scheduler(cluster), scheduling(cluster, str(tmp_path / "s.toml"), *options, user="poolwise"):
            cluster.wait(lambda: cluster.phases().get("theirs-disk") == "Running", 60, f"disks are free: {cluster.phases()}")
            cluster.wait(lambda: cluster.count("Succeeded") == 4, 60, f"our pods take turns: {cluster.phases()}")
            cluster.wait(lambda: "allocated by poolwise only" in events(cluster), 60, "kube-scheduler reports the rejection")
            assert cluster.phases()["theirs-gpu"] == "Pending"
    finally:
        cluster.kubectl("delete", "-f", str(DEPLOY / "reserve-devices.yaml"), "--ignore-not-found")


def allocation(*devices: str) -> dict[str, Any]:
    """Return an allocation of (driver, device) pairs."""
    pairs = zip(devices[::2], devices[1::2], strict=True)
    results = [{"request": "device", "driver": driver, "pool": "n0", "device": device} for driver, device in pairs]
    return {"devices": {"results": results}}


def allocate(plane: ControlPlane, allocation: dict[str, Any], *options: str) -> str:
    """Allocate the claim `foreign` as an administrator; return the error of the API server."""
    patch = json.dumps({"status": {"allocation": allocation}})
    try:
        plane.kubectl("patch", "resourceclaim", "foreign", "--subresource=status", "--type=merge", "-p", patch, *options)
    except RuntimeError as error:
        return str(error)
    return ""


def test_shadow_mode_only_reads(cluster: ControlPlane, tmp_path: Path) -> None:
    (tmp_path / "s.toml").write_text(shipped_scheduler())
    cluster.kubectl("delete", "clusterrolebinding", "poolwise-scheduler", check=False)
    grant(cluster, "shadow.yaml")
    binding: dict[str, Any] = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": "poolwise-shadow"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "poolwise-shadow"},
        "subjects": USER,
    }
    cluster.kubectl("apply", "-f", "-", given=json.dumps(binding))
    many, record = workload(cluster), tmp_path / "record.jsonl"
    options = ["--mode", "shadow", "--record", str(record)]
    with scheduling(cluster, str(tmp_path / "s.toml"), *options, user="poolwise", log=tmp_path / "shadow.log"):
        cluster.wait(lambda: record.exists() and record.read_text().count('"decided"') >= 3, 30, "decisions")
        assert set(cluster.phases().values()) == {"Pending"}
        assert not any("allocation" in claim.get("status", {}) for claim in cluster.get("resourceclaims"))
        with scheduling(cluster, str(tmp_path / "s.toml"), log=tmp_path / "log"):
            cluster.wait(lambda: cluster.count("Succeeded") == many, 60, f"what really happens: {cluster.phases()}")
        cluster.wait(lambda: '"ended"' in record.read_text(), 20, "what happened is recorded")
    kinds = {json.loads(line)["kind"] for line in record.read_text().splitlines()}
    assert {"begin", "submitted", "decided", "started", "ended"} <= kinds
    assert "Forbidden" not in (tmp_path / "shadow.log").read_text()
    command = [sys.executable, "-m", "poolwise", "compare", str(record), "--json"]
    beside = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    assert beside["summary"]["started_and_decided"] >= 3 and beside["about"]["mode"] == "shadow"
    pods = [job for job in beside["jobs"] if job["job"].startswith("default/p")]
    assert len(pods) == 4 and all(job["decided_placement"] and job["placement"] for job in pods)
    assert all(0 <= job["wait_decided_s"] <= job["wait_s"] + 1 for job in pods), "the other scheduler started them later"
