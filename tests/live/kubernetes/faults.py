"""Fault injection between the scheduler and a real API server: no double allocation, no partly bound gang, no lost pod.

`POOLWISE_LIVE_FAULTS` multiplies the pods of each case (default 1); `POOLWISE_LIVE_SEEDS` lists the seeds, such as "1 2 3". If
`POOLWISE_LIVE_TALLY` names a file, the faults of each kind are added to those in the file, so that several invocations count
together; the last test requires a thousand.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Mapping
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from tests.helpers.machine_speed import slowness
from tests.live.kubernetes import objects as make
from tests.live.kubernetes.api import Api
from tests.live.kubernetes.checker import problems
from tests.live.kubernetes.control_plane import ControlPlane, scheduling
from tests.live.kubernetes.fault_workload import LABEL, SCHEDULER, prepare, workload
from tests.live.kubernetes.faulty import Fault, FaultyServer, faulty

SCALE = int(os.environ.get("POOLWISE_LIVE_FAULTS", "1"))
SEEDS = [int(seed) for seed in os.environ.get("POOLWISE_LIVE_SEEDS", "1").split()]
TALLY = os.environ.get("POOLWISE_LIVE_TALLY")
PODS = 68
WRITES = 12
"""Maximum number of writes per pod, including retries, undone starts and repeated messages; 5 without faults."""
CLAIMS = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims"
LOST = 4
"""Number of lost leases."""
ALL: Counter[str] = Counter(json.loads(Path(TALLY).read_text()) if TALLY and Path(TALLY).exists() else {})


def count(faults: Mapping[str, int]) -> None:
    """Add the faults of a case that left the cluster consistent to the tally."""
    ALL.update(faults)
    if TALLY:
        Path(TALLY).write_text(json.dumps(dict(sorted(ALL.items())), indent=1) + "\n")


def survive(plane: ControlPlane, server: FaultyServer, folder: Path, pods: int, seconds: float, *options: str) -> None:
    """Run the scheduler, restarting it whenever it dies, until all pods are done; check the cluster all the while.

    Fail after three times the seconds that the reference machine needs at most, and more on a slower one.
    """
    prepare(plane)
    plane.apply(workload(pods))
    (folder / "scheduler.toml").write_text(SCHEDULER)
    log = folder / "poolwise.log"
    command = [sys.executable, "-m", "poolwise", "live", "kubernetes", "--scheduler", str(folder / "scheduler.toml")]
    command += ["--kubeconfig", str(server.kubeconfig()), "--gang-limit", "20", "--lease", "none", *options]
    until, process = time.monotonic() + 3 * seconds * slowness(), None
    try:
        while set(plane.phases().values()) != {"Succeeded"}:
            if process is None or process.poll() is not None:
                assert process is None or process.returncode in (-9, 1), log.read_text()[-3000:]
                with log.open("ab") as file:
                    process = subprocess.Popen(command, stderr=file)
                server.victim = process.pid
            left = [name for name, phase in plane.phases().items() if phase != "Succeeded"]
            assert time.monotonic() < until, f"{len(left)} are left, such as {left[:5]}; {log.read_text()[-3000:]}"
            assert problems(plane, moving=True) == []
            time.sleep(2)
    finally:
        if process is not None:
            server.victim = None
            process.terminate()
            process.wait(20)
    many = len(workload(pods))
    print(f"\n{many} pods, {server.writes} writes, faults: {dict(server.faults)}")
    assert len(plane.phases()) == many, "a pod is lost"
    assert server.writes <= WRITES * many, "starts are begun and undone in an endless loop"
    assert problems(plane) == []
    count(server.faults)


CASES = {
    "answers": Fault(conflict=0.2, busy=0.2, broken=0.2, slow=0.1),
    "network": Fault(unsent=0.25, unanswered=0.25, cut=0.05, gone=0.5),
    "killed": Fault(kill_every=11, conflict=0.02),
    "all": Fault(0.12, 0.1, 0.1, 0.1, 0.12, 0.1, 0.02, 0.5, 41),
}


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", CASES)
def test_faults(name: str, seed: int, plane: ControlPlane, tmp_path: Path) -> None:
    with faulty(plane, CASES[name], seed) as server:
        try:
            survive(plane, server, tmp_path, PODS * SCALE, 260 * SCALE)
        finally:
            plane.clear()


def test_pods_finish_while_nodes_and_slices_vanish_and_return(plane: ControlPlane, tmp_path: Path) -> None:
    """Nodes and their devices are deleted and created again while pods start; pods of a deleted node may end with it."""
    prepare(plane)
    (tmp_path / "scheduler.toml").write_text(SCHEDULER)
    manifests = {name: json.loads(plane.kubectl("get", "resourceslice", name, "-o", "json")) for name in slices(plane)}
    for slice in manifests.values():
        slice["metadata"] = {"name": slice["metadata"]["name"]}
    plane.apply(workload(PODS))
    try:
        with scheduling(plane, str(tmp_path / "scheduler.toml"), "--gang-limit", "20", log=tmp_path / "log"):
            for k in range(6):
                node, slice = f"n{k}", sorted(manifests)[k % len(manifests)]
                plane.kubectl("delete", "node", node)
                plane.kubectl("delete", "resourceslice", slice)
                time.sleep(1)
                plane.apply([make.node(node, rack=f"r{k // 2}"), manifests[slice]])
                assert [p for p in problems(plane, moving=True) if "which does not exist" not in p] == []
            plane.wait(lambda: set(plane.phases().values()) <= {"Succeeded"}, 200, f"pods done: {plane.phases()}")
        assert problems(plane) == []
        count({"node gone": 6, "slice gone": 6})
    finally:
        plane.clear()


def slices(plane: ControlPlane) -> list[str]:
    return plane.kubectl("get", "resourceslices", "-o", "jsonpath={.items[*].metadata.name}").split()


def test_replica_takes_over_when_the_leader_is_killed(plane: ControlPlane, tmp_path: Path) -> None:
    """The leader is killed several times; the other replica continues."""
    prepare(plane)
    plane.apply(workload(60))
    (tmp_path / "scheduler.toml").write_text(SCHEDULER)
    command = [sys.executable, "-m", "poolwise", "live", "kubernetes", "--scheduler", str(tmp_path / "scheduler.toml")]
    command += ["--kubeconfig", str(plane.kubeconfig()), "--lease", "default/poolwise", "--lease-seconds", "6"]
    log, taken = tmp_path / "poolwise.log", []

    def begin() -> subprocess.Popen[bytes]:
        with log.open("ab") as file:
            return subprocess.Popen(command, stderr=file)

    replicas = [begin(), begin()]

    def another(gone: str) -> bool:
        """Return whether another replica leads; restart ended ones, as a Deployment does."""
        replicas[:] = [begin() if replica.poll() is not None else replica for replica in replicas]
        return leader(plane) != gone

    try:
        for _ in range(3):
            plane.wait(lambda: {leader(plane).split("_")[1]} <= {str(r.pid) for r in replicas}, 60, "one of these leads")
            holder = leader(plane)
            victim = next(r for r in replicas if str(r.pid) in holder.split("_"))
            victim.kill()
            victim.wait()
            killed = time.monotonic()
            plane.wait(partial(another, holder), 60, "the other leads")
            taken.append(time.monotonic() - killed)
            assert problems(plane, moving=True) == []
        plane.wait_done(60)
        assert problems(plane) == []
        count({"leader killed": len(taken)})
        print(f"\nthe other leads after {', '.join(f'{s:.1f} s' for s in taken)}")
    finally:
        for replica in replicas:
            replica.terminate()
            replica.wait(20)
        plane.clear()


GANGS, KILLED_FOR, KILL_EVERY, KILLS, SETTLED_IN = 125, 60.0, 2.0, 10, 30.0
"""Gangs of four pods that arrive while leaders are killed; all of them fit (times in seconds)."""


def test_gangs_are_bound_whole_while_leaders_are_killed_every_two_seconds(plane: ControlPlane, tmp_path: Path) -> None:
    """500 pods with claims arrive meanwhile; all of them are bound soon after the last kill, and no device is in two claims."""
    plane.apply([make.node(f"n{k}", rack=f"r{k // 5}", cpu="64") for k in range(10)])
    plane.apply([make.device_class("gpu", "gpu.example"), make.template("gpu", make.exactly("gpu"))])
    for k in range(10):
        plane.apply([make.devices("gpu.example", f"n{k}", *({"name": f"g{i}"} for i in range(52)), node=f"n{k}")])
    (tmp_path / "scheduler.toml").write_text(SCHEDULER)
    api, log, over = Api(plane), tmp_path / "poolwise.log", threading.Event()
    command = [sys.executable, "-m", "poolwise", "live", "kubernetes", "--scheduler", str(tmp_path / "scheduler.toml")]
    command += ["--kubeconfig", str(plane.kubeconfig()), "--lease", "default/killed", "--lease-seconds", "1.5"]

    def begin() -> subprocess.Popen[bytes]:
        with log.open("ab") as file:
            return subprocess.Popen(command, stderr=file)

    def holder() -> str:
        return plane.kubectl("get", "lease", "killed", "--ignore-not-found", "-o", "jsonpath={.spec.holderIdentity}")

    def arrive() -> None:
        for gang in range(GANGS):
            labels = {LABEL: f"k{gang:03d}", f"{LABEL}/min-available": "4"}
            claims = {"gpu": {"resourceClaimTemplateName": "gpu"}}
            options: dict[str, Any] = {"cpu": "100m", "memory": "16Mi", "seconds": None, "labels": labels, "claims": claims}
            api.create([make.pod(f"k{gang:03d}-{i}", **options) for i in range(4)], at_once=1)
            if over.wait(KILLED_FOR / GANGS * 0.9):
                return

    def kill() -> None:
        """Kill the process that leads, if one does, every `KILL_EVERY` seconds; restart it at once, as a Deployment does.

        On a slow machine, a new leader may take longer, so this continues until `KILLS` are killed.
        """
        due = time.monotonic()
        until, end = due + KILLED_FOR, due + 10 * KILLED_FOR
        while (due := due + KILL_EVERY) < (until if len(kills) >= KILLS else end):
            if over.wait(max(0.0, due - time.monotonic())):
                return
            leading = holder().split("_")
            for victim in [replica for replica in replicas if str(replica.pid) in leading and replica.poll() is None]:
                victim.kill()
                victim.wait()
                kills.append(time.monotonic())
            replicas[:] = [begin() if replica.poll() is not None else replica for replica in replicas]

    replicas, kills = [begin(), begin()], list[float]()
    arriving, killing = threading.Thread(target=arrive, daemon=True), threading.Thread(target=kill, daemon=True)
    try:
        plane.wait(holder, 60, "a leader")
        arriving.start()
        killing.start()
        while killing.is_alive():
            assert problems(plane, moving=True) == []
        ended = time.monotonic()
        arriving.join()
        many = 4 * GANGS
        assert len(plane.phases()) == many
        plane.wait(
            lambda: plane.count("Running") == many, SETTLED_IN * slowness(), f"{plane.count('Running')} of {many} pods run"
        )
        print(f"\n{len(kills)} leaders killed; all pods run {time.monotonic() - ended:.1f} s after the last fault")
        assert problems(plane) == []
        assert len(kills) >= KILLS
        count({"leader killed": len(kills)})
    finally:
        over.set()
        if killing.ident is not None:
            killing.join(20)
        for replica in replicas:
            replica.terminate()
            replica.wait(20)
        plane.clear()


CLOCKS = ((3600.0, 1.0), (-3600.0, 1.3))
"""For two replicas: offset of the system clock (s), and rate of the clock that times leases."""


def test_no_two_replicas_write_with_lost_leases_and_skewed_clocks(plane: ControlPlane, tmp_path: Path) -> None:
    """The leader cannot renew its lease but everything else works: it stops writing before the other replica starts."""
    prepare(plane)
    (tmp_path / "scheduler.toml").write_text(SCHEDULER)
    api, log, root = Api(plane), tmp_path / "poolwise.log", Path(__file__).parents[3]
    options = ["--scheduler", str(tmp_path / "scheduler.toml"), "--lease", "default/skewed", "--lease-seconds", "6"]

    def begin(k: int) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "tests.live.kubernetes.skewed", *map(str, CLOCKS[k]), "live", "kubernetes", *options]
        with log.open("ab") as file:
            return subprocess.Popen([*command, "--kubeconfig", str(servers[k].kubeconfig())], stderr=file, cwd=root)

    def leads() -> int:
        """Return the replica that leads, -1 if none does; restart ended ones, as a Deployment does."""
        for k, replica in enumerate(replicas):
            if replica.poll() is not None:
                assert replica.returncode == 1, log.read_text()[-3000:]
                replicas[k] = begin(k)
        holder = plane.kubectl("get", "lease", "skewed", "--ignore-not-found", "-o", "jsonpath={.spec.holderIdentity}")
        return next((k for k, replica in enumerate(replicas) if str(replica.pid) in holder.split("_")), -1)

    def arrive() -> None:
        for k in range(1000):
            api.create([make.pod(f"p{k:04d}", cpu="100m", memory="1Mi", seconds=0.2)])
            if over.wait(0.2):
                return

    over, arriving = threading.Event(), threading.Thread(target=arrive, daemon=True)
    with faulty(plane, Fault()) as first_server, faulty(plane, Fault()) as other:
        servers = (first_server, other)
        replicas = [begin(0), begin(1)]
        try:
            plane.wait(lambda: leads() >= 0, 60, "one leads")
            arriving.start()
            for _ in range(LOST):
                first = leads()
                servers[first].leases = False
                plane.wait(lambda first=first: leads() == 1 - first, 60, "the other leads")
                time.sleep(2)  # the first would still write in this time if it had not noticed
                servers[first].leases = True
                assert problems(plane, moving=True) == []
            over.set()
            arriving.join()
            plane.wait_done(90)
            assert problems(plane) == []
        finally:
            over.set()
            for replica in replicas:
                replica.terminate()
                replica.wait(20)
            plane.clear()
        spans = sorted((*span, k) for k, server in enumerate(servers) for span in server.spans)
        turns = [(after, before) for before, after in pairwise(spans) if before[2] != after[2]]
        print(f"\n{len(spans)} writes, {len(turns)} turns, {', '.join(f'{a[0] - b[1]:.1f} s' for a, b in turns)} between them")
        assert 0 < len(turns) <= LOST, "both replicas write"
        assert all(after[0] > before[1] for after, before in turns), "one replica writes while the other one does"
        count({"lease lost": LOST, "clock wrong": len(CLOCKS)})


def leader(plane: ControlPlane) -> str:
    plane.wait(lambda: plane.kubectl("get", "lease", "poolwise", "--ignore-not-found"), 20, "a lease")
    identity = plane.kubectl("get", "lease", "poolwise", "-o", "jsonpath={.spec.holderIdentity}")
    while not identity:
        time.sleep(0.2)
        identity = plane.kubectl("get", "lease", "poolwise", "-o", "jsonpath={.spec.holderIdentity}")
    return identity


def test_enough_faults_were_injected() -> None:
    print(f"\n{sum(ALL.values()):,} faults: {dict(ALL)}")
    assert sum(ALL.values()) >= 1000
