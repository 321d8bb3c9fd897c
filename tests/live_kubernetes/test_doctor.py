"""Checks of a cluster before scheduling: each problem is found and comes with a remedy; roles in deploy/ match the code."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from poolwise.cli import app as cli
from poolwise.live.kubernetes import doctor
from poolwise.live.kubernetes.access import Access
from poolwise.live.kubernetes.client import ApiError
from poolwise.live.kubernetes.doctor import ClusterCheck, Doctor
from poolwise.live.kubernetes.rights import LEASE_RIGHTS, SCHEDULER_RIGHTS, SHADOW_RIGHTS, Right
from tests.helpers.played_cluster import KINDS, FakeKubernetes
from tests.live.kubernetes import objects as make
from tests.live.kubernetes.shipped_files import DEPLOY

PATHS = {
    "Namespace": "/api/v1/namespaces",
    "Node": "/api/v1/nodes",
    "Pod": "/api/v1/pods",
    "ResourceClaim": "/apis/resource.k8s.io/v1/resourceclaims",
    "ResourceSlice": "/apis/resource.k8s.io/v1/resourceslices",
    "DeviceClass": "/apis/resource.k8s.io/v1/deviceclasses",
}
SERVED = {
    "/apis/resource.k8s.io/v1": ["resourceclaims", "resourceslices", "deviceclasses"],
    "/apis/resource.k8s.io/v1beta2": ["devicetaintrules"],
    "/apis/scheduling.k8s.io/v1alpha2": ["podgroups"],
}
LEASE = "/apis/coordination.k8s.io/v1/namespaces/poolwise/leases/poolwise"


class FakeServer:
    """An API server with the objects of a cluster in memory that denies some rights."""

    def __init__(self, kube: FakeKubernetes) -> None:
        self.kube, self.version, self.served = kube, "v1.36.3", dict(SERVED)
        self.denied: set[tuple[str, str]] = set()  # (resource, verb)
        self.lease: dict[str, Any] | None = None
        self.asked: list[dict[str, str]] = []

    async def get(self, path: str, **params: str) -> bytes:
        if path == "/version":
            return json.dumps({"gitVersion": self.version}).encode()
        if path in self.served:
            return json.dumps({"resources": [{"name": name} for name in self.served[path]]}).encode()
        if path == LEASE and self.lease is not None:
            return json.dumps({"metadata": {"name": "poolwise"}, "spec": self.lease}).encode()
        for name, place in PATHS.items():
            if path == place:
                if (path.rpartition("/")[2], "list") in self.denied:
                    raise ApiError(403, "Forbidden", "")
                items = [item for (kind, _), item in self.kube.objects.items() if kind is KINDS[name]]
                return msgspec.json.encode({"kind": "List", "items": items})
        raise ApiError(404, "NotFound", "")

    async def send(self, method: str, path: str, body: Any = None) -> bytes:
        wanted = body["spec"]["resourceAttributes"]
        self.asked.append(wanted)
        name = f"{wanted['resource']}/{wanted['subresource']}".rstrip("/")
        return json.dumps({"status": {"allowed": (name, wanted["verb"]) not in self.denied}}).encode()


def cluster(*more: dict[str, Any]) -> FakeServer:
    kube = FakeKubernetes(make.node("n0"), make.device_class("gpu", "gpu.example"), *more)
    kube.add(make.devices("gpu.example", "all", {"name": "g0"}, {"name": "g1"}))
    kube.add({"kind": "Namespace", "metadata": {"name": "poolwise"}})
    return FakeServer(kube)


def examine(server: FakeServer, *profiles: str, **options: Any) -> list[ClusterCheck]:
    return asyncio.run(Doctor(server, ("poolwise", *profiles), ("poolwise", "poolwise"), **options).examine())


def failures(server: FakeServer, **options: Any) -> list[str]:
    failed = [check for check in examine(server, **options) if check.status == "failed"]
    assert all(check.remedy for check in failed)
    return [str(check) for check in failed]


def claimed(name: str, scheduler: str = "poolwise", device: str = "") -> list[dict[str, Any]]:
    """Return a claim and its pod; the claim is allocated if a device is given."""
    claim = make.claim(name, make.exactly("gpu"))
    if device:
        results = [{"request": "device", "driver": "gpu.example", "pool": "all", "device": device}]
        claim["status"] = {"allocation": {"devices": {"results": results}}}
    pod = make.pod(name, schedulerName=scheduler, claims={"g": {"resourceClaimName": name}})
    return [claim, pod]


def test_cluster_without_problems_passes_all_checks() -> None:
    checks = {check.name: check for check in examine(cluster(*claimed("c", device="g0")))}
    assert {check.status for check in checks.values()} == {"ok"}
    assert checks["API server"].finding == "Kubernetes v1.36.3"
    assert checks["DeviceTaintRule"].finding == "resource.k8s.io/v1beta2"
    assert checks["driver gpu.example"].finding == "2 devices in 1 pool"
    assert checks["lease poolwise/poolwise"].finding == "free: it does not exist yet"


@pytest.mark.parametrize("right", [*SCHEDULER_RIGHTS, *LEASE_RIGHTS], ids=lambda right: str(right.resources + right.verbs))
def test_each_missing_right_is_found(right: Right) -> None:
    server = cluster()
    server.denied = set(right.each())
    assert any(right.effect in line and "apply deploy/kubernetes/rbac.yaml" in line for line in failures(server))


def test_rights_for_leases_are_checked_in_their_namespace() -> None:
    server = cluster()
    examine(server)
    rights = {
        (review["verb"], review["namespace"], review["name"]) for review in server.asked if review["resource"] == "leases"
    }
    assert rights == {("create", "poolwise", ""), ("get", "poolwise", "poolwise"), ("update", "poolwise", "poolwise")}


def test_shadow_mode_needs_only_read_access() -> None:
    server = cluster()
    server.denied = {
        access for right in (*SCHEDULER_RIGHTS, *LEASE_RIGHTS) for access in right.each() if access[1] not in ("list", "watch")
    }
    assert not failures(server, shadow=True)


@pytest.mark.parametrize(("version", "old"), [("v1.33.9", True), ("v1.34.0", False), ("v2.0.1+k3s1", False), ("", True)])
def test_old_server_is_found(version: str, old: bool) -> None:
    server = cluster()
    server.version = version
    assert any("too old" in line for line in failures(server)) == old


def test_apis_that_are_not_served_are_found() -> None:
    server = cluster()
    server.served = {}
    assert any("resource.k8s.io/v1 is not served" in line for line in failures(server))
    notes = {check.name for check in examine(server) if check.status == "note"}
    assert {"PodGroup", "DeviceTaintRule"} <= notes


def test_incomplete_pool_is_found() -> None:
    server = cluster()
    part = make.devices("gpu.example", "rack", {"name": "g9"})
    part["spec"]["pool"]["resourceSliceCount"] = 2
    server.kube.add(part)
    assert failures(server) == [
        "failed driver gpu.example: the slices of pool rack are incomplete or name a device twice: its devices are not "
        "allocated; check the driver's logs"
    ]


def test_device_class_with_an_unsupported_expression_is_found() -> None:
    kind = make.device_class("odd", "gpu.example")
    kind["spec"]["selectors"][0]["cel"]["expression"] = "device.unknownFunction()"
    assert any("device class odd: unsupported CEL function unknownFunction()" in line for line in failures(cluster(kind)))


@pytest.mark.parametrize("ours", ["", "g1"])
def test_driver_of_two_schedulers_is_found(ours: str) -> None:
    both = cluster(*claimed("a", "default-scheduler", "g0"), *claimed("b", device=ours))
    assert ["a device may be allocated twice" in line for line in failures(both)] == [True]
    other = examine(cluster(*claimed("a", "default-scheduler", "g0")))
    assert [check.status for check in other if check.name == "other schedulers"] == ["note"]
    profiles = examine(both, "default-scheduler")
    assert [check.status for check in profiles if check.name == "other schedulers"] == ["ok"]


def test_cluster_without_usable_nodes_fails() -> None:
    kube = FakeKubernetes({"kind": "Namespace", "metadata": {"name": "poolwise"}})
    assert any("no pod starts" in line for line in failures(FakeServer(kube)))
    assert any("no driver publishes devices" in str(check) for check in examine(FakeServer(kube)))


@pytest.mark.parametrize(("seconds", "status"), [(3, "note"), (60, "ok")])
def test_holder_of_the_lease_is_shown(seconds: int, status: str) -> None:
    server = cluster()
    renewed = (datetime.now(UTC) - timedelta(seconds=seconds)).isoformat()
    server.lease = {"holderIdentity": "host_1", "leaseDurationSeconds": 15, "renewTime": renewed}
    (holder,) = [check for check in examine(server) if check.name.startswith("lease")]
    assert holder.status == status and "host_1" in holder.finding


def test_missing_namespace_of_the_lease_is_found() -> None:
    kube = FakeKubernetes(make.node("n0"), {"kind": "Namespace", "metadata": {"name": "default"}})
    assert any("namespace poolwise does not exist" in line for line in failures(FakeServer(kube)))


def test_unresponsive_server_is_found() -> None:
    class Silent(FakeServer):
        async def get(self, path: str, **params: str) -> bytes:
            raise ApiError(0, "Timeout", "")

    assert [check.name for check in examine(Silent(FakeKubernetes()))] == ["API server"]


def granted(rules: list[dict[str, Any]]) -> set[tuple[str, str, str, str]]:
    """Return (group, resource, verb, name) of the rules of a role."""
    return {
        (group, resource, verb, name)
        for rule in rules
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
        for name in rule.get("resourceNames", [""])
    }


@pytest.mark.parametrize(
    ("file", "kind", "rights"),
    [
        ("rbac.yaml", "ClusterRole", SCHEDULER_RIGHTS),
        ("rbac.yaml", "Role", LEASE_RIGHTS),
        ("shadow.yaml", "ClusterRole", SHADOW_RIGHTS),
    ],
)
def test_shipped_role_grants_exactly_the_rights_that_are_checked(file: str, kind: str, rights: tuple[Right, ...]) -> None:
    objects = yaml.safe_load_all((DEPLOY / file).read_text())
    (role,) = [item for item in objects if item["kind"] == kind]
    wanted = {(right.group, *grant, "poolwise" if right.named else "") for right in rights for grant in right.each()}
    assert granted(role["rules"]) == wanted


def test_command_prints_one_line_per_check_and_exits_with_1_if_one_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    server = cluster()

    async def answer(
        access: Access, names: Sequence[str], lease: tuple[str, str] | None, *, shadow: bool
    ) -> list[ClusterCheck]:
        return await Doctor(server, names, lease, shadow).examine()

    monkeypatch.setattr(doctor, "examine_cluster", answer)
    monkeypatch.setattr(Access, "discover", lambda file=None: Access("https://x", None, namespace="poolwise"))
    assert cli.run(["live", "kubernetes", "doctor"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == len(examine(server)) and all(line.startswith("ok") for line in lines)
    server.denied = {("pods/binding", "create")}
    assert cli.run(["live", "kubernetes", "doctor", "--json"]) == 1
    content = json.loads(capsys.readouterr().out)
    assert content["failed"] == 1
    assert [check["status"] for check in content["checks"] if "pods/binding" in check["name"]] == ["failed"]
