"""What a plan of kind "dispatch" may say."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field, model_validator

from poolwise.files.component import Component
from poolwise.files.fields import Count, Name, Positive, Section


class StreamSection(Section):
    """Jobs of one kind that are drawn, with their own arrivals."""

    name: Name
    jobs: Positive
    type: str = Field(description="name of a task type, such as fp-good")
    operations: Positive = Field(description="of a task")
    inter_arrival: str = Field(description='time between its jobs, such as "7us" or "exponential(7us)"')
    least: Positive = Field(default=1, description="tasks of a job, drawn uniformly: from")
    most: Positive = Field(default=1, description="to")
    priority: Count = Field(default=0, description="class for the order `classes`, 0 the most urgent")
    slack: float | None = Field(
        default=None, ge=1, description="deadline after the arrival, in times what a task takes on the fastest unit"
    )

    @model_validator(mode="after")
    def _ascending(self) -> StreamSection:
        if self.most < self.least:
            raise ValueError("most must not be less than least")
        return self


class MissedSection(Section):
    """Deadlines that must be kept."""

    missed: float = Field(ge=0, le=100, description="percent of the jobs with a deadline that may miss it")
    of: list[Name] | None = Field(default=None, min_length=1, description="streams whose deadlines count; all if not given")


class DispatchSection(Section):
    """Which queue order and placement to run."""

    kind: Literal["dispatch"]
    units: dict[str, Positive] | None = Field(default=None, description="unit type -> number, all in one rack")
    deployment: str | None = Field(default=None, description="instead of units: a deployment file")
    affinity: str = Field(description='affinity table, relative to the plan, or "catalog:NAME"; so all files')
    affinity_kind: Literal["absolute", "relative"] = "absolute"
    power: str | None = Field(default=None, description="power table, for energy")
    types: str | None = Field(default=None, description="table of further type names")
    trace: str | None = Field(default=None, description="trace of jobs")
    format: str = Field(default="vinesim", description="its format: one that reads tasks for units")
    options: dict[str, Any] = Field(default={}, description="options of the format")
    stream: list[StreamSection] = Field(default=[], description="instead of a trace: streams that are drawn for each seed")
    order: list[Component] = Field(default=[Component(name="fcfs")], min_length=1, description="queue orders to choose from")
    placement: list[Component] = Field(default=[Component(name="high")], min_length=1, description="placements to choose from")
    latency: Literal["mean", "p50", "p99", "p99_9"] = Field(default="p99", description="which latency of a job counts")
    of: Name | None = Field(default=None, description="the stream whose latency counts; all jobs if not given")
    target: MissedSection | None = None
    seeds: Positive = Field(default=3, description="runs of a candidate; the same seeds for all")

    @model_validator(mode="after")
    def _one_of_each(self) -> DispatchSection:
        if (self.units is None) == (self.deployment is None):
            raise ValueError("give either units or a deployment")
        if (self.trace is None) == (not self.stream):
            raise ValueError("give either a trace or streams")
        names = [stream.name for stream in self.stream]
        if len(set(names)) < len(names):
            raise ValueError("each stream needs a name of its own")
        counted = self.target.of or [] if self.target is not None else []
        for name in (self.of, *counted):
            if name is not None and name not in names:
                raise ValueError(f"there is no stream '{name}'")
        if self.target is not None and not any(self.counts(stream) for stream in self.stream):
            raise ValueError("a target of missed deadlines needs a stream with slack")
        return self

    def counts(self, stream: StreamSection) -> bool:
        """Whether the deadlines of a stream count."""
        named = self.target.of if self.target is not None else None
        return stream.slack is not None and (named is None or stream.name in named)
