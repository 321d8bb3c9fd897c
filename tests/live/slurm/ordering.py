"""Order mode against a real Slurm: `make test-live`. Slurm starts jobs in the order that was set.

With POOLWISE_LIVE_RATES=1, on a machine that does nothing else, 400 priorities a second are asked for.
"""

from __future__ import annotations

import os
import random
import subprocess
import time
from pathlib import Path

import pytest

from tests.live.slurm.cluster import Cluster, why_not
from tests.live.slurm.daemon import Daemon
from tests.live.slurm.witness import Witness, wait_for

pytestmark = pytest.mark.skipif(bool(why_not(False)), reason=why_not(False) or "a Slurm is installed")
LINES = "PartitionName=queue Nodes=ALL OverSubscribe=EXCLUSIVE MaxTime=INFINITE State=UP\nLogTimeFormat=iso8601_ms\n"
MANY = 1000
RATE = 400.0 if os.environ.get("POOLWISE_LIVE_RATES") else 0.0
"""Priorities a second, read again, that are asked for whatever one scontrol does."""
SHUFFLED = '''
from pathlib import Path
import numpy as np
from poolwise.interfaces import QueuePolicy

class Shuffled(QueuePolicy):
    """The order that a file names, read at every pass."""
    kind = "opaque"
    def priority(self, queue, snapshot):
        rank = {int(name): k for k, name in enumerate(Path(__file__).with_name("order.txt").read_text().split())}
        return np.array([-float(rank.get(int(queue.table.id[job]), 0)) for job in queue.jobs])
'''


def bare_rate(cluster: Cluster, job: int) -> float:
    """Updates a second that one scontrol carries out now, of another partition's job."""
    lines, begun = f"update JobId={job} Comment=a\n" * 300, time.monotonic()
    subprocess.run(["scontrol"], input=lines.encode(), env=cluster.env, capture_output=True, check=True, timeout=60)
    return 300 / (time.monotonic() - begun)


def test_a_random_order_of_1000_is_held(tmp_path: Path) -> None:
    draw = random.Random(5)
    (tmp_path / "shuffled.py").write_text(SHUFFLED)
    (tmp_path / "scheduler.toml").write_text('version = 1\norder = "shuffled.py:Shuffled"\nbackfill = "easy"\n')
    with Cluster(LINES, accounting=False) as cluster, Witness(cluster, "queue") as witness:
        full = str(cluster.run("-p", "queue", "-N16", "-t10", seconds=600))
        wait_for("the cluster is full", lambda: cluster.ask("squeue", "-h", "-t", "RUNNING"), 20)
        foreign = cluster.run("-p", "main", "-N1", "-t1", seconds=1)
        jobs = [str(cluster.run("-p", "queue", "-N1", "-t1", seconds=0.2)) for _ in range(MANY)]
        other = cluster.ask("squeue", "-h", "-j", str(foreign), "-o", "%Q")
        order = tmp_path / "order.txt"

        def set_order() -> list[str]:
            draw.shuffle(jobs)
            order.write_text("\n".join(jobs))
            return list(jobs)

        def shown() -> list[str]:
            text = cluster.ask("squeue", "-h", "-t", "PENDING", "-p", "queue", "-o", "%Q;%i")
            rows = sorted((row.split(";") for row in text.split()), key=lambda row: -int(row[0]))
            return [row[1] for row in rows] if len({row[0] for row in rows}) == len(rows) else []

        bare = bare_rate(cluster, foreign)
        wanted = set_order()
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
            wait_for("the order is set", lambda: daemon.said("ordered"), 30)
            assert shown() == wanted
            again = set_order()
            wait_for("the next order is set", lambda: shown() == again, 60, 2.0)
            daemon.well()
            assert cluster.ask("squeue", "-h", "-j", str(foreign), "-o", "%Q") == other, "other partitions are left alone"
            cluster.ask("scancel", full)
            wait_for("some have started", lambda: len(witness.allocations()) > 100, 60)
            daemon.well()
            real = witness.allocations()
        started = sorted((job for job in real if job in again), key=lambda job: (real[job], again.index(job)))
        late = [abs(again.index(job) - k) for k, job in enumerate(started)]
        assert max(late) <= 16, "starts follow the order, up to those that are made together"
        first = daemon.said("ordered")[0]
        rate = first["changed"] / first["seconds"]
        said = f"{first['changed']} priorities written and read again in {first['seconds']:.2f} s: {rate:.0f}/s"
        print(f"{said}; for another order {[line['changed'] for line in daemon.said('ordered')[1:]]}")
        print(f"a bare scontrol beside the same load: {bare:.0f}/s")
        assert rate >= max(RATE, 0.8 * bare), "reading again and checking cost less than sessions side by side gain"
