"""A cluster with mixed nodes: its slurm.conf, and an export of its accounting with all that real exports contain.

`python -m tests.helpers.mixed_cluster FOLDER` writes slurm.conf and sacct.txt.
"""

import random
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

CONF = """# Cluster with thin, fat and GPU nodes
ClusterName=minster
SlurmctldHost=ctl
SlurmctldPort=6817
SchedulerType=sched/backfill
SchedulerParameters=bf_interval=60,bf_window=4320,bf_max_job_test=200,bf_continue
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
PriorityType=priority/multifactor
PriorityWeightAge=1000
PriorityWeightPartition=2000
OverTimeLimit=10
GresTypes=gpu
NodeName=DEFAULT Sockets=2 ThreadsPerCore=1
NodeName=n[01-72] CoresPerSocket=16 RealMemory=190000 Feature=thin,ib
NodeName=fat[1-8] CoresPerSocket=32 RealMemory=1536000 Feature=large,ib
NodeName=gpu[1-8] CoresPerSocket=32 RealMemory=512000 Gres=gpu:a100:4
PartitionName=DEFAULT DefaultTime=60 DefMemPerCPU=4000
PartitionName=batch Nodes=n[01-72] Default=YES MaxTime=3-0 PriorityJobFactor=5
PartitionName=short Nodes=n[01-72],fat[1-8] MaxTime=60 PriorityJobFactor=10
PartitionName=fat Nodes=fat[1-8] MaxTime=7-0
PartitionName=gpu Nodes=gpu[1-8] MaxTime=2-0
"""

FIELDS = (
    "JobIDRaw|JobID|User|Account|QOS|Partition|Constraints|Submit|Start|State|NNodes|AllocCPUS|ElapsedRaw|TimelimitRaw|ReqMem|"
    "MaxRSS|NTasks|AllocTRES"
)
CORES = {"batch": 32, "short": 32, "fat": 64, "gpu": 64}
BEGIN = datetime(2026, 3, 1, tzinfo=UTC)
STATES = ["COMPLETED", "FAILED", "CANCELLED by 1007", "TIMEOUT", "OUT_OF_MEMORY", "NODE_FAIL"]


def export(jobs: int = 3000, seed: int = 37, gap: float = 240.0) -> str:
    """Return an export with `jobs` jobs, submitted `gap` seconds apart on average."""
    dice, lines, number, at = random.Random(seed), [FIELDS], 70_000, BEGIN
    while jobs > 0:
        at += timedelta(seconds=int(dice.expovariate(1 / gap)))
        size = dice.choice([2, 4, 8]) if dice.random() < 0.05 else 1
        size = min(size, jobs)
        kind = dice.choices(["single", "array", "parts"], [1, 0, 0] if size == 1 else [0, 4, 1])[0]
        wait = timedelta(seconds=int(dice.expovariate(1 / 1800)))
        for k in range(size):
            name = {"single": f"{number}", "array": f"{number}_{k}", "parts": f"{number}+{k}"}[kind]
            lines += _job(dice, number + k, name, at, at + wait)
        number, jobs = number + size, jobs - size
    return "\n".join(lines) + "\n"


def _job(dice: random.Random, number: int, name: str, submit: datetime, start: datetime) -> list[str]:
    partition = dice.choices(["batch", "short", "fat", "gpu"], [11, 5, 1, 3])[0]
    cores = CORES[partition]
    nodes = dice.choices([1, 2, 4, 8], [12, 3, 2, 1])[0] if partition == "batch" else 1
    cpus = nodes * cores if nodes > 1 else dice.choice([cores // 8, cores // 4, cores])
    gpus = dice.choice([1, 1, 2, 4]) if partition == "gpu" else 0
    longest = {"batch": 72, "short": 1, "fat": 168, "gpu": 48}[partition] * 3600
    run = int(min(dice.lognormvariate(6.5 if partition == "short" else 9.3, 1.1), longest))
    limit = str(min(longest // 60, 30 * -(-int(run * dice.uniform(1.0, 4.0)) // 1800)))
    memory = max(cpus * dice.choice([1, 2, 4]), 1) if partition != "fat" else cpus * 20
    state = dice.choices(STATES, [80, 8, 5, 4, 2, 1])[0]
    if state == "TIMEOUT":
        run = int(limit) * 60 + dice.randrange(60)
    user = f"u{min(int(dice.paretovariate(1.1)), 40)}"
    who = (user, f"a{int(user[1:]) % 6}", "normal", partition, dice.choice(["", "", "", "ib"]) if gpus == 0 else "")
    tres = f"billing={cpus},cpu={cpus},{f'gres/gpu:a100={gpus},gres/gpu={gpus},' if gpus else ''}mem={memory}G,node={nodes}"
    if dice.random() < 0.02:
        return [_line(number, name, who, submit, None, "CANCELLED by 1007", nodes, 0, 0, limit, f"{memory}G", "", "", "")]
    own = _line(number, name, who, submit, start, state, nodes, cpus, run, limit, f"{memory}G", "", "", tres)
    rows = [own]
    if dice.random() < 0.02:  # an earlier run that lost its node
        lost = int(dice.uniform(60, 3600))
        rows.insert(0, _line(number, name, who, submit - timedelta(hours=2), submit - timedelta(hours=1), "NODE_FAIL", nodes, cpus, lost, limit, f"{memory}G", "", "", tres))  # fmt: skip  # noqa: E501
    used, step = int(memory * dice.uniform(0.2, 0.9) * 2**20 / nodes), state.partition(" ")[0]
    rows.append(_line(f"{number}.batch", f"{name}.batch", ("",) * 5, start, start, step, 1, min(cpus, cores), run, "", "", f"{used}K", 1, tres))  # fmt: skip  # noqa: E501
    return rows


def _line(number, name, who, submit, start, state, nodes, cpus, run, limit, memory, used, tasks, tres) -> str:
    times = (submit.strftime("%Y-%m-%dT%H:%M:%S"), start.strftime("%Y-%m-%dT%H:%M:%S") if start else "None")
    return "|".join(map(str, (number, name, *who, *times, state, nodes, cpus, run, limit, memory, used, tasks, tres)))


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "slurm.conf").write_text(CONF)
    (folder / "sacct.txt").write_text(export())
