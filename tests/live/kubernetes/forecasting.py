"""Forecasts of waiting pods on a real API server (`make test-live`)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from datetime import datetime, timedelta
from pathlib import Path

from tests.live.kubernetes import objects as make
from tests.live.kubernetes.control_plane import ControlPlane, control_plane, scheduling


def _forecast(plane: ControlPlane, *options: str) -> str:
    command = [sys.executable, "-m", "poolwise", "forecast", "live", "kubernetes", *options]
    environment = {**os.environ, "KUBECONFIG": str(plane.kubeconfig())}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout


def _bound(plane: ControlPlane) -> dict[str, datetime]:
    """Return the time at which each bound pod was bound."""
    conditions = {pod["metadata"]["name"]: pod.get("status", {}).get("conditions", []) for pod in plane.get("pods")}
    return {
        name: datetime.fromisoformat(condition["lastTransitionTime"])
        for name, reported in conditions.items()
        for condition in reported
        if (condition["type"], condition["status"]) == ("PodScheduled", "True")
    }


def test_pods_start_at_their_forecast_times(tmp_path: Path) -> None:
    """Four nodes run one pod each for 30 s. Four waiting pods start after them; a future pod would start after those."""
    (tmp_path / "fcfs.toml").write_text('version = 1\norder = "fcfs"\nbackfill = "easy"\nplacement = "first_fit"\n')
    policy = ("--scheduler", str(tmp_path / "fcfs.toml"))
    with control_plane(tmp_path / "kube") as plane:
        plane.apply([make.node(f"n{k}") for k in range(4)])
        with scheduling(plane, policy[1]):
            plane.apply([make.pod(f"run{k}", cpu="16", seconds=30) for k in range(4)])
            plane.wait(lambda: plane.count("Running") == 4, 60, "four pods running")
            plane.apply([make.pod(f"wait{k}", cpu="16", seconds=30) for k in range(4)])
            answer = json.loads(_forecast(plane, *policy, "--samples", "50", "--json"))
            new = _forecast(plane, *policy, "--new", "cores=16,time=2min", "--by", "30min")
            plane.wait(lambda: len(_bound(plane)) == 8, 90, f"all pods bound: {plane.phases()}")
            bound = _bound(plane)
    assert "with a chance of 100 %" in new
    assert {job["job"] for job in answer["jobs"]} == {f"job default/wait{k}" for k in range(4)}
    for job in answer["jobs"]:
        late = bound[job["job"].rpartition("/")[2]] - datetime.fromisoformat(job["start_p50"])
        assert abs(late) < timedelta(seconds=5), late
