"""A Slurm site under its own configuration: select/cons_tres, sched/backfill, priority/multifactor with fair share."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np

from benchmarks.case import Figures, case, seconds
from benchmarks.pools import mean_waiting
from poolwise.engines import simulate
from poolwise.engines.shared_nodes.replay import load, load_rare
from poolwise.files.factory import scheduler_of
from poolwise.files.machine import load_machine
from poolwise.files.scheduler import load_scheduler
from poolwise.model import Machine, Workload
from poolwise.quantities import DAY, SECOND
from poolwise.random import uniform

CONF = """SelectType=select/cons_tres
SelectTypeParameters=CR_CPU_Memory
SchedulerType=sched/backfill
PriorityType=priority/multifactor
PriorityDecayHalfLife=7-0
PriorityWeightAge=1000
PriorityWeightFairshare=10000
PriorityWeightJobSize=2000
PriorityMaxAge=7-0
"""
SCHEDULER = """version = 1
title = "site"
order = { name = "multifactor", conf = "slurm.conf", shares = "sshare.txt" }
backfill = { name = "slurm", conf = "slurm.conf" }
placement = { name = "topology_none", gpu_weights = false }
"""
SHARES = "Account|User|RawShares|RawUsage\nroot|||0\n" + "".join(
    f" a{account}||{1 + account % 3}|0\n" + "".join(f"  a{account}|u{user}|1|0\n" for user in range(account, 60, 6))
    for account in range(6)
)
"""Six accounts of ten users each, without usage before the start."""
NODES = (
    ("thin", 64, "256 GiB", 0, 0.55),
    ("wide", 128, "512 GiB", 0, 0.18),
    ("fat", 96, "1536 GiB", 0, 0.11),
    ("gpu4", 64, "512 GiB", 4, 0.08),
    ("gpu8", 96, "1024 GiB", 8, 0.08),
)
"""Node type: its cores, memory and GPUs, and its share of all nodes."""


def site(folder: Path, nodes: int) -> Machine:
    """Return a machine of five types of shared nodes and two partitions, written to a folder with its scheduler."""
    counts = {name: round(share * nodes) for name, *_, share in NODES}
    counts["thin"] += nodes - sum(counts.values())
    text = ["version = 1", 'name = "site"']
    for name, cores, memory, gpus, _ in NODES:
        resources = f"resources = {{ gpu = {gpus} }}\n" if gpus else ""
        text.append(f'[[node]]\nname = "{name}"\nallocation = "shared"\ncores = {cores}\nmemory = "{memory}"\n{resources}')
    text.append(f"[[rack]]\nnodes = {{ {', '.join(f'{name} = {count}' for name, count in counts.items())} }}\n")
    text.append('[[partition]]\nname = "cpu"\nnodes = ["thin", "wide", "fat"]\ndefault = true\n')
    text.append('[[partition]]\nname = "gpu"\nnodes = ["gpu4", "gpu8"]\n')
    for file, content in (
        ("machine.toml", "\n".join(text)),
        ("slurm.conf", CONF),
        ("sshare.txt", SHARES),
        ("slurm.toml", SCHEDULER),
    ):
        (folder / file).write_text(content)
    return load_machine(folder / "machine.toml")


def site_jobs(jobs: int, days: float, machine: Machine, load: float, *, seed: int = 0) -> Workload:
    """Return jobs of 60 users over some days that demand the share `load` of the cores; a sixth of the jobs request GPUs.

    Of the others, one in ten takes two to eight nodes. Runtimes are log-uniform over a factor of 1,440; users request one to
    five times as much, and 2 to 4 GiB for each core.
    """
    job = np.arange(1, jobs + 1)
    size, wide, runtime, guess, memory, gap, kind, who = (
        uniform(seed, f"site.{what}", job) for what in ("size", "wide", "runtime", "guess", "memory", "gap", "kind", "who")
    )
    gpu = np.where(kind < 1 / 6, 2 ** np.floor(size * 3).astype(np.int64), 0)
    cores = np.where(gpu > 0, 8 * gpu, np.floor(2 ** (size * 6)).astype(np.int64))
    parts = np.where((wide < 0.1) & (gpu == 0), 2 ** (1 + np.floor(wide * 30).astype(np.int64)), 1)
    cores = np.where(parts > 1, np.maximum(cores, 32), cores)
    user = np.floor(who**2 * 60).astype(np.int64)
    submit = np.sort(gap) * days * DAY
    demand = float((cores * parts * 1440**runtime).mean()) * jobs
    total = machine.capacity[:, machine.resource("cores")].sum()
    shortest = load * float(total) * days * DAY / SECOND / demand
    duration = np.maximum(np.ceil(shortest * 1440**runtime), 1).astype(np.int64)
    return Workload.of(
        (submit // SECOND).astype(np.int64) * SECOND,
        duration * SECOND,
        id=job,
        requested=np.ceil(duration * 5**guess / 60).astype(np.int64) * 60 * SECOND,
        requests={
            "nodes": parts,
            "cores": cores,
            "memory": cores * np.ceil(1024 * 2 ** (1 + memory)).astype(np.int64),
            "gpu": gpu,
        },
        attributes={
            "partition": np.where(gpu > 0, "gpu", "cpu"),
            "user": np.char.add("u", user.astype(str)),
            "account": np.char.add("a", (user % 6).astype(str)),
        },
        name="site",
    )


def measure(jobs: int, days: float, nodes: int, load_of_cores: float) -> Figures:
    """Return the CPU time of one simulation and the number of waiting jobs."""
    load(), load_rare()
    with tempfile.TemporaryDirectory() as folder:
        machine = site(Path(folder), nodes)
        scheduler = scheduler_of(load_scheduler(Path(folder) / "slurm.toml"))
        workload = site_jobs(jobs, days, machine, load_of_cores)
        spent, result = seconds(lambda: simulate(workload, machine, scheduler, engine="compiled"))
    return {"seconds": spent, "mean_waiting": mean_waiting(result.schedule)}


@case("slurm-week", seconds=("<=", 20))
def slurm_week() -> Figures:
    """Benchmark a week of 19,579 jobs on 217 mixed nodes at load 1.3: a deep queue."""
    return measure(19_579, 7, 217, 1.3)


@case("slurm-year", seconds=("<=", 60))
def slurm_year() -> Figures:
    """Benchmark a year of 100,000 jobs on 102 mixed nodes at load 1.0."""
    return measure(100_000, 365, 102, 1.0)
