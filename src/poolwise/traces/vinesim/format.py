"""Trace format of VineSim traces."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from poolwise.model import Machine, Workload
from poolwise.registry import InputFile, register
from poolwise.traces.numbers import are_whole
from poolwise.traces.text_files import beginning, stem
from poolwise.traces.vinesim.arrivals import InterArrival
from poolwise.traces.vinesim.rows import ABSENT
from poolwise.traces.vinesim.tasks import FIELDS, WITH_GRAPH, TaskList, read_tasks
from poolwise.traces.vinesim.types import Types
from poolwise.traces.vinesim.workload import workload_of_tasks


@register("formats", "vinesim")
@dataclass(frozen=True)
class VineSimFormat:
    """VineSim trace: one row per task (type, data size and location, operations, preferred unit type, job).

    Two more fields in each row, the number of the task and the numbers of the tasks that it waits for, make a task graph.

    The machine must be built from a deployment with affinities (`traces.vinesim.machine_of_units`).

    Parameters
    ----------
    inter_arrival
        Inter-arrival time of jobs: "7us", "exponential(7us)", "uniform(1us, 13us)"; a bare number is microseconds.
    seed
        Random seed of the arrivals.
    types
        TOML table with additional names of types, or "catalog:NAME".
    jobs
        Number of jobs to read; by default all.
    """

    inter_arrival: str | float = 0
    seed: int = 0
    types: InputFile | None = None
    jobs: int | None = None

    def read(self, path: Path, machine: Machine) -> Workload:
        """Read a trace as a workload; raise InputError with file, line and field."""
        tasks = tasks_of(path, Types.of(self.types))
        if self.jobs is not None:
            tasks = tasks.first_jobs(self.jobs)
        arrivals = InterArrival.parse(self.inter_arrival).times(int(tasks.first_of_job.sum()), self.seed)
        name = stem(path)
        return workload_of_tasks(tasks, machine, arrivals, name)

    def recognizes(self, path: Path) -> bool:
        """Return whether the first row is seven whole numbers, or eight and a list of task numbers."""
        for line in beginning(path).decode("utf-8", "replace").split("\n"):
            if words := line.partition("#")[0].split():
                if len(words) == len(WITH_GRAPH):
                    *words, last = words
                    return are_whole(words) and (last == ABSENT or are_whole(last.split(",")))
                return len(words) == len(FIELDS) and are_whole(words)
        return False


def tasks_of(path: Path, types: Types) -> TaskList:
    """Read a trace as `read_tasks` does, but only once while the file is unchanged, because the cells of a study share it."""
    return _tasks(path, path.stat().st_mtime_ns, types)


@lru_cache(maxsize=2)
def _tasks(path: Path, modified: int, types: Types) -> TaskList:
    return read_tasks(path, types)
