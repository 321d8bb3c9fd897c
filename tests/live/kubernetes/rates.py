"""How fast pods start beside kube-scheduler on the same machine, how long they wait, what it costs (`pytest .../rates.py -s`).

To be run on a machine that does nothing else: rates are of wall-clock time. Each scheduler runs alone, on the same pods, first
on a queue that stands, then on pods that arrive while it runs. $POOLWISE_RATES are the pods, the nodes half as many.
"""

from __future__ import annotations

import json
import os
import ssl
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from poolwise.policies.backfill.none import NoBackfill
from poolwise.policies.placement.nodes.placement import EmptiestNodes
from poolwise.schedulers.list import ListScheduler
from tests.helpers.played_cluster import PlayedCluster
from tests.live.kubernetes import objects as make
from tests.live.kubernetes.checker import problems
from tests.live.kubernetes.control_plane import HERE, ControlPlane, control_plane, scheduling

PODS = int(os.environ.get("POOLWISE_RATES", "1000"))
FIRST_FIT = 'version = 1\norder = "fcfs"\nbackfill = "none"\nplacement = "worst_fit"\n'


class Api:
    """Plain requests to the API server, for what kubectl does too slowly."""

    def __init__(self, plane: ControlPlane) -> None:
        config = yaml.safe_load(plane.kubeconfig().read_text())
        cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
        self._url, self._tls = cluster["server"], ssl.create_default_context(cafile=cluster["certificate-authority"])
        self._headers = {"Authorization": f"Bearer {user['token']}", "Content-Type": "application/json"}

    def open(self, path: str, body: Any = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        return urllib.request.urlopen(urllib.request.Request(self._url + path, data, self._headers), context=self._tls)

    def create(self, pods: list[dict[str, Any]]) -> None:
        with ThreadPoolExecutor(16) as pool:
            for answer in pool.map(lambda pod: self.open("/api/v1/namespaces/default/pods", pod), pods):
                answer.close()


@dataclass
class Watched:
    """When pods were seen first, and when with a node; seconds of the monotonic clock."""

    created: dict[str, float] = field(default_factory=dict)
    bound: dict[str, float] = field(default_factory=dict)

    def waits(self) -> np.ndarray:
        return np.array([self.bound[name] - at for name, at in self.created.items()])

    def rate(self) -> float:
        times = sorted(self.bound.values())
        return (len(times) - 1) / (times[-1] - times[0])


@contextmanager
def watching(api: Api) -> Iterator[Watched]:
    found, over = Watched(), threading.Event()
    stream = api.open("/api/v1/namespaces/default/pods?watch=true")

    def follow() -> None:  # it alone closes the stream: a close beside its reading would wait for the next event
        try:
            for line in stream:
                if over.is_set():
                    break
                event = json.loads(line)
                name, now = event["object"]["metadata"]["name"], time.monotonic()
                found.created.setdefault(name, now)
                if event["object"]["spec"].get("nodeName"):
                    found.bound.setdefault(name, now)
        except OSError:  # the server has ended
            pass
        finally:
            stream.close()

    threading.Thread(target=follow, daemon=True).start()
    try:
        yield found
    finally:
        over.set()


@dataclass(frozen=True)
class Measured:
    """What one scheduler did: starts a second on a standing queue; waits of pods that arrive, s; ms of our CPU a pod."""

    rate: float
    waits: np.ndarray
    cpu: float

    def __str__(self) -> str:
        middle, last = np.percentile(self.waits, [50, 99])
        waits = f"created to bound {1000 * middle:.0f} ms p50, {1000 * last:.0f} ms p99"
        return f"{self.rate:.0f} starts/s, {waits}, {self.cpu:.2f} ms CPU a pod"


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    with control_plane(tmp_path_factory.mktemp("kube")) as found:
        yield found


@contextmanager
def working(plane: ControlPlane, who: str, folder: Path) -> Iterator[int | None]:
    """A scheduler at work; yields its process, where it is ours."""
    if who == "poolwise":
        (folder / "s.toml").write_text(FIRST_FIT)
        with scheduling(plane, str(folder / "s.toml"), log=folder / "log") as process:
            yield process.pid
        return
    setting = {**os.environ, "KUBE_DATA": str(plane.folder), "KUBE_SCHEDULER_QPS": "1000"}
    subprocess.run([HERE / "kube-up.sh", "start-scheduler"], env=setting, check=True)
    try:
        yield None
    finally:
        os.kill(int((plane.folder / "scheduler.pid").read_text()), 15)


def spent(pid: int | None) -> float:
    """Seconds of CPU of a process so far."""
    if pid is None:
        return 0.0
    return sum(float(x) for x in Path(f"/proc/{pid}/stat").read_text().split()[13:15]) / os.sysconf("SC_CLK_TCK")


def measure(plane: ControlPlane, who: str, claims: bool, folder: Path) -> Measured:
    api, nodes = Api(plane), max(PODS // 2, 4)
    names = [f"n{k:04d}" for k in range(nodes)]
    plane.apply([make.node(name) for name in names])
    plane.apply([make.device_class("gpu", "gpu.example"), make.template("gpu", make.exactly("gpu"))])
    plane.apply([make.devices("gpu.example", name, *({"name": f"g{i}"} for i in range(4)), node=name) for name in names])
    uses = {"g": {"resourceClaimTemplateName": "gpu"}} if claims else {}
    scheduler = "poolwise" if who == "poolwise" else "default-scheduler"

    def pods(kind: str, many: int) -> list[dict[str, Any]]:
        return [make.pod(f"{kind}{k:04d}", seconds=None, claims=uses, schedulerName=scheduler) for k in range(many)]

    def made() -> bool:
        return not claims or plane.kubectl("get", "resourceclaims", "-o", "name").count("resourceclaim") >= PODS

    api.create(pods("standing", PODS))
    plane.wait(made, 120, "claims are made")
    with watching(api) as standing, working(plane, who, folder) as pid:
        plane.wait(lambda: len(standing.bound) == PODS, 300, "all are bound")
        before, late = spent(pid), PODS // 4
        with watching(api) as arriving:
            plane.wait(lambda: len(arriving.bound) == PODS, 30, "those that are there are seen")
            arriving.created.clear()
            arriving.bound.clear()
            for part in range(0, late, 10):
                api.create(pods("late", late)[part : part + 10])
                time.sleep(0.2)
            plane.wait(lambda: sum(name.startswith("late") for name in arriving.bound) == late, 120, "all are bound")
            cost = 1000 * (spent(pid) - before) / late
    created = {name: at for name, at in arriving.created.items() if name.startswith("late")}
    waits = Watched(created, arriving.bound).waits()
    assert problems(plane, moving=True) == []
    plane.clear()
    return Measured(standing.rate(), waits, cost)


@pytest.mark.parametrize(("claims", "factor"), [(False, 1.0), (True, 4.0)], ids=["no claims", "one claim each"])
def test_starts_beside_kube_scheduler(claims: bool, factor: float, plane: ControlPlane, tmp_path: Path) -> None:
    ours = measure(plane, "poolwise", claims, tmp_path)
    theirs = measure(plane, "kube-scheduler", claims, tmp_path)
    print(f"\n{PODS} pods, {'one claim each' if claims else 'no claims'}\npoolwise: {ours}\nkube-scheduler: {theirs}")
    assert ours.rate >= factor * theirs.rate


def test_what_waits_costs_nothing_while_nothing_happens(plane: ControlPlane, tmp_path: Path) -> None:
    """A thousand pods that fit nowhere, for ten seconds in which nobody does anything."""
    plane.apply([make.node("n0", cpu="1")])
    Api(plane).create([make.pod(f"p{k:04d}", cpu="2", seconds=None) for k in range(PODS)])
    with working(plane, "poolwise", tmp_path) as pid:
        time.sleep(20)
        before = spent(pid)
        time.sleep(10)
        idle = spent(pid) - before
    plane.clear()
    print(f"\n{idle:.2f} s of CPU in 10 s")
    assert idle < 0.5


DECIDING = """
import resource, sys, time
from tests.live.kubernetes.rates import decided
decided(int(sys.argv[1]), int(sys.argv[2]))
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
"""


def decided(nodes: int, pods: int) -> float:
    """Ms of CPU that deciding takes a pod, on a cluster in memory with a claim each, and taking in what comes of it."""
    made = PlayedCluster(*(make.node(f"n{k:04d}") for k in range(nodes)), make.device_class("gpu", "gpu.example"))
    for k in range(nodes):
        made.add(make.devices("gpu.example", f"n{k:04d}", *({"name": f"g{i}"} for i in range(4)), node=f"n{k:04d}"))
    made.add(make.claim("first", make.exactly("gpu")))
    made.add(make.pod("first", seconds=None, claims={"g": {"resourceClaimName": "first"}}))
    driven = made.open(ListScheduler(backfill=NoBackfill(), placement=EmptiestNodes()))
    for k in range(pods):
        made.add(make.claim(f"c{k}", make.exactly("gpu")))
        made.add(make.pod(f"p{k:05d}", seconds=None, claims={"g": {"resourceClaimName": f"c{k}"}}))
    made.started.clear()
    made.binds, taken = False, 0.0
    for _ in range(2):  # decide, then take in what has come true; what plays the cluster does not count
        begun = time.process_time()
        driven.settle()
        taken += 1000 * (time.process_time() - begun) / pods
        while made.started:
            made.come_true(*made.started.pop())
    assert len(driven.nodes()) == pods + 1
    return taken


def test_deciding_takes_less_than_a_millisecond_a_pod() -> None:
    taken = decided(500, 1000)
    print(f"\n{taken:.2f} ms of CPU a pod")
    assert taken < 1.0


def test_memory_with_five_thousand_nodes_and_ten_thousand_pods() -> None:
    done = subprocess.run([sys.executable, "-c", DECIDING, "5000", "10000"], capture_output=True, text=True, check=True)
    print(f"\n{float(done.stdout):.0f} MB")
    assert float(done.stdout) < 2000
