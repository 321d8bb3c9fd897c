"""Streams of jobs that share the units, such as latency-critical and batch jobs, each stream with its own arrivals.

Source: VineSim, section 9, which names the mix as future work; the properties of a stream are our own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from poolwise.arrays import IntArray
from poolwise.model import Machine, Workload
from poolwise.random import uniform
from poolwise.traces.vinesim.arrivals import InterArrival
from poolwise.traces.vinesim.tasks import TaskList
from poolwise.traces.vinesim.types import UNITS
from poolwise.traces.vinesim.workload import workload_of_tasks

NO_DEADLINE = 2**62
"""Deadline in ns of jobs without a deadline."""


@dataclass(frozen=True)
class Stream:
    """Jobs of one kind.

    Attributes
    ----------
    name : name in the results
    jobs : number of jobs
    task_type : number of their task type
    operations : operations per task
    gaps : inter-arrival time
    least, most : range of the number of tasks per job, drawn uniformly
    priority : priority class, 0 is the most urgent
    slack : deadline of a job after its arrival, as a multiple of a task's time on the fastest unit; None for no deadline
    """

    name: str
    jobs: int
    task_type: int
    operations: int
    gaps: InterArrival
    least: int = 1
    most: int = 1
    priority: int = 0
    slack: float | None = None


def streams_workload(streams: Sequence[Stream], machine: Machine, seed: int = 0) -> Workload:
    """Draw the streams, each independently of the others, and merge them by arrival.

    Columns in addition to those of `workload_of_tasks`: "stream" (number), "class", "deadline" (ns; `NO_DEADLINE` if there is
    none). Each job is one row, and "parent" is its number. Raises InputError for tasks that no unit can run.
    """
    parts = [_jobs(stream, seed * len(streams) + k) for k, stream in enumerate(streams)]
    stream = np.repeat(np.arange(len(streams)), [len(sizes) for sizes, _ in parts])
    sizes, arrivals = (np.concatenate(column) for column in zip(*parts, strict=True))
    job = np.repeat(np.arange(len(stream)), sizes)
    none = np.zeros_like(job)
    kinds, operations = (np.array([getattr(s, name) for s in streams]) for name in ("task_type", "operations"))
    columns = [kinds[stream[job]], none, none, none, operations[stream[job]], none + UNITS.index("unspecified"), job]
    workload = workload_of_tasks(TaskList.of(np.stack(columns, axis=1)), machine, arrivals, "streams")
    of = stream[workload.attributes["parent"].astype(np.int64)]  # a job is one row, because its tasks are alike
    slack = np.array([np.nan if s.slack is None else s.slack for s in streams])[of]
    wait = np.ceil(np.nan_to_num(slack) * workload.duration).astype(np.int64)
    attributes = {
        "parent": np.arange(len(workload)),
        "stream": of,
        "class": np.array([s.priority for s in streams])[of],
        "deadline": np.where(np.isnan(slack), NO_DEADLINE, workload.submit + wait),
    }
    return replace(workload, attributes={**workload.attributes, **attributes})


def _jobs(stream: Stream, seed: int) -> tuple[IntArray, IntArray]:
    """Return (jobs,) number of tasks and (jobs,) arrival in ns of each job."""
    job = np.arange(stream.jobs)
    span = stream.most - stream.least + 1
    sizes = stream.least + np.minimum(np.floor(span * uniform(seed, "stream.size", job)), span - 1).astype(np.int64)
    return sizes, stream.gaps.times(stream.jobs, seed)
