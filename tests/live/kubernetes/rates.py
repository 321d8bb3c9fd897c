"""Starts a second, beside kube-scheduler on the same machine: `python -m tests.live.kubernetes.rates [PODS] [NODES]`.

Each runs alone, on the same pods, once without claims and once with one claim each; then pods are deleted.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.live.kubernetes import objects as make
from tests.live.kubernetes.checker import problems
from tests.live.kubernetes.control_plane import HERE, ControlPlane, control_plane, scheduling

FIRST_FIT = 'version = 1\norder = "fcfs"\nbackfill = "none"\nplacement = "worst_fit"\n'


def bound(plane: ControlPlane) -> int:
    return plane.kubectl("get", "pods", "-o", "jsonpath={.items[*].spec.nodeName}").count("n")


def until_bound(plane: ControlPlane, pods: int) -> float:
    """Starts a second, from the first that is seen to the last; a process takes its time to begin."""
    plane.wait(lambda: bound(plane) > 0, 60, "a first pod is bound")
    first, begun = bound(plane), time.monotonic()
    plane.wait(lambda: bound(plane) >= pods, 180, "all bound")
    return (pods - first) / (time.monotonic() - begun)


def measure(plane: ControlPlane, who: str, pods: int, claims: bool, folder: Path) -> tuple[float, float]:
    """Starts a second from the first to the last, and seconds of CPU of the scheduler in all (ours; 0 for the other)."""
    uses = {"g": {"resourceClaimTemplateName": "gpu"}} if claims else {}
    name = "poolwise" if who == "poolwise" else "default-scheduler"
    plane.apply(
        [make.pod(f"{'c' if claims else 'p'}{k:04d}", seconds=None, claims=uses, schedulerName=name) for k in range(pods)]
    )
    if claims:
        plane.wait(lambda: len(plane.kubectl("get", "resourceclaims", "-o", "name").split()) >= pods, 120, "claims made")
    if who == "poolwise":
        with scheduling(plane, str(folder / "s.toml"), log=folder / "log") as process:
            rate = until_bound(plane, pods)
            spent = sum(float(x) for x in Path(f"/proc/{process.pid}/stat").read_text().split()[13:15]) / os.sysconf(
                "SC_CLK_TCK"
            )
        return rate, spent
    setting = {**os.environ, "KUBE_DATA": str(plane.folder), "KUBE_SCHEDULER_QPS": "1000"}
    subprocess.run([HERE / "kube-up.sh", "start-scheduler"], env=setting, check=True)
    rate = until_bound(plane, pods)
    os.kill(int((plane.folder / "scheduler.pid").read_text()), 15)
    return rate, 0.0


def main(pods: int = 1000, nodes: int = 500) -> None:
    with tempfile.TemporaryDirectory() as path, control_plane(Path(path) / "kube") as plane:
        (Path(path) / "s.toml").write_text(FIRST_FIT)
        for claims in (False, True):
            for who in ("poolwise", "kube-scheduler"):
                plane.apply([make.node(f"n{k:03d}") for k in range(nodes)])
                plane.apply([make.device_class("gpu", "gpu.example")])
                slices = [
                    make.devices("gpu.example", f"n{k:03d}", *({"name": f"g{i}"} for i in range(4)), node=f"n{k:03d}")
                    for k in range(nodes)
                ]
                plane.apply(slices)
                plane.apply([make.template("gpu", make.exactly("gpu"))])
                rate, spent = measure(plane, who, pods, claims, Path(path))
                what = "one claim each" if claims else "no claims"
                print(f"{who}: {what}: {rate:.0f} starts/s, {1000 * spent / pods:.2f} ms CPU a pod", flush=True)
                assert problems(plane) == []
                plane.clear()


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
