"""Generators of jobs for machines of processing units: one kind of job, or streams that share the units.

Source: VineSim, sections 7.2 (job sizes) and 9, which names the mix of latency-critical and batch jobs as future work; the
properties of a stream are our own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from poolwise.arrays import FloatArray, IntArray
from poolwise.errors import InputError, UnknownNameError
from poolwise.model import Machine, Workload
from poolwise.random import uniform
from poolwise.registry import InputFile, register
from poolwise.traces.generators.generator import Generator, check_setting_range
from poolwise.traces.vinesim.arrivals import InterArrival
from poolwise.traces.vinesim.tasks import TaskList
from poolwise.traces.vinesim.types import UNITS, Types
from poolwise.traces.vinesim.workload import workload_of_tasks

NO_DEADLINE = 2**62
"""Deadline in ns of jobs without a deadline."""


class _UnitGenerator(Generator):
    """Base of generators whose jobs depend on the units: a job's duration is its time on the fastest unit."""

    @property
    def nodes(self) -> int:
        """1: jobs share the units."""
        return 1

    def generate(self) -> Workload:
        """Raise InputError, since the jobs need a machine."""
        remedy = "use the generator in a study or a plan whose machine has units"
        raise InputError("these jobs are drawn for a machine of processing units", field="machine", remedy=remedy)


@register("generators", "unit_jobs")
@dataclass(frozen=True)
class UnitJobs(_UnitGenerator):
    """Jobs of equal tasks; the draws of a job do not depend on the number of jobs.

    Parameters
    ----------
    jobs, seed
        Number of jobs, and random seed.
    operations
        Operations of each task.
    kind
        Task types, each with its share of the jobs: { type = "fp-good", share = 1.0 }.
    size
        Shares of the jobs, each with the range of its number of tasks: { share = 0.9, min = 1, max = 20 }.
    inter_arrival
        Time between jobs: "7us", "exponential(7us)", "uniform(1us, 13us)"; a bare number is microseconds.
    types
        TOML table with additional names of types, or "catalog:NAME".
    """

    jobs: int = 500
    seed: int = 0
    operations: int = 30_000_000
    kind: list[dict[str, Any]] = field(default_factory=lambda: [{"type": "fp-good", "share": 1.0}])
    size: list[dict[str, float]] = field(default_factory=lambda: [{"share": 1.0, "min": 1, "max": 20}])
    inter_arrival: str = "0"
    types: InputFile | None = None

    def generate_on(self, machine: Machine) -> Workload:
        """Draw the jobs for a machine of units; raise InputError for tasks that no unit can run."""
        return workload_of_tasks(self.tasks(), machine, InterArrival.parse(self.inter_arrival).times(self.jobs, self.seed))

    def tasks(self) -> TaskList:
        """Draw the size and the type of each job."""
        check_setting_range(1, jobs=self.jobs, operations=self.operations)
        names, job = Types.of(self.types).tasks, np.arange(self.jobs)
        group = _group(uniform(self.seed, "deployment.group", job), [part["share"] for part in self.size])
        least, most = (np.array([int(part[name]) for part in self.size])[group] for name in ("min", "max"))
        sizes = least + (uniform(self.seed, "deployment.size", job) * (most - least + 1)).astype(np.int64)
        kinds = np.array([_task_type(part["type"], names) for part in self.kind])
        chosen = kinds[_group(uniform(self.seed, "deployment.type", job), [part["share"] for part in self.kind])]
        return TaskList.of_jobs(sizes.tolist(), chosen.tolist(), self.operations)


def _group(draws: FloatArray, shares: Sequence[float]) -> IntArray:
    """Return the index of the share into which each draw in [0, 1) falls, (n,)."""
    return np.minimum(np.searchsorted(np.cumsum(shares), draws, side="right"), len(shares) - 1)


def _task_type(name: str, names: Sequence[str]) -> int:
    if name not in names:
        raise UnknownNameError.of("task type", name, names, field="type")
    return names.index(name)


@dataclass(frozen=True)
class Stream:
    """Jobs of one kind; the keys are those of [[plan.stream]] in a plan of kind "dispatch"."""

    name: str
    jobs: int
    type: str
    operations: int
    inter_arrival: str
    min: int = 1
    max: int = 1
    priority: int = 0
    slack: float | None = None


@register("generators", "unit_streams")
@dataclass(frozen=True)
class UnitStreams(_UnitGenerator):
    """Streams of jobs that share the units, each with its own arrivals, such as latency-critical and batch jobs.

    Each stream is drawn independently of the others, and they are merged by arrival. Each job is one row. Columns in addition
    to those of a trace: "stream" (number), "class", "deadline" (ns; `NO_DEADLINE` if there is none).

    Parameters
    ----------
    streams
        The streams, each a table as in [[plan.stream]] of a dispatch plan.
    seed
        Random seed.
    types
        TOML table with additional names of types, or "catalog:NAME".
    """

    streams: list[dict[str, Any]] = field(default_factory=list)
    seed: int = 0
    types: InputFile | None = None

    def generate_on(self, machine: Machine) -> Workload:
        """Draw the streams for a machine of units; raise InputError for tasks that no unit can run."""
        try:
            streams = [Stream(**stream) for stream in self.streams]
        except TypeError as error:
            raise InputError(str(error), field="streams", remedy="see [[plan.stream]] of dispatch plans") from error
        if not streams:
            raise InputError("no streams are given", field="streams", remedy="give at least one stream")
        names = Types.of(self.types).tasks
        parts = [_draw(stream, self.seed * len(streams) + k) for k, stream in enumerate(streams)]
        stream = np.repeat(np.arange(len(streams)), [len(sizes) for sizes, _ in parts])
        sizes, arrivals = (np.concatenate(column) for column in zip(*parts, strict=True))
        job = np.repeat(np.arange(len(stream)), sizes)
        none = np.zeros_like(job)
        kinds, operations = np.array([_task_type(s.type, names) for s in streams]), np.array([s.operations for s in streams])
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


def _draw(stream: Stream, seed: int) -> tuple[IntArray, IntArray]:
    """Return the number of tasks and the arrival (ns) of each job, (jobs,) each."""
    job = np.arange(stream.jobs)
    span = stream.max - stream.min + 1
    sizes = stream.min + np.minimum(np.floor(span * uniform(seed, "stream.size", job)), span - 1).astype(np.int64)
    return sizes, InterArrival.parse(stream.inter_arrival).times(stream.jobs, seed)
