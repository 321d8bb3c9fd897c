"""A generated month of a Slurm site: slurm.conf, and an accounting export in the documented format.

The site has three partitions of different nodes. Its log has requeued jobs, arrays, heterogeneous jobs, NODE_FAIL, UNLIMITED
and Partition_Limit, timeouts, and jobs that wait, run or were cancelled.
"""

import random
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

JOBS = 3000
"""Jobs that the export names; requeued ones have two rows each."""
BEGIN = datetime(2026, 3, 1, tzinfo=UTC)
HEADER = (
    "JobIDRaw|JobID|User|Account|QOS|Partition|Constraints|Submit|Start|State|NNodes|AllocCPUS|ElapsedRaw|TimelimitRaw|"
    "ReqMem|MaxRSS|NTasks|AllocTRES"
)
CONF = """\
ClusterName=abbey
SelectType=select/linear
SchedulerType=sched/backfill
SchedulerParameters=bf_interval=300,bf_window=4320,bf_max_job_test=200
PriorityType=priority/multifactor
PriorityWeightAge=1000
PriorityWeightJobSize=2000
PriorityMaxAge=7-0
GresTypes=gpu
NodeName=n[01-40] Sockets=2 CoresPerSocket=16 RealMemory=196608 Feature=thin
NodeName=fat[1-8] CPUs=64 RealMemory=1572864 Feature=large
NodeName=gpu[1-6] CPUs=64 RealMemory=524288 Gres=gpu:a100:4 Feature=a100
PartitionName=batch Nodes=n[01-40] Default=YES MaxTime=3-0
PartitionName=fat Nodes=fat[1-8] MaxTime=7-0
PartitionName=gpu Nodes=gpu[1-6] MaxTime=2-0
"""
PARTITIONS = {"batch": (32, 192, 10, 70), "fat": (64, 1536, 3, 18), "gpu": (64, 512, 2, 12)}
"""Partition -> CPUs and GiB of a node, largest number of nodes of a job, and share of the jobs (%)."""


def text() -> str:
    """Return the export."""
    return "\n".join([HEADER, *_rows(random.Random(20260301))]) + "\n"


def write(folder: Path) -> None:
    """Write slurm.conf and sacct.txt to a folder."""
    (folder / "slurm.conf").write_text(CONF)
    (folder / "sacct.txt").write_text(text())


def _rows(dice: random.Random) -> Iterator[str]:
    named = [*_named(dice)]
    exported = named[-1][2] + timedelta(minutes=5)
    for job, (name, size, submit) in enumerate(named, start=1000):
        yield from _job(dice, job, name, submit, size, exported)


def _named(dice: random.Random) -> Iterator[tuple[str, tuple[str, int], datetime]]:
    """Yield the name, partition, number of nodes and submission of each job."""
    submit, job, last = BEGIN, 1000, 1000 + JOBS
    while job < last:
        submit += timedelta(seconds=1 + int(dice.expovariate(1 / 860)))
        kind, size = dice.random(), _size(dice)
        if kind < 0.02:  # an array: tasks of equal size
            tasks = min(8, last - job)
            yield from ((f"{job}_{task}", size, submit) for task in range(tasks))
            job += tasks
        elif kind < 0.04 and job < last - 1:  # a heterogeneous job of two components
            yield from ((f"{job}+{part}", _size(dice), submit) for part in (0, 1))
            job += 2
        else:
            yield str(job), size, submit
            job += 1


def _size(dice: random.Random) -> tuple[str, int]:
    name = dice.choices([*PARTITIONS], [share for *_, share in PARTITIONS.values()])[0]
    return name, min(PARTITIONS[name][2], dice.choices([1, 2, 4, 10], [60, 20, 15, 5])[0])


def _job(
    dice: random.Random, job: int, name: str, submit: datetime, size: tuple[str, int], exported: datetime
) -> Iterator[str]:
    """Yield the rows of a job, of its steps, and of its earlier run if it was requeued."""
    run = 60 + int(min(dice.lognormvariate(8.9, 1.2), 86_000))  # twice that is within the limit of each partition
    limit = dice.choices([str(-(-run * 2 // 60)), "UNLIMITED", "Partition_Limit"], [94, 3, 3])[0]
    states = ["COMPLETED", "FAILED", "CANCELLED by 1007", "NODE_FAIL", "OUT_OF_MEMORY"]
    state = dice.choices(states, [86, 6, 4, 2, 2])[0]
    user = f"u{dice.randrange(20):02}"
    fate = dice.random()
    if fate < 0.02:
        yield _row(job, name, user, size, submit, None, "CANCELLED by 1007", 0, limit)
        return
    if fate < 0.05:  # requeued after its node failed
        began = submit + timedelta(seconds=30)
        yield _row(job, name, user, size, submit, began, "NODE_FAIL", 600, limit)
        submit = began + timedelta(seconds=660)
    if fate > 0.99 and limit.isdecimal():
        state, run = "TIMEOUT", int(limit) * 60 + dice.randrange(30)
    start = submit + timedelta(seconds=int(dice.expovariate(1 / 2000)))
    if start > exported:
        yield _row(job, name, user, size, submit, None, "PENDING", 0, limit)
        return
    if start + timedelta(seconds=run) > exported:
        state, run = "RUNNING", int((exported - start).total_seconds())
    yield _row(job, name, user, size, submit, start, state, run, limit)
    yield _row(job, name, user, size, start, start, state.partition(" ")[0], run, "", step="batch")


def _row(
    job: int, name: str, user: str, size: tuple[str, int], submit: datetime, start: datetime | None, state: str, run: int,
    limit: str, step: str = "",
) -> str:  # fmt: skip
    partition, nodes = size
    cpus, memory, *_ = PARTITIONS[partition]
    stated = f"{memory * nodes // 2}G"
    began = "Unknown" if start is None else f"{start:%Y-%m-%dT%H:%M:%S}"
    if step:
        cells = [
            f"{job}.{step}",
            f"{name}.{step}",
            *[""] * 5,
            f"{submit:%Y-%m-%dT%H:%M:%S}",
            began,
            state,
            1,
            cpus,
            run,
            "",
            "",
        ]
        return "|".join(map(str, [*cells, f"{memory // 4}G", 1, ""]))
    cpus = 0 if start is None else cpus * nodes
    gpus = f",gres/gpu:a100={4 * nodes},gres/gpu={4 * nodes}" if partition == "gpu" else ""
    tres = f"billing={cpus},cpu={cpus}{gpus},mem={stated},node={nodes}" if cpus else ""
    own = [job, name, user, f"a{user[1]}", "normal", partition, "", f"{submit:%Y-%m-%dT%H:%M:%S}", began, state, nodes, cpus]
    return "|".join(map(str, [*own, run, limit, stated, "", "", tres]))
