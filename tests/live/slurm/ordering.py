"""Order mode against a real Slurm: `make test-live`. Slurm starts jobs in the order of the priorities that Poolwise sets.

Set POOLWISE_LIVE_RATES=1 on an otherwise idle machine to require rates: 400 priorities per second, and 80 % of those of
a single scontrol.
"""

from __future__ import annotations

import os
import random
import subprocess
import time
from pathlib import Path

import pytest

from tests.live.slurm.cluster import Cluster, missing_programs
from tests.live.slurm.daemon import Daemon
from tests.live.slurm.witness import Witness, wait_for

pytestmark = pytest.mark.skipif(bool(missing_programs(False)), reason=missing_programs(False) or "Slurm is installed")
LINES = "PartitionName=queue Nodes=ALL OverSubscribe=EXCLUSIVE MaxTime=INFINITE State=UP\nLogTimeFormat=iso8601_ms\n"
MANY = 1000
RATE = 400.0 if os.environ.get("POOLWISE_LIVE_RATES") else 0.0
"""Verified priority updates per second that are required; 0 for none, because rates depend on the load of the machine."""
SHUFFLED = '''
from pathlib import Path
import numpy as np
from poolwise.interfaces import QueuePolicy

class Shuffled(QueuePolicy):
    """The order in a file that is read at every pass."""
    kind = "opaque"
    def priority(self, queue, snapshot):
        rank = {int(name): k for k, name in enumerate(Path(__file__).with_name("order.txt").read_text().split())}
        return np.array([-float(rank.get(int(queue.table.id[job]), 0)) for job in queue.jobs])
'''


def bare_rate(cluster: Cluster, job: int) -> float:
    """Return the updates per second that one scontrol achieves now on a job of another partition."""
    lines, started_at = f"update JobId={job} Comment=a\n" * 300, time.monotonic()
    subprocess.run(["scontrol"], input=lines.encode(), env=cluster.env, capture_output=True, check=True, timeout=60)
    return 300 / (time.monotonic() - started_at)


def test_jobs_start_in_a_random_order_of_1000(tmp_path: Path) -> None:
    draw = random.Random(5)
    (tmp_path / "shuffled.py").write_text(SHUFFLED)
    (tmp_path / "scheduler.toml").write_text('version = 1\norder = "shuffled.py:Shuffled"\nbackfill = "easy"\n')
    with Cluster(LINES, accounting=False) as cluster, Witness(cluster, "queue") as witness:
        full = str(cluster.run("-p", "queue", "-N16", "-t10", seconds=600))
        wait_for("the cluster is full", lambda: cluster.call("squeue", "-h", "-t", "RUNNING"), 20)
        foreign = cluster.run("-p", "main", "-N1", "-t1", seconds=1)
        jobs = [str(cluster.run("-p", "queue", "-N1", "-t1", seconds=0.2)) for _ in range(MANY)]
        other = cluster.call("squeue", "-h", "-j", str(foreign), "-o", "%Q")
        order = tmp_path / "order.txt"

        def set_order() -> list[str]:
            draw.shuffle(jobs)
            order.write_text("\n".join(jobs))
            return list(jobs)

        def shown() -> list[str]:
            text = cluster.call("squeue", "-h", "-t", "PENDING", "-p", "queue", "-o", "%Q;%i")
            rows = sorted((row.split(";") for row in text.split()), key=lambda row: -int(row[0]))
            return [row[1] for row in rows] if len({row[0] for row in rows}) == len(rows) else []

        bare = bare_rate(cluster, foreign)
        expected = set_order()
        options = (
            "--mode",
            "order",
            "--scheduler",
            str(tmp_path / "scheduler.toml"),
            "--partition",
            "queue",
            "--interval",
            "1",
        )
        with Daemon(cluster, tmp_path, *options) as daemon:
            wait_for("the order is set", lambda: daemon.events("priorities_written"), 30)
            assert shown() == expected
            again = set_order()
            wait_for("the next order is set", lambda: shown() == again, 60, 2.0)
            daemon.assert_healthy()
            assert cluster.call("squeue", "-h", "-j", str(foreign), "-o", "%Q") == other, "other partitions are unchanged"
            cluster.call("scancel", full)
            wait_for("some have started", lambda: len(witness.allocations()) > 100, 60)
            daemon.assert_healthy()
            real = witness.allocations()
        started = sorted((job for job in real if job in again), key=lambda job: (real[job], again.index(job)))
        late = [abs(again.index(job) - k) for k, job in enumerate(started)]
        assert max(late) <= 16, "starts follow the order, except within a batch that starts together"
        first = daemon.events("priorities_written")[0]
        rate = first["changed"] / first["seconds"]
        summary = f"{first['changed']} priorities written and verified in {first['seconds']:.2f} s: {rate:.0f}/s"
        print(f"{summary}; later orders changed {[line['changed'] for line in daemon.events('priorities_written')[1:]]}")
        print(f"a single scontrol under the same load: {bare:.0f}/s")
        if RATE:
            assert rate >= max(RATE, 0.8 * bare), "parallel sessions gain more than verification costs"
