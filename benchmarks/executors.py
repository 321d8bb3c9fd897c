"""Cluster executors with two processes compared, in turn, with two local processes; and a store of many cells."""

from __future__ import annotations

import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from benchmarks.case import Figures, case, seconds
from poolwise.hashing import digest
from poolwise.runner import Executor, Local, Record, Store, TaskType, find_executor
from tests.live.executors.clusters import DaskProcesses

CONTENT = {"inputs": {f"name{k}": f"value {k}" for k in range(60)}, "rejected": {}, "engine": "compiled"}
"""Content as large as a cell's record."""


@dataclass(frozen=True)
class Sleeping(TaskType[int]):
    """Tasks that sleep and use no CPU, so that overhead is measurable on a busy computer."""

    each_s: float

    def key(self, task: int) -> str:
        """Return the hash of the number."""
        return digest(str(task))

    def label(self, task: int) -> str:
        """Return the number."""
        return str(task)

    def run(self, task: int) -> Record:
        """Sleep, and return a record of the size of a cell with 700 jobs."""
        time.sleep(self.each_s)
        return Record(CONTENT, {"parquet": bytes(30_000)})


def elapsed(executor: Executor, each_s: float, cells: int) -> float:
    """Return the seconds that cells take, excluding the first cells of each worker."""
    task_type = Sleeping(each_s)
    for _ in executor.results(Sleeping(0.1), {str(k): k for k in range(8)}):
        pass
    begun = time.perf_counter()
    assert len([*executor.results(task_type, {str(k): k for k in range(cells)})]) == cells
    return time.perf_counter() - begun


def against_local(executor: Executor) -> Figures:
    """Return the overhead for cells of one second relative to half their sum, and the rate of tiny cells relative to joblib."""
    long = [(elapsed(executor, 1.0, 20), elapsed(Local(2), 1.0, 20)) for _ in range(2)]
    short = [(elapsed(executor, 0.01, 200), elapsed(Local(2), 0.01, 200)) for _ in range(3)]
    return {
        "overhead": min(executor_s for executor_s, _ in long) / 10.0 - 1.0,
        "local_overhead": min(other for _, other in long) / 10.0 - 1.0,
        "throughput_ratio": min(other for _, other in short) / min(executor_s for executor_s, _ in short),
        "cells_per_second": 200 / min(executor_s for executor_s, _ in short),
    }


@case("executors-dask", overhead=("<=", 0.05))
def on_dask() -> Figures:
    """Benchmark two Dask workers."""
    with (
        tempfile.TemporaryDirectory() as folder,
        DaskProcesses(Path(folder)) as cluster,
        find_executor("dask", cluster.address) as executor,
    ):
        return against_local(executor)


@case("store-100k", open_s=("<=", 10.0), write_us=("<=", 1000.0))
def store() -> Figures:
    """Write 100,000 cells of 3 kB with a file of 3 kB each, then check that all exist and are intact."""
    keys, parquet = [digest(str(k)) for k in range(100_000)], bytes(3000)
    with tempfile.TemporaryDirectory() as folder:
        with (filled := Store(Path(folder))).writing():
            spent, _ = seconds(lambda: [filled.write(key, Record(CONTENT, {"parquet": parquet}), key, 1.0) for key in keys])
        opened, whole = seconds(lambda: sum(map(Store(Path(folder)).holds, keys)))
        assert whole == len(keys)
        return {"write_us": spent / len(keys) * 1e6, "open_s": opened}
