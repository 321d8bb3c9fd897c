"""Simulation tasks of dispatch plans: tasks on given units under an order and a placement."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from poolwise import registry, runner
from poolwise.arrays import FloatArray
from poolwise.code_fingerprint import sources
from poolwise.engines import simulate
from poolwise.engines.dispatch import replay as compiled
from poolwise.files.component import Component
from poolwise.hashing import Json, canonical, digest
from poolwise.interfaces import QueuePolicy
from poolwise.metrics.deadlines import missed_pct
from poolwise.metrics.latency import Spread, job_latency_us
from poolwise.metrics.unit_use import dispatch_window, energy_j, unit_use
from poolwise.model import Machine, Schedule, Workload
from poolwise.performance.affinity import Affinity
from poolwise.performance.combined import Combined
from poolwise.performance.transfer import Transfer
from poolwise.plans.dispatch_file import DispatchSection, StreamSection
from poolwise.schedulers.dispatch import Dispatch
from poolwise.traces import vinesim
from poolwise.traces.vinesim.streams import Stream, streams_workload
from poolwise.units import US


@dataclass(frozen=True)
class DispatchTask:
    """One run: indices of an order and a placement in the plan, and a seed."""

    order: int
    placement: int
    seed: int


@dataclass(frozen=True, eq=False)
class DispatchTaskType(runner.TaskType[DispatchTask]):
    """Task type of dispatch plans: the plan and the contents of its files.

    Attributes
    ----------
    section : the plan
    machine : the units
    types : names of unit and task types
    files : "trace" and "types" -> path of the files that a format may read
    sha256 : file name -> hash of every file that is read
    """

    section: DispatchSection
    machine: Machine
    types: vinesim.Types
    files: Mapping[str, Path]
    sha256: Mapping[str, str]

    def key(self, task: DispatchTask) -> str:
        """Return the SHA-256 of all inputs of the result."""
        section = self.section
        settings = section.model_dump(mode="json", exclude={"order", "placement", "seeds", "target", "trace"})
        chosen = [
            section.order[task.order].identity("orders"),
            section.placement[task.placement].identity("placements"),
            None if section.trace is None else Component(name=section.format).identity("formats"),
        ]
        return digest(canonical({"inputs": [settings, chosen, dict(self.sha256), task.seed], "sources": sources(__name__)}))

    def label(self, task: DispatchTask) -> str:
        """Return order, placement and seed as text."""
        return f"order={self.section.order[task.order]} placement={self.section.placement[task.placement]} seed={task.seed}"

    def prepare(self, tasks: Sequence[DispatchTask]) -> None:
        """Compile the kernels of task dispatch."""
        compiled.load()

    def run(self, task: DispatchTask) -> runner.Record:
        """Simulate one task; raise InputError if the order needs a column that the workload lacks."""
        order: QueuePolicy = self.section.order[task.order].make("orders")
        scheduler = Dispatch(self.section.placement[task.placement].make("placements"), order)
        model, workload = Combined((Affinity(), Transfer())), self.workload(task.seed)
        result = simulate(self.machine, workload, scheduler, truth=model, seed=task.seed)
        return runner.Record({**self._measured(result.schedule), "engine": result.engine, "read": _counts(workload)})

    def workload(self, seed: int) -> Workload:
        """Draw the streams, or read the trace; a format with a seed uses the run's seed unless the plan gives one."""
        if self.section.stream:
            return streams_workload([_stream(s, self.types) for s in self.section.stream], self.machine, seed)
        known = getattr(registry.find("formats", self.section.format), "__dataclass_fields__", {})
        defaults: dict[str, Any] = {"seed": seed, "types": str(self.files["types"]) if "types" in self.files else None}
        options = {name: value for name, value in defaults.items() if name in known and value is not None}
        choice = Component(name=self.section.format, **{**options, **self.section.options})
        workload: Workload = choice.make("formats").read(self.files["trace"], self.machine)
        return workload

    def _measured(self, schedule: Schedule) -> Json:
        section, latency, window = self.section, job_latency_us(schedule), dispatch_window(schedule)
        use = unit_use(schedule, window)
        streams: Json = {}
        for k, stream in enumerate(section.stream):
            rows = schedule.workload.attributes["stream"] == k
            spread = Spread.of(_finished(latency[rows]))
            missed = missed_pct(schedule, rows) if stream.slack is not None else None
            streams[stream.name] = {"p50_us": spread.p50, "p99_us": spread.p99, "missed_pct": missed}
        return {
            "latency_us": float(getattr(Spread.of(self._counted(schedule, latency)), section.latency)),
            "missed_pct": self._missed_pct(schedule),
            "utilization": use.overall,
            "by_type": use.by_type(),
            "energy_j": _number(energy_j(schedule, window)),
            "makespan_us": (window.end - window.begin) / US,
            "jobs": int((~np.isnan(latency)).sum()),
            "streams": streams,
        }

    def _counted(self, schedule: Schedule, latency: FloatArray) -> FloatArray:
        """Return the latencies of the finished jobs of the stream that counts."""
        if self.section.of is None:
            return _finished(latency)
        number = [stream.name for stream in self.section.stream].index(self.section.of)
        return _finished(latency[schedule.workload.attributes["stream"] == number])

    def _missed_pct(self, schedule: Schedule) -> float | None:
        """Return the percentage of jobs with a counted deadline that missed it; None without such jobs."""
        counted = [k for k, stream in enumerate(self.section.stream) if self.section.counts(stream)]
        if not counted:
            return None
        return _number(missed_pct(schedule, np.isin(schedule.workload.attributes["stream"], counted)))


def _stream(section: StreamSection, types: vinesim.Types) -> Stream:
    return Stream(
        section.name,
        section.jobs,
        types.tasks.index(section.type),
        section.operations,
        vinesim.InterArrival.parse(section.inter_arrival),
        section.least,
        section.most,
        section.priority,
        section.slack,
    )


def _finished(latency: FloatArray) -> FloatArray:
    return latency[~np.isnan(latency)]


def _counts(workload: Workload) -> Json:
    return {"excluded": dict(workload.excluded), "repaired": dict(workload.repaired)}


def _number(value: float) -> float | None:
    return None if np.isnan(value) else value
