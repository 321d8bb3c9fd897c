"""Workloads of the benchmarks."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np

from poolwise.draws import uniform
from poolwise.model import Machine, Workload
from poolwise.performance.remote_memory import sensitivity
from poolwise.traces.generators import generate
from poolwise.units import SECOND

LOCAL_MIB = 65_536
TIB = 1 << 20


def perlmutter(pool_tib: int) -> Machine:
    """6 racks of 256 nodes with 64 GiB each."""
    return Machine.of_racks(6, 256, local=LOCAL_MIB, pool=pool_tib * TIB)


def perlmutter_jobs(jobs: int = 13_930, load: float = 1.0, seed: int = 0) -> Workload:
    """Jobs of the calibrated generator."""
    return generate("perlmutter_like", jobs=jobs, load=load, seed=seed)


def overloaded(jobs: int, processors: int = 512, seed: int = 0) -> Workload:
    """Jobs without memory that arrive twice as fast as a flat machine serves them: half of them wait in the end.

    Nodes are powers of two up to a quarter of the machine, runtimes log-uniform from a minute to a day, to the second.
    """
    job = np.arange(1, jobs + 1)
    size, runtime, gap = (uniform(seed, f"overloaded.{what}", job) for what in ("nodes", "runtime", "gap"))
    nodes = 2 ** np.floor(size * np.log2(processors // 2)).astype(np.int64)
    duration = np.ceil(60 * 1440**runtime).astype(np.int64)
    last = float((nodes * duration).sum()) / processors / 2
    submit = np.floor(np.sort(gap) * last).astype(np.int64)
    return Workload.of(submit * SECOND, duration * SECOND, id=job, requests={"nodes": nodes}, name="overloaded")


def write_naive(workload: Workload, path: Path) -> None:
    """Write the jobs file that `naive_pools` reads."""
    u = sensitivity(workload, 0)
    with path.open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["id", "submit_ns", "nodes", "duration_ns", "memory_mib", "u"])
        columns = (workload.id, workload.submit, workload.nodes, workload.duration, workload.memory, u)
        rows.writerows(zip(*(column.tolist() for column in columns), strict=True))
