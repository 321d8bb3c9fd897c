"""Cells of dispatch plans: every order with every placement on given units, and what is measured of each stream."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np

from poolwise import registry
from poolwise.arrays import BoolArray
from poolwise.hashing import Json, canonical, digest
from poolwise.metrics.deadlines import missed_pct
from poolwise.metrics.latency import Spread, job_latency_us
from poolwise.model import Machine, Schedule
from poolwise.plans.dispatch_file import DispatchSection, StreamSection
from poolwise.plans.unit_cells import PlanTables, UnitCells, none_if_nan, unit_cell
from poolwise.studies.cells import Cell, Drawn, Trace
from poolwise.traces import vinesim
from poolwise.traces.vinesim.streams import Stream, streams_workload


@dataclass(frozen=True, eq=False)
class DispatchTaskType(UnitCells):
    """Task type of dispatch plans: the plan, its tables and the machine."""

    min_tasks_per_process = 2

    section: DispatchSection
    tables: PlanTables
    machine: Machine

    @cached_property
    def sha256(self) -> dict[str, str]:
        """Key and name of each file -> hash."""
        return {f"{key} {file.name}": digest(file.read_bytes()) for key, file in self.tables.files.items()}

    def settings(self) -> Json:
        """Return the settings of the plan that measurements depend on."""
        dumped = self.section.model_dump(mode="json", include={"latency", "of", "stream"})
        return {**dumped, "counted": self._counted}

    def cells(self, order: int, placement: int, jobs: Sequence[Trace | Drawn]) -> list[Cell]:
        """Return the cells of an order and a placement, which are positions in the plan: one for the jobs of each seed."""
        how = self.placement(placement).model_copy(update={"order": self.section.order[order]})
        inputs = {"units": self.section.units, "kind": self.section.affinity_kind, "files": self.sha256}
        names = {"order": str(how.order), "placement": str(how.placement)}
        return [unit_cell(names, seed, self.machine, inputs, drawn, how) for seed, drawn in enumerate(jobs)]

    @property
    def _counted(self) -> list[int]:
        """Numbers of the streams whose deadlines count."""
        return [k for k, stream in enumerate(self.section.stream) if self.section.counts(stream)]

    def jobs(self, seed: int) -> Trace | Drawn:
        """Return the streams, or the trace; a format with a seed uses the run's seed unless the plan gives one."""
        section, files = self.section, self.tables.files
        if section.stream:
            streams = [_stream(stream, self.tables.types) for stream in section.stream]
            settings = section.model_dump(mode="json", include={"stream"})
            return Drawn("streams", {**settings, "seed": seed}, partial(streams_workload, streams, seed=seed))
        fields = getattr(registry.find("formats", section.format), "__dataclass_fields__", {})
        defaults: dict[str, Any] = {"seed": seed, "types": None if (types := files.get("types")) is None else str(types)}
        options = {name: value for name, value in defaults.items() if name in fields and value is not None}
        path, chosen = files["trace"], canonical({**options, **section.options})
        return Trace(str(path), self.sha256[f"trace {path.name}"], section.format, chosen, 0, None, "trace")

    def measured(self, schedule: Schedule) -> Json:
        """Return the measurements of a schedule, with those of each stream and the missed deadlines."""
        latency, streams = job_latency_us(schedule), dict[str, Json]()
        for k, stream in enumerate(self.section.stream):
            rows = schedule.workload.attributes["stream"] == k
            spread = Spread.of(latency[rows & ~np.isnan(latency)])
            missed = missed_pct(schedule, rows) if stream.slack is not None else None
            streams[stream.name] = {"p50_us": spread.p50, "p99_us": spread.p99, "missed_pct": missed}
        missed = None
        if self._counted:
            missed = none_if_nan(missed_pct(schedule, np.isin(schedule.workload.attributes["stream"], self._counted)))
        return {**super().measured(schedule), "missed_pct": missed, "streams": streams}

    def counted(self, schedule: Schedule) -> BoolArray:
        """Return (n_job,) jobs of the stream whose latency counts."""
        if self.section.of is None:
            return super().counted(schedule)
        number = [stream.name for stream in self.section.stream].index(self.section.of)
        counted: BoolArray = schedule.workload.attributes["stream"] == number
        return counted


def _stream(section: StreamSection, types: vinesim.Types) -> Stream:
    settings = section.model_dump(exclude={"type", "inter_arrival"})
    return Stream(**settings, task_type=types.tasks.index(section.type), gaps=vinesim.InterArrival.parse(section.inter_arrival))
