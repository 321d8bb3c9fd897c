"""The compiled engine on nodes that jobs share, against the reference engine and by the number of nodes and waiting jobs."""

from __future__ import annotations

import numpy as np

from poolwise.draws import uniform
from poolwise.engines import Result, simulate
from poolwise.model import Kind, Machine, Workload
from poolwise.registry import make
from poolwise.schedulers.list import ListScheduler
from poolwise.units import SECOND

CORES, GIB = 64, 1024
MEMORY = 256 * GIB


def shared(nodes: int) -> Machine:
    """Nodes of 64 cores and 256 GiB, 50 to a rack."""
    rack = np.arange(nodes) // 50
    return Machine(
        name=f"{nodes} shared nodes",
        owners=tuple(f"n{k}" for k in range(nodes)),
        kind=np.full(nodes, Kind.NODE, dtype=np.int64),
        type=("node",) * nodes,
        rack=rack,
        position=np.stack([rack, np.arange(nodes) % 50], axis=1),
        home=np.full(nodes, -1),
        resources=("memory", "cores"),
        capacity=np.tile(np.array([MEMORY, CORES]), (nodes, 1)),
    )


def shared_jobs(jobs: int, nodes: int, load: float, *, seed: int = 0, burst: float = 1.0) -> Workload:
    """Jobs of one to all cores of a node, one in ten of two to eight nodes, with 1 to 8 GiB a core.

    Runtimes are log-uniform from a minute to a day; users ask for one to five times as much. Submissions are a Poisson
    process at which the machine is asked for `load` of its cores, or that is `burst` times as fast.
    """
    job = np.arange(1, jobs + 1)
    size, wide, runtime, guess, memory, gap = (
        uniform(seed, f"shared.{what}", job) for what in ("size", "wide", "runtime", "guess", "memory", "gap")
    )
    cores = np.floor(2 ** (size * 6)).astype(np.int64)
    parts = np.where(wide < 0.1, 2 ** (1 + np.floor(wide * 30).astype(np.int64)), 1)
    cores = np.where(parts > 1, np.maximum(cores, CORES // 2), cores)
    duration = np.ceil(60 * 1440**runtime).astype(np.int64)
    rate = load * nodes * CORES / float((cores * parts * duration).mean()) * burst
    submit = np.floor(np.cumsum(-np.log1p(-gap)) / rate).astype(np.int64)
    each = np.ceil(cores * 8**memory * 0.5).astype(np.int64) * GIB
    return Workload.of(
        submit * SECOND,
        duration * SECOND,
        id=job,
        requested=np.ceil(duration * 5**guess / 60).astype(np.int64) * 60 * SECOND,
        requests={"nodes": parts, "cores": cores, "memory": np.minimum(each, MEMORY)},
        name="shared",
    )


def run(
    machine: Machine, workload: Workload, placement: str = "first_fit", order: str = "fcfs", engine: str = "compiled"
) -> Result:
    """One run under EASY."""
    how = ListScheduler(make("orders", order), make("backfills", "easy"), make("placements", placement))
    return simulate(machine, workload, how, engine=engine)
