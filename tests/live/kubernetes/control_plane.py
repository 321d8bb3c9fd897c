"""A real control plane on loopback, with nodes simulated by kwok; built once into a cache."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

HERE = Path(__file__).parent
FIRST_FIT = 'version = 1\norder = "fcfs"\nbackfill = "easy"\nplacement = "first_fit"\n'
"""A scheduler file."""
KUBECTL = Path(sys.executable).parent / "kubectl"
_DEVICES = "/apis/resource.k8s.io/v1"
_MADE = (
    "/api/v1/namespaces/default/pods?gracePeriodSeconds=0",
    f"{_DEVICES}/namespaces/default/resourceclaims",
    f"{_DEVICES}/namespaces/default/resourceclaimtemplates",
    "/apis/scheduling.k8s.io/v1alpha2/namespaces/default/podgroups",
    "/apis/scheduling.k8s.io/v1alpha2/namespaces/default/workloads",
    "/apis/policy/v1/namespaces/default/poddisruptionbudgets",
    "/api/v1/nodes",
    f"{_DEVICES}/resourceslices",
    f"{_DEVICES}/deviceclasses",
)
"""Collections of objects that tests create, in the order of their deletion."""


@dataclass(frozen=True)
class ControlPlane:
    """A running cluster.

    Attributes
    ----------
    folder : data folder, with a kubeconfig for each user
    """

    folder: Path

    def kubeconfig(self, user: str = "admin") -> Path:
        return self.folder / f"{user}.kubeconfig"

    def kubectl(self, *arguments: str, given: str | None = None, user: str = "admin", check: bool = True) -> str:
        command = [str(KUBECTL), "--kubeconfig", str(self.kubeconfig(user)), *arguments]
        done = subprocess.run(command, input=given, capture_output=True, text=True, check=False)
        if check and done.returncode:
            raise RuntimeError(f"kubectl {' '.join(arguments)}: {done.stderr}")
        return done.stdout

    def apply(self, objects: Sequence[dict[str, Any]]) -> None:
        self.kubectl("create", "-f", "-", given=yaml.safe_dump_all(objects))

    def get(self, kind: str, *arguments: str) -> list[dict[str, Any]]:
        loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
        return yaml.load(self.kubectl("get", kind, "-A", "-o", "json", *arguments), loader)["items"]

    def phases(self) -> dict[str, str]:
        lines = self.kubectl("get", "pods", "-o", "custom-columns=N:.metadata.name,P:.status.phase", "--no-headers")
        return dict(line.split() for line in lines.splitlines())

    def count(self, phase: str) -> int:
        """Return the number of pods in a phase."""
        return list(self.phases().values()).count(phase)

    def message(self, pod: str) -> str:
        """Return why a pod waits, by its condition PodScheduled; empty if it has none."""
        return self.kubectl("get", "pod", pod, "-o", "jsonpath={.status.conditions[?(@.type=='PodScheduled')].message}")

    def wait(self, what: Any, seconds: float, words: str) -> None:
        until = time.monotonic() + seconds
        while not what():
            if time.monotonic() > until:
                raise AssertionError(f"not within {seconds:g} s: {words}")
            time.sleep(0.3)

    def wait_done(self, seconds: float = 60) -> None:
        """Wait until all pods have succeeded."""
        self.wait(lambda: set(self.phases().values()) <= {"Succeeded"}, seconds, f"pods done: {self.phases()}")

    def clear(self) -> None:
        """Delete all objects that tests create, one request per kind: kubectl deletes only six objects per second."""
        for place in _MADE:
            self.kubectl("delete", "--raw", place, check="podgroups" not in place and "workloads" not in place)
        self.wait(lambda: not self.phases(), 60, "pods deleted")
        self.wait(lambda: not self.get("resourceclaims"), 60, "claims deleted")


@contextmanager
def control_plane(folder: Path, **settings: str) -> Iterator[ControlPlane]:
    """Build the control plane if missing, start it on free ports, and stop it at the end.

    $POOLWISE_KUBE names a running one to use instead.
    """
    if running := os.environ.get("POOLWISE_KUBE"):
        plane = ControlPlane(Path(running))
        plane.clear()
        yield plane
        return
    if shutil.which("go") is None and not built_versions():
        raise RuntimeError("building the control plane requires Go 1.26 or later, which is not installed")
    setting = {**os.environ, "KUBE_DATA": str(folder), "KUBE_PORT": str(free_ports()), **settings}
    subprocess.run([HERE / "kube-up.sh", "start"], env=setting, check=True, stdout=subprocess.DEVNULL)
    try:
        yield ControlPlane(folder)
    finally:
        subprocess.run([HERE / "kube-up.sh", "clean"], env=setting, check=True)


def restart(plane: ControlPlane) -> None:
    """Start the processes of a control plane that have ended, and wait until its API server is ready."""
    server = yaml.safe_load(plane.kubeconfig().read_text())["clusters"][0]["cluster"]["server"]
    setting = {**os.environ, "KUBE_DATA": str(plane.folder), "KUBE_PORT": server.rpartition(":")[2]}
    subprocess.run([HERE / "kube-up.sh", "start"], env=setting, check=True, stdout=subprocess.DEVNULL)


def free_ports() -> int:
    """Return the first of three consecutive free ports."""
    for port in range(26000 + os.getpid() % 1000 * 6, 60000, 3):
        try:
            for candidate in range(port, port + 3):
                socket.create_server(("127.0.0.1", candidate)).close()
            return port
        except OSError:
            continue
    raise RuntimeError("no ports are free")


def built_versions() -> list[str]:
    """Return the versions of Kubernetes that are built in the cache."""
    cache = os.environ.get("KUBE_CACHE") or os.environ.get("XDG_CACHE_HOME", f"{Path.home()}/.cache") + "/poolwise/kube"
    return sorted(file.parent.name for file in Path(cache).glob("*/built"))


@contextmanager
def scheduling(
    plane: ControlPlane, scheduler: str, *options: str, user: str = "admin", log: Path | None = None
) -> Iterator[subprocess.Popen[bytes]]:
    """Run `poolwise live kubernetes` until the context ends; it must exit cleanly unless it was killed."""
    command = [sys.executable, "-m", "poolwise", "live", "kubernetes", "--scheduler", scheduler]
    path = log if log is not None else plane.folder / "poolwise.log"
    with path.open("ab") as file:
        process = subprocess.Popen([*command, "--kubeconfig", str(plane.kubeconfig(user)), *options], stderr=file)
    try:
        yield process
    finally:
        if process.poll() is None:
            process.terminate()
        if process.wait(timeout=30) not in (0, -9):
            raise AssertionError(f"the scheduler ended with {process.returncode}: {path.read_text()[-2000:]}")


@contextmanager
def kube_scheduler(plane: ControlPlane, **settings: str) -> Iterator[int]:
    """Run kube-scheduler until the context ends; yield its process id."""
    setting = {**os.environ, "KUBE_DATA": str(plane.folder), "KUBE_SCHEDULER_QPS": "1000", **settings}
    subprocess.run([HERE / "kube-up.sh", "start-scheduler"], env=setting, check=True)
    process_id = int((plane.folder / "scheduler.pid").read_text())
    try:
        yield process_id
    finally:
        os.kill(process_id, 15)
        plane.wait(lambda: not Path(f"/proc/{process_id}").exists(), 20, "kube-scheduler has ended")
