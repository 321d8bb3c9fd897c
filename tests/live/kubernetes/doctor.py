"""`poolwise live kubernetes doctor` on a real API server: with the shipped rights, and without one of them."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from tests.live.kubernetes import objects as make
from tests.live.kubernetes.control_plane import ControlPlane, control_plane
from tests.live.kubernetes.shipped import grant


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    with control_plane(tmp_path_factory.mktemp("kube")) as plane:
        yield plane


def examine(plane: ControlPlane) -> tuple[int, list[dict[str, Any]]]:
    """Return the exit code and the checks, as the user `poolwise` gets them."""
    command = [sys.executable, "-m", "poolwise", "live", "kubernetes", "doctor", "--json", "--lease", "poolwise/poolwise"]
    done = subprocess.run(
        [*command, "--kubeconfig", str(plane.kubeconfig("poolwise"))], capture_output=True, text=True, check=False
    )
    assert done.returncode in (0, 1), done.stderr
    return done.returncode, json.loads(done.stdout)["checks"]


def test_doctor_accepts_the_shipped_rights_and_finds_a_missing_one(cluster: ControlPlane) -> None:
    grant(cluster, "rbac.yaml")
    cluster.apply([make.node("n0"), make.device_class("gpu", "gpu.example")])
    cluster.apply([make.devices("gpu.example", "all", {"name": "g0"})])
    code, checks = examine(cluster)
    assert (code, [check for check in checks if check["status"] == "failed"]) == (0, [])
    assert {"API server", "PodGroup", "DeviceTaintRule", "driver gpu.example"} <= {check["name"] for check in checks}

    role = yaml.safe_load(cluster.kubectl("get", "clusterrole", "poolwise-scheduler", "-o", "json"))
    role["rules"] = [rule for rule in role["rules"] if rule["resources"] != ["pods/binding"]]
    cluster.kubectl("apply", "-f", "-", given=json.dumps(role))
    cluster.wait(lambda: examine(cluster)[0] == 1, 20, "the missing right is found")
    failed = [check for check in examine(cluster)[1] if check["status"] == "failed"]
    assert [check["name"] for check in failed] == ["right to create pods/binding"]
    assert failed[0]["finding"].endswith("no pod starts") and "rbac.yaml" in failed[0]["remedy"]

    cluster.kubectl("delete", "clusterrole", "poolwise-scheduler")
    cluster.wait(lambda: len([c for c in examine(cluster)[1] if c["status"] == "failed"]) > 8, 20, "no right is left")
