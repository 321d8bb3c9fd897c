"""Waiting pods on a real API server: their reasons, changes that let them start, and the commands that read them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.live.kubernetes import objects as make
from tests.live.kubernetes.control_plane import FIRST_FIT, ControlPlane, scheduling


@pytest.mark.parametrize("policy", ["first_fit", "pooled"])
def test_toleration_added_to_a_pending_pod_takes_effect(cluster: ControlPlane, tmp_path: Path, policy: str) -> None:
    """The other pod, whose tolerations stay as they are, keeps waiting."""
    (tmp_path / "s.toml").write_text(FIRST_FIT.replace("first_fit", policy))
    cluster.apply([make.node("n0", taints=[{"key": "sick", "value": "", "effect": "NoSchedule"}])])
    cluster.apply([make.pod(name, seconds=None) for name in ("changed", "other")])
    with scheduling(cluster, str(tmp_path / "s.toml")):
        cluster.wait(lambda: all(cluster.message(name) for name in ("changed", "other")), 60, "both pods have a reason")
        (pod,) = [item for item in cluster.get("pods") if item["metadata"]["name"] == "changed"]
        tolerations = [*pod["spec"]["tolerations"], {"key": "sick", "operator": "Exists"}]
        cluster.kubectl("patch", "pod", "changed", "--type=merge", "-p", json.dumps({"spec": {"tolerations": tolerations}}))
        cluster.wait(lambda: cluster.phases()["changed"] == "Running", 60, f"it starts: {cluster.message('changed')}")
    assert cluster.phases()["other"] == "Pending"


def test_pod_starts_once_its_scheduling_gates_are_removed(cluster: ControlPlane, first_fit: str) -> None:
    cluster.apply([make.node("n0"), make.pod("gated", seconds=None, schedulingGates=[{"name": "example.com/gate"}])])
    cluster.apply([make.pod("free", seconds=None)])
    with scheduling(cluster, first_fit):
        cluster.wait(lambda: cluster.phases() == {"gated": "Pending", "free": "Running"}, 60, "the other pod runs")
        cluster.kubectl("patch", "pod", "gated", "--type=json", "-p", '[{"op": "remove", "path": "/spec/schedulingGates"}]')
        cluster.wait(lambda: cluster.count("Running") == 2, 60, f"it runs: {cluster.message('gated')}")


def test_starts_are_logged_once_although_attempts_are_refused(cluster: ControlPlane, first_fit: str) -> None:
    """The policy does not model devices of racks: it starts pods in each pass, and the platform refuses most starts."""
    cluster.apply([make.node(f"n{k}", rack="r0") for k in range(4)])
    cluster.apply([make.device_class("gpu", "gpu.example"), make.template("gpu", make.exactly("gpu"))])
    cluster.apply([make.devices("gpu.example", "r0", *({"name": f"g{k}"} for k in range(8)), rack="r0")])
    claims = {"g": {"resourceClaimTemplateName": "gpu"}}
    cluster.apply([make.pod(f"p{k:02d}", cpu="500m", seconds=1, claims=claims) for k in range(30)])
    log = cluster.folder / "starts.log"
    with scheduling(cluster, first_fit, log=log):
        cluster.wait_done(120)
    events = [json.loads(line) for line in log.read_text().splitlines() if line.startswith("{")]
    starts = sorted(event["job"] for event in events if event["event"] == "start")
    assert starts == [f"default/p{k:02d}" for k in range(30)]


def test_condition_states_that_pods_with_a_lower_priority_are_not_preempted(cluster: ControlPlane, first_fit: str) -> None:
    kind = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "urgent"}, "value": 1000}
    cluster.kubectl("apply", "-f", "-", given=json.dumps(kind))
    cluster.apply([make.node("n0", cpu="4"), make.pod("low", cpu="4", seconds=None)])
    with scheduling(cluster, first_fit):
        cluster.wait(lambda: cluster.phases()["low"] == "Running", 60, "the node is in use")
        cluster.apply([make.pod("high", cpu="4", seconds=None, priorityClassName="urgent")])
        text = "pods with a lower priority are not preempted"
        cluster.wait(lambda: text in cluster.message("high"), 60, f"a condition: {cluster.message('high')}")
    assert cluster.phases() == {"low": "Running", "high": "Pending"}


def test_snapshot_of_the_cluster_in_a_kubeconfig_is_simulated(cluster: ControlPlane, first_fit: str, tmp_path: Path) -> None:
    """Neither the environment nor the home directory names a cluster."""
    cluster.apply([make.node(f"n{k}", cpu="4") for k in range(2)])
    cluster.apply([make.pod(f"p{k}", cpu="4", seconds=None) for k in range(5)])
    with scheduling(cluster, first_fit):
        cluster.wait(lambda: cluster.count("Running") == 2, 60, "two pods run")
        reader = ["snapshot", "kubernetes", "--kubeconfig", str(cluster.kubeconfig()), "--scheduler", first_fit]
        printed = poolwise(*reader, "--out", "now", folder=tmp_path)
    assert "2 running and 3 waiting jobs" in printed
    poolwise("simulate", "snapshot", "now", "--scheduler", first_fit, folder=tmp_path)


def poolwise(*arguments: str, folder: Path) -> str:
    environment = {name: text for name, text in os.environ.items() if name != "KUBECONFIG"}
    environment |= {"HOME": str(folder), "XDG_CACHE_HOME": os.environ.get("XDG_CACHE_HOME", str(Path.home() / ".cache"))}
    command = [sys.executable, "-m", "poolwise", *arguments]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout
