"""Generate the shipped example of an accounting export: synthetic jobs of a cluster of 32 nodes x 32 CPUs x 256 GiB.

Running the module rewrites the shipped file; a test compares the two.
"""

import math
import random
from datetime import UTC, datetime, timedelta
from pathlib import Path

from poolwise import catalog

FIELDS = (
    "JobIDRaw|Submit|Start|State|NNodes|AllocCPUS|ElapsedRaw|TimelimitRaw|ReqMem|MaxRSS|NTasks|Partition|AllocTRES"
)  # fmt: skip
JOBS, CORES, GIB = 400, 32, 2**20  # GIB in KiB, the unit of MaxRSS
BEGIN = datetime(2026, 3, 1, tzinfo=UTC)


def rows() -> list[str]:
    """Return the lines of the export."""
    dice = random.Random(20260301)
    lines, submits = [FIELDS], [BEGIN]
    while len(submits) < JOBS:
        submits.append(submits[-1] + timedelta(seconds=int(dice.expovariate(1 / 1250))))
    for number, submit in enumerate(submits, start=48_000):
        lines += job(dice, number, submit, submits[-1] + timedelta(minutes=5))
    return lines


def job(dice: random.Random, number: int, submit: datetime, exported: datetime) -> list[str]:
    """Return the rows of a job, its batch step and, if it is parallel, its parallel step."""
    nodes = dice.choices([1, 2, 4, 8, 16], [10, 5, 4, 2, 1])[0]
    cpus = dice.choices([4, 16, CORES], [2, 2, 6])[0] if nodes == 1 else nodes * CORES
    run = int(min(dice.lognormvariate(8.9, 1.1), 86_400))
    used = min(dice.lognormvariate(3.6, 1.0) * (1 if cpus >= CORES else cpus / CORES), 240.0)  # GiB on each node
    requested = min(256, 8 * math.ceil(used * dice.uniform(1.05, 2.0) / 8))  # GiB on each node
    limit = dice.choices(
        [str(60 * math.ceil(run * dice.uniform(1.05, 4.0) / 3600)), "UNLIMITED", "Partition_Limit"], [94, 3, 3]
    )[0]
    state = dice.choices(["COMPLETED", "FAILED", "CANCELLED by 1007", "TIMEOUT", "OUT_OF_MEMORY"], [84, 7, 5, 3, 1])[0]
    start = submit + timedelta(seconds=int(dice.expovariate(1 / 900)))
    fate = dice.random()
    if fate < 0.02:  # never ran
        return [line(number, submit, None, "CANCELLED by 1007", nodes, 0, 0, limit, f"{requested * nodes}G", "", "", "")]
    if state == "TIMEOUT" and limit.isdecimal():
        run = int(limit) * 60 + dice.randrange(30)
    if start > exported:
        return [line(number, submit, None, "PENDING", nodes, 0, 0, limit, f"{requested * nodes}G", "", "", "")]
    if start + timedelta(seconds=run) > exported:
        state, run = "RUNNING", (exported - start).seconds
    tres = f"billing={cpus},cpu={cpus},mem={requested * nodes}G,node={nodes}"
    own = line(number, submit, start, state, nodes, cpus, run, limit, f"{requested * nodes}G", "", "", tres)
    state = state.partition(" ")[0]
    if fate < 0.06 or state == "RUNNING":  # without a memory sample
        return [own, line(f"{number}.batch", start, start, state, 1, min(cpus, CORES), run, "", "", "0", 1, "")]
    tasks = nodes * dice.choice([1, 4, CORES]) if nodes > 1 else 1
    batch = used if nodes == 1 else 0.01
    steps = [line(f"{number}.batch", start, start, state, 1, min(cpus, CORES), run, "", "", kilobytes(batch), 1, "")]
    steps.append(line(f"{number}.extern", start, start, "COMPLETED", nodes, cpus, run, "", "", "0", nodes, ""))
    if nodes > 1:
        peak = kilobytes(used / (tasks // nodes))
        steps.append(line(f"{number}.0", start, start, state, nodes, cpus, run - 2, "", "", peak, tasks, ""))
    return [own, *steps]


def line(number, submit, start, state, nodes, cpus, run, limit, requested, used, tasks, tres) -> str:
    """Return one row; only rows of jobs contain a partition."""
    times = (submit.strftime("%Y-%m-%dT%H:%M:%S"), start.strftime("%Y-%m-%dT%H:%M:%S") if start else "None")
    partition = "" if "." in str(number) else "batch"
    return "|".join(map(str, (number, *times, state, nodes, cpus, run, limit, requested, used, tasks, partition, tres)))


def kilobytes(gib: float) -> str:
    return f"{math.ceil(gib * GIB)}K"


def text() -> str:
    """Return the content of the file."""
    return "\n".join(rows()) + "\n"


if __name__ == "__main__":
    (Path(catalog.FOLDER) / "traces" / "example-sacct.txt").write_text(text(), encoding="utf-8")
