"""The golden schedules of racks with memory pools, and their 300 jobs, built without the readers of traces."""

import csv
from functools import cache

import numpy as np

from poolwise.model import Workload
from tests.helpers.data import PUBLISHED


@cache
def golden_jobs() -> Workload:
    """Return jobs of pool_golden_jobs.csv: nodes, memory (MiB each) and the quantile `u` of their slowdown."""
    with (PUBLISHED / "pool_golden_jobs.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))

    def column(name: str) -> np.ndarray:
        return np.array([int(row[name]) for row in rows], dtype=np.int64)

    return Workload.of(
        column("submit_ns"),
        column("duration_ns"),
        id=column("id"),
        requests={"nodes": column("nodes"), "memory": column("memory_mib")},
        attributes={"u": np.array([float(row["u"]) for row in rows])},
    )


@cache
def golden_times() -> dict[tuple[str, str, str], dict[int, tuple[int, int]]]:
    """Return (order, backfill, scope) -> id -> (start, end) in ns."""
    times: dict[tuple[str, str, str], dict[int, tuple[int, int]]] = {}
    with (PUBLISHED / "pool_golden.csv").open(newline="") as file:
        for row in csv.DictReader(file):
            case = times.setdefault((row["order"], row["backfill"], row["scope"]), {})
            case[int(row["id"])] = int(row["start_ns"]), int(row["end_ns"])
    return times
