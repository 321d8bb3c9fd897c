"""A machine of two shared nodes with a memory pool, and jobs whose memory is split between node and pool."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from poolwise.model import Machine, MachineBuilder, Placement, Workload
from poolwise.performance.cpu_frequency import CpuFrequency
from poolwise.performance.profiles import Profile

CORES, MEMORY, POOL = 0, 1, 2
LINEAR = Profile("linear", (0.0, 0.75), (0.0, 3.0))


def split_machine(memory: int = 100, pool: int = 150, cores: int = 4) -> Machine:
    build = MachineBuilder("split", ("cores", "memory"))
    for name in ("n0", "n1"):
        build.node(name, cores=cores, memory=f"{memory} MiB")
    build.pool("far", memory=f"{pool} MiB")
    return Machine.of(build)


def split(node: int, local: int, remote: int, cores: int = 1) -> Placement:
    return Placement.of([(0, node, CORES, cores), (0, node, MEMORY, local), (0, POOL, MEMORY, remote)])


def split_jobs(submit: Sequence[int], duration: Sequence[int], memory: Sequence[int]) -> Workload:
    ones = np.ones(len(submit), dtype=np.int64)
    requests = {"cores": ones, "memory": np.array(memory)}
    attributes = {"profile": np.array(["kmeans"] * len(submit))}
    return Workload.of(np.array(submit), np.array(duration), requests=requests, attributes=attributes)


MODEL = CpuFrequency()
"""Slowdown P^m at the fraction of a run's memory that is in the pool."""
