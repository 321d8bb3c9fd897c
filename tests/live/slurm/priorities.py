"""Record how a real Slurm ranks waiting jobs: `python -m tests.live.slurm.priorities FOLDER`.

There are four configurations: fair tree; classic fair share that favors small jobs; job size relative to the time limit; and
weights of nodes, GPUs and licenses. Each recording contains slurm.conf, the dumps of shares and QOS, `scontrol show job` and
`sprio` for all waiting jobs, and the second of the last recalculation.
"""

from __future__ import annotations

import re
import sys
import time
from datetime import datetime
from pathlib import Path

from tests.live.slurm.cluster import Cluster
from tests.live.slurm.day import LINES, PARAMETERS

CASES = {
    "fair-tree": {},
    "classic-small-first": {"PriorityFlags": "NO_FAIR_TREE", "PriorityFavorSmall": "YES", "FairShareDampeningFactor": "2"},
    "size-over-time": {"PriorityFlags": "SMALL_RELATIVE_TO_TIME", "PriorityFavorSmall": "NO", "FairShareDampeningFactor": "1"},
}
"""Name -> keys of slurm.conf that differ from those of `day`."""
PRINTED = {
    "job": "%i", "priority": "%Y", "age": "%A", "fair_share": "%F", "job_size": "%J", "partition": "%P", "qos": "%Q",
    "nice": "%N", "tres": "%T",
}  # fmt: skip
"""Column -> format specification of sprio."""
WORKING = (("alpha", "root", 8), ("beta", "daemon", 1), ("gamma", "bin", 4), ("gamma", "games", 2))
"""Jobs that create usage before the recording: account, user, nodes."""
WAITING = (
    ("alpha", "root", "-N2", "--ntasks-per-node=16", "-t2"),
    ("alpha", "daemon", "-N2", "--ntasks-per-node=16", "-t5", "--qos=high"),
    ("gamma", "bin", "-N1", "-n4", "-t2", "--mem=3000", "--nice=7"),
    ("alpha", "bin", "-N3", "-n48", "--nice=123", "-pshort", "-t3"),
    ("gamma", "root", "-N1", "-n1", "--mem=1000", "--nice=-5", "-t60"),
    ("beta", "daemon", "-N16", "--ntasks-per-node=16", "--mem=60000", "-t1", "-pshort"),
    ("gamma", "games", "-N4", "--ntasks-per-node=3", "-t10", "--qos=high", "-pshort"),
    ("beta", "daemon", "-N5", "--ntasks-per-node=1", "-t1440", "--nice=90000"),
    ("alpha", "root", "-N16", "--ntasks-per-node=1", "-t7-0"),
)
GPUS = "weights-of-gpus"
"""Name of the case with weights of GPUs and licenses."""
GPU_LINES = LINES.replace("cpu=3000,mem=2000", "cpu=3000,mem=2000,node=400,gres/gpu=4000,license/matlab=700") + (
    "AccountingStorageTRES=gres/gpu,license/matlab\nPartitionName=gpu Nodes=n[012-015] PriorityJobFactor=2 State=UP\n"
)
WITH_GPUS = (
    ("alpha", "root", "-N1", "-n2", "-t2", "-pgpu", "--gres=gpu:1"),
    ("beta", "daemon", "-N2", "--ntasks-per-node=3", "-t2", "-pgpu", "--gres=gpu:3", "--mem=1000"),
    ("gamma", "bin", "-N4", "--ntasks-per-node=5", "-t2", "--gres=gpu:2", "--nice=7"),
    ("gamma", "games", "-N3", "--ntasks-per-node=16", "-t3", "-pgpu", "--gres=gpu:4", "-Lmatlab:1"),
    ("alpha", "bin", "-N1", "-n4", "-t2", "-Lmatlab:5", "--mem=3000"),
    ("gamma", "root", "-N16", "--ntasks-per-node=1", "-t2", "-pshort"),
)
"""As `WAITING`, for the case `GPUS`."""


def record_gpus(folder: Path) -> None:
    """Record the case `GPUS` in its own folder, on nodes some of which have GPUs."""
    with Cluster(GPU_LINES, PARAMETERS, gpus="0,0,2,4", licenses="matlab:6") as cluster:
        users = cluster.users()
        cluster.submit("beta", next(u for a, u in users if a == "beta"), "-N16", "--ntasks-per-node=16", "-t10", seconds=600)
        time.sleep(3)
        for account, user, *options in WITH_GPUS:
            user = user if (account, user) in users else next(u for a, u in users if a == account)
            cluster.submit(account, user, *options, seconds=5)
        time.sleep(5)  # gives the jobs an age
        cluster.change()
        time.sleep(3)
        _sample(cluster, folder / GPUS)


def record(folder: Path) -> None:
    """Record all cases of `CASES`, each in its own folder."""
    with Cluster(LINES, PARAMETERS) as cluster:
        users = cluster.users()
        for account, user, nodes in WORKING:
            user = user if (account, user) in users else next(u for a, u in users if a == account)
            cluster.submit(account, user, f"-N{nodes}", "--ntasks-per-node=16", "-t5", seconds=25)
        time.sleep(28)
        cluster.change()  # usage is updated when priorities are recalculated: every minute, and when the controller starts
        all_nodes = ("-N16", "--ntasks-per-node=16", "-t10")
        full = cluster.submit("beta", next(u for a, u in users if a == "beta"), *all_nodes, seconds=600)
        while str(full) not in cluster.call("squeue", "-h", "-t", "RUNNING", "-o", "%i").split():
            time.sleep(1)
        for account, user, *options in WAITING:
            user = user if (account, user) in users else next(u for a, u in users if a == account)
            cluster.submit(account, user, *options, seconds=5)
        time.sleep(10)  # gives the jobs an age
        for name, keys in CASES.items():
            cluster.change(**keys)
            time.sleep(3)
            _sample(cluster, folder / name)


def _sample(cluster: Cluster, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    printed = cluster.call("sprio", "-h", "-o", "|".join(PRINTED.values()))
    waiting = [line for line in cluster.call("scontrol", "-o", "show", "jobs").splitlines() if "JobState=PENDING" in line]
    (folder / "slurm.conf").write_text(cluster.public_conf())
    (folder / "sshare.txt").write_text(cluster.call("sshare", "-a", "-l", "-P"))
    (folder / "qos.txt").write_text(cluster.call("sacctmgr", "-P", "show", "qos", "format=Name,Priority"))
    jobs = {line.split()[0].partition("=")[2] for line in waiting}
    rows = [line for line in printed.replace(" ", "").splitlines() if line.partition("|")[0] in jobs]
    (folder / "sprio.txt").write_text("\n".join(["|".join(PRINTED), *rows]) + "\n")
    keys = ("JobId", "UserId", "Account", "QOS", "Partition", "Nice", "NumNodes", "TimeLimit", "SubmitTime", "TRES", "Priority")
    lines = [" ".join(word for word in line.split() if word.startswith(tuple(f"{key}=" for key in keys))) for line in waiting]
    (folder / "jobs.txt").write_text("\n".join(lines) + "\n")
    log = cluster.log.read_text()
    last = re.findall(r"\[([^]]+)] priority/multifactor: _get_priority_internal: Weighted Age", log)[-1]
    (folder / "recalculated.txt").write_text(datetime.fromisoformat(last).isoformat(timespec="seconds") + "\n")


if __name__ == "__main__":
    record(Path(sys.argv[1]))
    record_gpus(Path(sys.argv[1]))
