"""Let a real Slurm run a day in small and record it: `python -m tests.live.slurm.day FOLDER [SECONDS]`.

The day has a few hundred jobs of seconds in place of hours on 16 nodes, its arrivals crowded around noon. Recorded are what
decides (slurm.conf, shares, QOS), the jobs with the milliseconds at which the controller's log says that they were
submitted, started and completed, when it recalculated priorities and began to backfill, and the priorities it worked out.
"""

from __future__ import annotations

import csv
import json
import random
import re
import sys
import time
from datetime import datetime
from pathlib import Path

from tests.live.slurm.cluster import Cluster, wait_until

PARAMETERS = "sched_interval=30,batch_sched_delay=0,bf_interval=10,bf_window=60,bf_max_job_test=50,bf_resolution=10"
LINES = """PriorityWeightAge=10000
PriorityWeightFairshare=20000
PriorityWeightJobSize=5000
PriorityWeightPartition=8000
PriorityWeightQOS=15000
PriorityWeightTRES=cpu=3000,mem=2000
PriorityMaxAge=00:10:00
PriorityCalcPeriod=1
PriorityDecayHalfLife=00:05:00
AccountingStorageEnforce=associations
LogTimeFormat=iso8601_ms
DebugFlags=Backfill,Priority
PartitionName=short Nodes=ALL MaxTime=3 PriorityJobFactor=4 State=UP
"""
COLUMNS = (
    "id",
    "user",
    "account",
    "qos",
    "partition",
    "nice",
    "nodes",
    "cpus",
    "limit_s",
    "submit_ms",
    "start_ms",
    "end_ms",
    "by",
)
_EVENT = re.compile(
    r"\[(?P<at>[^]]+)] (?:(?P<submit>_slurm_rpc_submit_batch_job: JobId=)|(?P<start>sched: Allocate JobId=)"
    r"|(?P<backfill>sched/backfill: _start_job: Started JobId=)|(?P<end>_job_complete: JobId=))(?P<job>\d+)(?P<rest>.*)"
)

_PRIORITY = re.compile(r"\[(?P<at>[^]]+)] priority/multifactor: \S+ Job (?P<job>\d+) priority: .* = (?P<sum>-?[\d.]+)")
_MARKS = {"recalculations": "_ft_debug: ", "backfills": "_attempt_backfill: beginning"}


def record(folder: Path, seconds: int = 1440) -> None:
    """Run the day and write what is recorded to a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    with Cluster(LINES, PARAMETERS) as cluster:
        (folder / "slurm.conf").write_text(cluster.public_conf())
        (folder / "sshare.txt").write_text(cluster.ask("sshare", "-a", "-l", "-P"))
        (folder / "qos.txt").write_text(cluster.ask("sacctmgr", "-P", "show", "qos", "format=Name,Priority"))
        jobs = _submit_all(cluster, seconds)
        while cluster.ask("squeue", "-h"):
            time.sleep(2)
        text = cluster.log.read_text()
    times, instants = _read_log(text)
    origin = min(times[job]["submit"] for job in jobs) // 1000 * 1000
    with (folder / "jobs.csv").open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(COLUMNS)
        for job, row in jobs.items():
            known = times[job]
            writer.writerow([job, *row, *(known[name] - origin for name in ("submit", "start", "end")), known["by"]])
    facts = {name: [at - origin for at in found] for name, found in instants.items()}
    (folder / "instants.json").write_text(json.dumps(facts) + "\n")
    worked_out = read_priorities(text, instants["recalculations"])
    rows = [f"{at - origin},{job},{priority}" for at, job, priority in worked_out if job in jobs]
    (folder / "priorities.csv").write_text("\n".join(["recalculated_ms,job,priority", *rows]) + "\n")


def _submit_all(cluster: Cluster, seconds: int) -> dict[int, tuple[object, ...]]:
    """Submit the day's jobs at their times; id -> user, account, QOS, partition, nice, nodes, CPUs, limit (s)."""
    draw = random.Random(17)
    count = seconds * 240 // 1440
    arrivals = sorted(draw.triangular(0.0, 0.95, 0.4) * seconds for _ in range(count))
    users = list(cluster.users())
    begun, jobs = time.time() + 1, {}
    for at in arrivals:
        account, user = draw.choice(users)
        nodes = draw.choices([1, 2, 3, 4, 8, 16], [35, 25, 10, 15, 11, 4])[0]
        runtime = min(max(round(draw.lognormvariate(2.5, 0.7)), 3), 150)
        limit = min(-(-round(runtime * draw.uniform(1.2, 3)) // 60), 5)
        quality = "high" if draw.random() < 0.15 else "normal"
        partition = "short" if limit <= 3 and draw.random() < 0.3 else "main"
        nice = draw.choice([0, 0, 0, 10, 100, 1500])
        wait_until(begun + at)
        options = (f"-N{nodes}", "--ntasks-per-node=16", f"--time={limit}", f"--qos={quality}", f"--partition={partition}")
        job = cluster.submit(account, user, *options, f"--nice={nice}", seconds=runtime)
        jobs[job] = (user, account, quality, partition, nice, nodes, 16 * nodes, 60 * limit)
    return jobs


def _read_log(text: str) -> tuple[dict[int, dict[str, object]], dict[str, list[int]]]:
    """What the controller's log says of each job (ms since 1970), and of its own recalculations and backfill passes."""
    times: dict[int, dict[str, object]] = {}
    instants: dict[str, list[int]] = {"recalculations": [], "backfills": []}
    for line in text.splitlines():
        found = _EVENT.match(line)
        if found is None:
            for name, mark in _MARKS.items():
                if mark in line and (at := _ms(line[1:].partition("]")[0])) >= max([0, *instants[name]]) + 1000:
                    instants[name].append(at)
            continue
        of = times.setdefault(int(found["job"]), {})
        at = _ms(found["at"])
        if found["submit"]:
            of["submit"] = at
        elif found["start"]:
            of["start"], of["by"] = at, "main"
        elif found["backfill"]:
            of["start"], of["by"] = at, "backfill"
        elif found["rest"].startswith(" done"):
            of["end"] = at
    return times, instants


def read_priorities(text: str, recalculations: list[int]) -> list[tuple[int, int, int]]:
    """The priorities that the log says were worked out at recalculations: (ms since 1970, job, priority)."""
    found = []
    for line in text.splitlines():
        told = _PRIORITY.match(line)
        if told is not None:
            at = _ms(told["at"])
            before = [instant for instant in recalculations if instant <= at < instant + 1000]
            if before:
                found.append((before[-1], int(told["job"]), max(int(float(told["sum"])), 1)))
    return found


def _ms(text: str) -> int:
    return round(datetime.fromisoformat(text).timestamp() * 1000)


if __name__ == "__main__":
    record(Path(sys.argv[1]), *map(int, sys.argv[2:]))
