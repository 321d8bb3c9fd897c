"""Place mode on shared nodes, with memory pools, NVMe and GPUs of racks: `make test-live`."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.live.slurm.cluster import Cluster, missing_programs
from tests.live.slurm.daemon import Daemon
from tests.live.slurm.witness import Witness, wait_for

pytestmark = pytest.mark.skipif(bool(missing_programs(False)), reason=missing_programs(False) or "Slurm is installed")
LICENSES = "nvme_rack0:4,nvme_rack1:4,gpu_rack2:2"
JOBS = 80
CORES, LOCAL = 16, 64
"""Per node; local memory in GiB."""


def test_jobs_share_nodes_and_devices_of_racks(tmp_path: Path) -> None:
    draw = random.Random(7)
    lines = "LogTimeFormat=iso8601_ms\n"
    with Cluster(lines, accounting=False, licenses=LICENSES) as cluster, Witness(cluster, "none", 0.3) as witness:
        requested: dict[str, tuple[int, int, str, int]] = {}
        for _ in range(JOBS):
            cores, memory = draw.choice((1, 2, 4, 8)), draw.choice((4, 16, 48, 96))
            kind = draw.choice(("", "", "nvme", "gpu"))
            count = draw.choice((1, 2)) if kind else 0
            comment = f"memory={memory}GiB{f' {kind}={count}' if kind else ''}"
            words = ("-p", "main", "--hold", "-N1", "-n1", f"-c{cores}", "--mem=100", "-t1", f"--comment={comment}")
            requested[str(cluster.run(*words, seconds=draw.choice((0.7, 1, 2))))] = cores, memory, kind, count
        cluster.call("scontrol", "hold", ",".join(requested))  # turn the users' holds into an administrator's
        options = ("--mode", "place", "--scheduler", "catalog:compose-fm", "--partition", "main", "--interval", "0.3")
        with Daemon(cluster, tmp_path, *options) as daemon:
            wait_for("all jobs are done", lambda: not cluster.call("squeue", "-h", "-p", "main"), 120)
            daemon.assert_healthy()
        assert not daemon.events("job_given_back"), daemon.events("job_given_back")
        assigned = {line["job"]: line for line in daemon.events("assigned")}
        assert set(assigned) == set(requested) and not witness.overdrawn and not daemon.events("placement_mismatch")
        shared = set[str]()
        for job, (_, memory, kind, count) in requested.items():
            (node,) = assigned[job]["nodes"]
            licenses = dict(assigned[job]["licenses"])
            devices = {name: number for name, number in licenses.items() if not name.startswith("pool_")}
            assert sum(devices.values()) == count and all(name.startswith(f"{kind}_") for name in devices)
            pool = f"pool_rack{int(node[1:]) // 4}"
            assert {name for name in licenses if name not in devices} <= {pool}
            assert memory - LOCAL <= licenses.get(pool, 0) <= memory
            assert witness.licenses.get(job, licenses) == licenses
            shared |= {node} if sum(line["nodes"] == [node] for line in assigned.values()) > 1 else set()
        assert shared, "no two jobs shared a node"
        for sample in witness.shares:
            for node, jobs in sample.items():
                assert sum(requested[job][0] for job in jobs) <= CORES, f"{node}: {jobs}"
        assert any(len(jobs) > 1 for sample in witness.shares for jobs in sample.values()), "no two jobs ran on one node"
