"""Machines and workloads of the benchmarks."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np

from poolwise.model import Machine, Workload
from poolwise.performance.remote_memory import RemoteMemory, sensitivity, sld_factor
from poolwise.quantities import SECOND
from poolwise.random import uniform
from poolwise.traces.generators import generate

LOCAL_MIB = 65_536
TIB = 1 << 20


def perlmutter(pool_tib: int) -> Machine:
    """Return 6 racks of 256 nodes with 64 GiB each, and a pool per rack."""
    return Machine.of_racks(6, 256, local=LOCAL_MIB, pool=pool_tib * TIB)


def perlmutter_jobs(jobs: int = 13_930, load: float = 1.0, seed: int = 0) -> Workload:
    """Return jobs of the calibrated generator."""
    return generate("perlmutter_like", jobs=jobs, load=load, seed=seed)


def overloaded(jobs: int, bursts: int = 1, *, remote: bool = False, processors: int = 512, seed: int = 0) -> Workload:
    """Return bursts of jobs that arrive a hundred times as fast as the machine serves them: nearly a whole burst waits at once.

    Numbers of nodes are powers of two up to a quarter of the machine; runtimes are log-uniform from a minute to a day, in whole
    seconds. With `remote`, half of the jobs request more memory than a node has, up to eight times as much. The queue empties
    between bursts.
    """
    job = np.arange(1, jobs * bursts + 1)
    size, runtime, gap, share, memory = (
        uniform(seed, f"overloaded.{what}", job) for what in ("nodes", "runtime", "gap", "share", "memory")
    )
    nodes = 2 ** np.floor(size * np.log2(processors // 2)).astype(np.int64)
    duration = np.ceil(60 * 1440**runtime).astype(np.int64)
    served = (nodes * duration).reshape(bursts, jobs).sum(axis=1) / processors
    begin = np.concatenate([[0.0], np.cumsum(4 * served + 10 * 86_400)[:-1]])
    submit = begin[:, None] + np.sort(gap.reshape(bursts, jobs), axis=1) * served[:, None] / 100
    requests = {"nodes": nodes}
    if remote:
        requests["memory"] = np.where(share < 0.5, LOCAL_MIB, np.ceil(LOCAL_MIB * 8**memory)).astype(np.int64)
    return Workload.of(
        np.floor(submit).astype(np.int64).ravel() * SECOND, duration * SECOND, id=job, requests=requests, name="overloaded"
    )


def with_slowdown(workload: Workload, machine: Machine) -> float:
    """Return the factor by which remote memory increases the load: work with all remote memory near, over work without any."""
    model, remote = RemoteMemory(), np.maximum(workload.memory - machine.local_memory, 0)
    factor = np.array([sld_factor(u, model.near_ns, model.curve) for u in ((np.arange(11) + 0.5) / 11).tolist()])
    slow = factor[(sensitivity(workload.table, model.seed) * 11).astype(np.int64)] * remote / np.maximum(workload.memory, 1)
    work = workload.nodes * workload.duration.astype(np.float64)
    return float((work * (1 + slow)).sum() / work.sum())


def write_naive(workload: Workload, path: Path) -> None:
    """Write the jobs file for `naive_pools`."""
    u = sensitivity(workload.table, 0)
    with path.open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["id", "submit_ns", "nodes", "duration_ns", "memory_mib", "u"])
        columns = (workload.id, workload.submit, workload.nodes, workload.duration, workload.memory, u)
        rows.writerows(zip(*(column.tolist() for column in columns), strict=True))
