"""Place mode against a real Slurm: `make test-live`. Jobs run exactly on the assigned nodes, and no pool is overdrawn."""

from __future__ import annotations

import os
import random
from pathlib import Path
from typing import Any

import pytest

from poolwise.slurm import hostlist
from tests.live.slurm.cluster import Cluster, missing_programs
from tests.live.slurm.daemon import Daemon
from tests.live.slurm.witness import Witness, wait_for

pytestmark = pytest.mark.skipif(bool(missing_programs(False)), reason=missing_programs(False) or "Slurm is installed")
LINES = """PartitionName=pools Nodes=ALL OverSubscribe=EXCLUSIVE MaxTime=INFINITE State=UP
LogTimeFormat=iso8601_ms
JobSubmitPlugins=lua
"""
JOBS = int(os.environ.get("POOLWISE_LIVE_JOBS", "500"))
LOCAL = 64
"""Memory of each node (GiB)."""


def test_jobs_run_on_their_assigned_nodes(tmp_path: Path) -> None:
    draw = random.Random(3)
    with Cluster(LINES, accounting=False) as cluster, Witness(cluster, "pools", 0.3) as witness:
        foreign = cluster.run("-p", "main", "--hold", "-N1", "-t1", seconds=1)
        options = ("--mode", "place", "--scheduler", "catalog:fm-easy", "--partition", "pools", "--interval", "0.3")
        remote: dict[str, tuple[int, int]] = {}
        with Daemon(cluster, tmp_path, *options) as daemon:
            for _ in range(JOBS):
                nodes = draw.choices((1, 2, 3, 4, 6), (60, 20, 10, 7, 3))[0]
                memory = draw.choice((16, 48, 80, 128, 200, 300))
                job = cluster.run(
                    "-p", "pools", f"-N{nodes}", "-t1", f"--comment=memory={memory}GiB", seconds=draw.choice((0.7, 0.7, 1, 2))
                )
                remote[str(job)] = nodes, max(0, memory - LOCAL)
            wait_for("all jobs are done", lambda: not cluster.call("squeue", "-h", "-p", "pools"), 300)
            daemon.assert_healthy()
        assigned = {line["job"]: line for line in daemon.events("assigned")}
        real = witness.allocations()
        assert set(remote) == set(assigned) == set(real) & set(remote)
        assert witness.samples > JOBS // 10 and not witness.overdrawn
        assert len(witness.nodes) >= 0.95 * JOBS
        for job, (nodes, lack) in remote.items():
            where = set(assigned[job]["nodes"])
            assert len(where) == nodes and witness.nodes.get(job, {frozenset(where)}) == {frozenset(where)}
            per_rack = [sum(1 for node in where if int(node[1:]) // 4 == rack) for rack in range(4)]
            expected = {f"pool_rack{rack}": count * lack for rack, count in enumerate(per_rack) if count and lack}
            assert assigned[job]["licenses"] == expected
            assert witness.licenses.get(job, expected) == expected
        late = sorted(real[job] - line["decided"] for job, line in assigned.items())
        print(f"{JOBS} jobs: from decision to running {late[len(late) // 2]:.2f} s median, {late[-1]:.2f} s at most")
        assert late[-1] < 10, "starts that Slurm does not make in time are withdrawn"
        assert "JobHeldUser" in cluster.call("squeue", "-h", "-j", str(foreign), "-o", "%r"), "other partitions are unchanged"


def test_rate_of_starts(tmp_path: Path) -> None:
    """Measure the jobs started per second when all fit."""
    many = 128
    with Cluster(LINES, accounting=False) as cluster:
        jobs = [str(cluster.run("-p", "main", "--hold", "-n1", "--mem=100", "-t5", seconds=60)) for _ in range(many)]
        cluster.call("scontrol", "hold", ",".join(jobs))  # turn the users' holds into an administrator's
        options = ("--mode", "place", "--scheduler", "catalog:share-fcfs", "--partition", "main", "--interval", "0.3")
        with Daemon(cluster, tmp_path, *options) as daemon, Witness(cluster, "none") as witness:
            running = lambda: cluster.call("squeue", "-h", "-t", "RUNNING", "-o", "%A").split()  # noqa: E731
            wait_for("all jobs run", lambda: len(running()) == many, 60)
            daemon.assert_healthy()
        real = witness.allocations()
        first = min(line["decided"] for line in daemon.events("assigned"))
        seconds = max(real[job] for job in jobs) - first
        print(f"{many} jobs running {seconds:.2f} s after the first decision ({many / seconds:.0f}/s)")
        cluster.call("scancel", "-p", "main")


def test_het_jobs_arrays_and_requeued_jobs_are_placed(tmp_path: Path) -> None:
    """Components with different requests start together on their own nodes; a requeued job is placed again at once."""
    with Cluster(LINES, accounting=False) as cluster:
        fixed = ("--parsable", "-o/dev/null", "-p", "pools", "-t5")
        gang = cluster.call(
            "sbatch", *fixed, "-N3", "--comment=memory=80GiB", ":", "-p", "pools", "-N2", "--wrap=sleep 60"
        ).strip()
        array = cluster.call("sbatch", *fixed, "--array=0-2", "-N1", "--comment=memory=96GiB", "--wrap=sleep 60").strip()
        options = ("--mode", "place", "--scheduler", "catalog:fm-easy", "--partition", "pools", "--interval", "0.3")
        with Daemon(cluster, tmp_path, *options) as daemon:

            def running() -> dict[str, tuple[str, str]]:
                text = cluster.call("squeue", "-h", "-r", "-t", "RUNNING", "-p", "pools", "-o", "%i;%N;%W")
                return {line.split(";")[0]: tuple(line.split(";")[1:]) for line in text.splitlines()}

            wait_for("all run", lambda: len(running()) == 5, 60)
            shown = running()
            daemon.assert_healthy()
            decided = {line["job"]: line for line in daemon.events("assigned")}
            nodes = {name: set(hostlist.expand(where)) for name, (where, _) in shown.items()}
            assert nodes[f"{gang}+0"] | nodes[f"{gang}+1"] == set(decided[gang]["nodes"]) and len(nodes[f"{gang}+0"]) == 3
            held = dict(part.split(":") for part in shown[f"{gang}+0"][1].split(","))
            assert {name: int(count) for name, count in held.items()} == decided[gang]["licenses"]
            assert sum(map(int, held.values())) == 5 * 16 and shown[f"{gang}+1"][1] in ("", "(null)")
            again = f"{array}_1"
            cluster.call("scontrol", "requeue", again)
            wait_for("it was placed again", lambda: len(placed(daemon, again)) == 2, 30)
            wait_for("it runs again", lambda: running().get(again, ("",))[0] == placed(daemon, again)[-1]["nodes"][0], 30)


def placed(daemon: Daemon, job: str) -> list[dict[str, Any]]:
    return [line for line in daemon.events("assigned") if line["job"] == job]
