"""Outages of the control plane under load, while another scheduler allocates devices of the same driver.

Both schedulers may allocate a device at the same instant: the API server accepts it. Poolwise then gives the other scheduler
time to release the device, and evicts its own pod after that (see the limits in docs/explanation/live-kubernetes.md). So pods
may end here, and are created again, as their controller would.
"""

from __future__ import annotations

import json
import os
import random
import signal
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime
from http.client import HTTPException
from pathlib import Path
from typing import Any

from tests.helpers.machine_speed import slowness
from tests.helpers.waiting import is_alive, wait_until
from tests.live.kubernetes import objects as make
from tests.live.kubernetes.api import Api
from tests.live.kubernetes.checker import problems
from tests.live.kubernetes.control_plane import ControlPlane, kube_scheduler, restart, scheduling
from tests.live.kubernetes.fault_workload import LABEL, SCHEDULER

PODS, CLAIMS = "/api/v1/namespaces/default/pods", "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims"
GANGS = 125
"""Gangs of four pods of Poolwise, with a device each."""
THEIRS = 20
"""Pods with a device each of kube-scheduler."""
OUTAGES = (("apiserver", 2.0), ("etcd", 8.0), ("apiserver", 4.0), ("etcd", 14.0))
"""Killed and paused processes, with the duration of the outage (s); the last one outlasts the lease of the scheduler."""
SETTLED_IN = 30.0
"""Seconds after the last arrival in which all pods run."""
YIELDS_IN = 30.0
"""Seconds after which Poolwise evicts its pod if the other scheduler does not release a device that both have allocated."""
EVICTED_IN = 5.0
"""Seconds with a reachable API server in which the eviction takes place then."""
CLAIMS_END_IN = 30.0
"""Seconds after which the claim of an evicted pod is gone; its controller waits up to 20 s after an outage."""
INCOMPLETE = "its gang was not complete within the time limit"


@dataclass
class Clients:
    """Clients that create pods, and that edit pods and claims, until `over`."""

    api: Api
    over: threading.Event = field(default_factory=threading.Event)
    pods: dict[str, dict[str, Any]] = field(default_factory=dict)  # name -> manifest
    refusals: list[str] = field(default_factory=list)  # of pods that the API server did not create at once
    edits: Counter[str] = field(default_factory=Counter)
    arrived: int = 0  # gangs

    def create(self, pod: dict[str, Any]) -> None:
        """Create a pod, repeating the request until the API server has it."""
        while not self.over.is_set():
            try:
                self.api.ask("POST", PODS, pod, timeout=20)
                break
            except (OSError, HTTPException):
                self.over.wait(0.5)
            except AssertionError as refused:
                self.refusals.append(f"{pod['metadata']['name']}: {refused}")
                if "AlreadyExists" in str(refused):
                    break
                self.over.wait(0.5)
        self.pods[pod["metadata"]["name"]] = pod

    def arrive(self) -> None:
        """Create all pods, gang by gang."""
        options: dict[str, Any] = {
            "cpu": "100m",
            "memory": "16Mi",
            "seconds": None,
            "claims": {"gpu": {"resourceClaimTemplateName": "gpu"}},
        }
        for gang in range(GANGS):
            labels = {LABEL: f"k{gang:03d}", f"{LABEL}/min-available": "4"}
            for i in range(4):
                self.create(make.pod(f"k{gang:03d}-{i}", labels=labels, **options))
            if gang % 5 == 0 and gang < 5 * THEIRS:
                self.create(make.pod(f"theirs-{gang:03d}", schedulerName="default-scheduler", **options))
            self.arrived = gang + 1
            self.over.wait(0.4)

    def edit(self) -> None:
        """Label pods and annotate claims in random order."""
        draw = random.Random(1)
        while not self.over.wait(0.02):
            for kind, changed in ((PODS, "labels"), (CLAIMS, "annotations")):
                try:
                    names = [item["metadata"]["name"] for item in self.api.ask("GET", kind, timeout=5)["items"]]
                    for name in draw.sample(names, min(len(names), 20)):
                        body = {"metadata": {changed: {"edited": f"{draw.random()}"}}}
                        self.api.ask("PATCH", f"{kind}/{name}", body, timeout=5)
                        self.edits[changed] += 1
                except (OSError, HTTPException, AssertionError):
                    self.over.wait(0.2)


@dataclass
class Watcher:
    """Independent checks of the cluster while its API server may fail, and of the scheduler's log."""

    plane: ControlPlane
    clients: Clients
    log: Path
    doubly_allocated: set[str] = field(default_factory=set)  # violations: devices in claims of both schedulers
    down: list[tuple[float, float]] = field(default_factory=list)  # begin and end of each outage, by the system clock

    def violations(self, *, moving: bool) -> set[str]:
        """Return violations; a device in several claims of kube-scheduler alone is a known defect of that one."""
        double = "is allocated to"  # several claims
        found = {each for each in problems(self.plane, moving=moving) if double not in each or "default/k" in each}
        self.doubly_allocated = {each for each in found if double in each and "default/theirs-" in each}
        return found

    def check(self) -> None:
        """Assert that there are no violations but devices in claims of both schedulers; do nothing if the API server fails."""
        try:
            found = self.violations(moving=True)
        except RuntimeError:
            return
        assert found == self.doubly_allocated

    def logged(self, event: str) -> list[dict[str, Any]]:
        """Return the lines of the scheduler's log with an event."""
        return [line for line in map(json.loads, self.log.read_text().splitlines()) if line["event"] == event]

    def is_settled(self) -> bool:
        """Check the cluster and recreate evicted pods; return whether all pods run and no device is in claims of both."""
        self.check()
        running = self.plane.phases()
        for name in {*self.clients.pods} - {*running}:
            assert any(line["pod"] == f"default/{name}" for line in self.logged("pod_evicted")), (
                f"pod {name} vanished; refusals: {self.clients.refusals}"
            )
            self.clients.create(self.clients.pods[name])
        return not self.doubly_allocated and Counter(running.values()) == {"Running": len(self.clients.pods)}

    def check_evictions(self) -> None:
        """Assert that Poolwise evicted pods for a device in two claims only, or their gangs, in time, and emitted events."""
        reports, events = self.logged("device_allocated_twice"), self.plane.get("events")
        told = {f"default/{event['involvedObject']['name']}" for event in events if event["reason"] == "Evicted"}
        assert {line["pod"] for line in self.logged("pod_evicted")} <= told
        for line in self.logged("pod_evicted"):
            if line["reason"] == INCOMPLETE:  # another pod of the gang was evicted
                continue
            report = next(each for each in reports if any(claim.startswith(f"{line['pod']}-gpu-") for claim in each["claims"]))
            seen, gone = (datetime.fromisoformat(each["time"]).timestamp() for each in (report, line))
            down = sum(max(0.0, min(end, gone) - max(begin, seen)) for begin, end in self.down)
            print(f"{line['pod']} was evicted {gone - seen:.1f} s after the report, {down:.1f} s of it in an outage")
            assert gone - seen - down < YIELDS_IN + EVICTED_IN * slowness()


def test_gangs_are_bound_whole_while_the_api_server_is_killed_and_etcd_is_paused(plane: ControlPlane, tmp_path: Path) -> None:
    """500 pods with claims arrive meanwhile, another client edits pods and claims, and kube-scheduler allocates devices too."""
    plane.apply([make.node(f"n{k}", rack=f"r{k // 5}", cpu="64") for k in range(10)])
    plane.apply([make.device_class("gpu", "gpu.example"), make.template("gpu", make.exactly("gpu"))])
    for k in range(10):
        plane.apply([make.devices("gpu.example", f"n{k}", *({"name": f"g{i}"} for i in range(56)), node=f"n{k}")])
    file, log = tmp_path / "scheduler.toml", tmp_path / "poolwise.log"
    file.write_text(SCHEDULER)
    clients = Clients(Api(plane))
    watcher = Watcher(plane, clients, log)
    arriving, editing = (threading.Thread(target=each, daemon=True) for each in (clients.arrive, clients.edit))
    try:
        with kube_scheduler(plane), scheduling(plane, str(file), "--lease", "default/outage", log=log) as process:
            plane.wait(lambda: "lease_acquired" in log.read_text(), 60, "a leader")
            arriving.start()
            editing.start()
            for k, (name, seconds) in enumerate(OUTAGES):
                while clients.arrived < (k + 1) * GANGS // (len(OUTAGES) + 1):
                    watcher.check()
                begun = time.time()
                _interrupt(plane, name, seconds)
                watcher.down.append((begun, time.time()))
            while arriving.is_alive():
                watcher.check()
            ended, evicted = time.monotonic(), watcher.doubly_allocated or watcher.logged("pod_evicted")
            until = SETTLED_IN + (YIELDS_IN + EVICTED_IN + CLAIMS_END_IN if evicted else 0)
            plane.wait(watcher.is_settled, until * slowness(), "all pods run, with devices of their own")
            print(f"\nall pods run {time.monotonic() - ended:.1f} s after the last arrival; edits: {dict(clients.edits)}")
            print("logged:", dict(Counter(json.loads(line)["event"] for line in log.read_text().splitlines())))
            clients.over.set()
            editing.join(20)
            if found := watcher.violations(moving=False):
                state = plane.kubectl("get", "pods,resourceclaims,events", "-o", "json", "--show-managed-fields")
                (tmp_path / "state.json").write_text(state)
            assert not found, f"{tmp_path}/state.json has the state of the cluster"
            watcher.check_evictions()
            assert process.poll() is None, "the scheduler ended"
            assert len(clients.pods) == 4 * GANGS + THEIRS
            assert min(clients.edits[changed] for changed in ("labels", "annotations")) > 0
    finally:
        clients.over.set()
        os.kill(_process_id(plane, "etcd"), signal.SIGCONT)
        restart(plane)
        plane.clear()


def _interrupt(plane: ControlPlane, name: str, seconds: float) -> None:
    """Kill the API server and start it again after some time, or pause etcd for that time."""
    process = _process_id(plane, name)
    os.kill(process, signal.SIGKILL if name == "apiserver" else signal.SIGSTOP)
    time.sleep(seconds)
    if name == "apiserver":
        wait_until(lambda: not is_alive(process), "the API server has ended")
        restart(plane)
    else:
        os.kill(process, signal.SIGCONT)


def _process_id(plane: ControlPlane, name: str) -> int:
    return int((plane.folder / f"{name}.pid").read_text())
