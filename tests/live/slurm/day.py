"""Record a scaled-down day of a real Slurm: `python -m tests.live.slurm.day FOLDER [SECONDS]`.

The day has a few hundred jobs on 16 nodes that run for seconds instead of hours, with most arrivals around noon. The recording
contains the scheduling configuration (slurm.conf, shares, QOS); the jobs with their nodes and the milliseconds at which,
according to the controller's log, they were submitted, started and completed; the times at which the controller recalculated
priorities, ran its main scheduler and started a backfill pass; the priorities; and the result of each backfill pass per job.

Milliseconds count from the last full ten minutes before the first submission; this shift does not change how Slurm rounds.
"""

from __future__ import annotations

import csv
import json
import random
import re
import sys
import time
from collections.abc import Mapping
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
DebugFlags=Backfill,BackfillMap,Priority
SlurmSchedLogLevel=1
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
    "ran_on",
)
ORIGIN_MS = 600_000
"""Recorded times start at a multiple of this (ms since 1970)."""
_EVENT = re.compile(
    r"\[(?P<at>[^]]+)] (?:(?P<submit>_slurm_rpc_submit_batch_job: JobId=)|(?P<start>sched: Allocate JobId=)"
    r"|(?P<backfill>sched/backfill: _start_job: Started JobId=)|(?P<end>_job_complete: JobId=)"
    r"|(?P<held>sched/backfill: _dump_job_sched: JobId=))(?P<job>\d+)(?P<rest>.*)"
)
_HELD = re.compile(r" to start at (?P<start>[^,]+), .* on nodes (?P<nodes>\S+)")
_PRIORITY = re.compile(r"\[(?P<at>[^]]+)] priority/multifactor: \S+ Job (?P<job>\d+) priority: .* = (?P<sum>-?[\d.]+)")
_MARKS = {
    "recalculations": "_ft_debug: ",
    "backfills": "_attempt_backfill: beginning",
    "looks": "Running job scheduler",
}
_APART_MS = {"recalculations": 1000, "backfills": 1000, "looks": 1}
"""Log lines closer together than this belong to one event (ms)."""


def record(folder: Path, seconds: int = 1440) -> None:
    """Run the day and write the recording to a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    with Cluster(LINES, PARAMETERS) as cluster:
        (folder / "slurm.conf").write_text(cluster.public_conf())
        (folder / "sshare.txt").write_text(cluster.call("sshare", "-a", "-l", "-P"))
        (folder / "qos.txt").write_text(cluster.call("sacctmgr", "-P", "show", "qos", "format=Name,Priority"))
        jobs = _submit_all(cluster, seconds)
        while cluster.call("squeue", "-h"):
            time.sleep(2)
        text = cluster.log.read_text() + cluster.log.with_name("sched.log").read_text().replace("sched: [", "[")
    write(folder, jobs, text)


def write(folder: Path, jobs: Mapping[int, tuple[object, ...]], text: str) -> None:
    """Write the recording from the log; `jobs` maps id -> user, account, QOS, partition, nice, nodes, CPUs, limit (s)."""
    times, instants, tries = read_log(text)
    origin = int(min(times[job]["submit"] for job in jobs)) // ORIGIN_MS * ORIGIN_MS
    with (folder / "jobs.csv").open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(COLUMNS)
        for job, row in jobs.items():
            logged = times[job]
            when = (int(logged[name]) - origin for name in ("submit", "start", "end"))
            writer.writerow([job, *row, *when, logged["by"], logged["ran_on"]])
    facts = {name: [at - origin for at in ats] for name, ats in instants.items()}
    (folder / "instants.json").write_text(json.dumps(facts) + "\n")
    computed = read_priorities(text, instants["recalculations"])
    rows = [f"{at - origin},{job},{priority}" for at, job, priority in computed if job in jobs]
    (folder / "priorities.csv").write_text("\n".join(["recalculated_ms,job,priority", *rows]) + "\n")
    with (folder / "passes.csv").open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["pass_ms", "job", "start_s", "nodes"])
        writer.writerows([at - origin, job, start // 1000 - origin // 1000, nodes] for at, job, start, nodes in tries)


def _submit_all(cluster: Cluster, seconds: int) -> dict[int, tuple[object, ...]]:
    """Submit the day's jobs at their times; returns id -> user, account, QOS, partition, nice, nodes, CPUs, limit (s)."""
    draw = random.Random(17)
    count = seconds * 240 // 1440
    arrivals = sorted(draw.triangular(0.0, 0.95, 0.4) * seconds for _ in range(count))
    users = list(cluster.users())
    started_at, jobs = time.time() + 1, {}
    for at in arrivals:
        account, user = draw.choice(users)
        nodes = draw.choices([1, 2, 3, 4, 8, 16], [35, 25, 10, 15, 11, 4])[0]
        runtime = min(max(round(draw.lognormvariate(2.5, 0.7)), 3), 150)
        limit = min(-(-round(runtime * draw.uniform(1.2, 3)) // 60), 5)
        quality = "high" if draw.random() < 0.15 else "normal"
        partition = "short" if limit <= 3 and draw.random() < 0.3 else "main"
        nice = draw.choice([0, 0, 0, 10, 100, 1500])
        wait_until(started_at + at)
        options = (f"-N{nodes}", "--ntasks-per-node=16", f"--time={limit}", f"--qos={quality}", f"--partition={partition}")
        job = cluster.submit(account, user, *options, f"--nice={nice}", seconds=runtime)
        jobs[job] = (user, account, quality, partition, nice, nodes, 16 * nodes, 60 * limit)
    return jobs


_Tries = list[tuple[int, int, int, str]]


def read_log(text: str) -> tuple[dict[int, dict[str, int | str]], dict[str, list[int]], _Tries]:
    """Return the times of each job, the times of the controller's actions, and the backfill tries (all in ms since 1970).

    A try is (start of the pass, job, expected start, nodes).
    """
    times: dict[int, dict[str, int | str]] = {}
    instants: dict[str, list[int]] = {name: [] for name in _MARKS}
    tries: _Tries = []
    for line in text.splitlines():
        match = _EVENT.match(line)
        if match is None:
            for name, mark in _MARKS.items():
                if mark in line and (at := _ms(line[1:].partition("]")[0])) >= max([0, *instants[name]]) + _APART_MS[name]:
                    instants[name].append(at)
            continue
        job, of = int(match["job"]), times.setdefault(int(match["job"]), {})
        at = _ms(match["at"])
        if match["submit"]:
            of["submit"] = at
        elif match["start"] and "start" not in of:
            of |= {"start": at, "by": "main", "ran_on": match["rest"].split("NodeList=")[1].split()[0]}
        elif match["backfill"]:
            of |= {"start": at, "by": "backfill", "ran_on": match["rest"].split(" on ")[1].strip()}
            tries.append((instants["backfills"][-1], job, at, str(of["ran_on"])))
        elif match["held"] and (held := _HELD.match(match["rest"])):
            tries.append((instants["backfills"][-1], job, _ms(held["start"]), held["nodes"]))
        elif match["rest"].startswith(" done"):
            of["end"] = at
    return times, instants, tries


def read_priorities(text: str, recalculations: list[int]) -> list[tuple[int, int, int]]:
    """Return the priorities that the log shows at recalculations: (ms since 1970, job, priority)."""
    priorities = []
    for line in text.splitlines():
        match = _PRIORITY.match(line)
        if match is not None:
            at = _ms(match["at"])
            before = [instant for instant in recalculations if instant <= at < instant + 1000]
            if before:
                priorities.append((before[-1], int(match["job"]), max(int(float(match["sum"])), 1)))
    return priorities


def _ms(text: str) -> int:
    return round(datetime.fromisoformat(text).timestamp() * 1000)


if __name__ == "__main__":
    record(Path(sys.argv[1]), *map(int, sys.argv[2:]))
