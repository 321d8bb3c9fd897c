"""File format of plans of kind "dispatch"."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from poolwise import registry
from poolwise.files.component import Component
from poolwise.files.fields import Count, Name, Positive, Registered, Section
from poolwise.hashing import Json
from poolwise.plans.units import DeploymentName, UnitPlanSection


class StreamSection(Section):
    """Generated jobs of one kind, with their own arrivals."""

    name: Name
    jobs: Positive
    type: str = Field(description="name of a task type, such as fp-good")
    operations: Positive = Field(description="operations of each task")
    inter_arrival: str = Field(description='time between its jobs, such as "7us" or "exponential(7us)"')
    min: Positive = Field(default=1, description="minimum number of tasks per job; the number is drawn uniformly")
    max: Positive = Field(default=1, description="maximum number of tasks per job")
    priority: Count = Field(default=0, description="class for the order `classes`; 0 is the most urgent")
    slack: float | None = Field(
        default=None, ge=1, description="deadline after the arrival, in multiples of a task's time on the fastest unit"
    )

    @model_validator(mode="after")
    def _ascending(self) -> StreamSection:
        if self.max < self.min:
            raise ValueError("max must not be less than min")
        return self


class MissedSection(Section):
    """Target for missed deadlines."""

    missed: float = Field(ge=0, le=100, description="maximum percentage of jobs with a deadline that may miss it")
    of: list[Name] | None = Field(default=None, min_length=1, description="streams whose deadlines count; default: all")


class DispatchSection(UnitPlanSection):
    """The queue order and placement to run."""

    kind: Literal["dispatch"]
    units: dict[str, Positive] | None = Field(default=None, description="unit type -> number, all in one rack")
    deployment: DeploymentName = Field(default=None, description="deployment file, instead of units")
    format: Annotated[str, Registered("formats", "options")] = Field(
        default="vinesim", description="format of the trace; it must read tasks for units"
    )
    options: dict[str, Any] = Field(default={}, description="options of the format")
    stream: list[StreamSection] = Field(default=[], description="generated streams for each seed, instead of a trace")
    order: Annotated[list[Component], Registered("orders")] = Field(
        default=[Component(name="fcfs")], min_length=1, description="queue orders to choose from"
    )
    of: Name | None = Field(default=None, description="stream whose latency counts; default: all jobs")
    target: MissedSection | None = None

    @model_validator(mode="after")
    def _one_of_each(self) -> DispatchSection:
        if (self.units is None) == (self.deployment is None):
            raise ValueError("give either units or a deployment")
        if (self.trace is None) == (not self.stream):
            raise ValueError("give either a trace or streams")
        names = [stream.name for stream in self.stream]
        if len(set(names)) < len(names):
            raise ValueError("each stream needs a unique name")
        counted = self.target.of or [] if self.target is not None else []
        for name in (self.of, *counted):
            if name is not None and name not in names:
                raise ValueError(f"unknown stream '{name}'")
        if self.target is not None and not any(self.counts(stream) for stream in self.stream):
            raise ValueError("a target for missed deadlines needs a stream with slack")
        return self

    def counts(self, stream: StreamSection) -> bool:
        """Return whether the deadlines of a stream count."""
        named = self.target.of if self.target is not None else None
        return stream.slack is not None and (named is None or stream.name in named)

    def workload(self) -> Json:
        """Return the section [workload] of the study; formats with a setting `types` use the plan's type names by default."""
        types = self.files("types")
        if self.stream:
            return {"generator": "unit_streams", "settings": {"streams": [s.model_dump() for s in self.stream], **types}}
        if "types" not in getattr(registry.find("formats", self.format), "__dataclass_fields__", {}):
            types = {}
        trace = {"trace": self.files("trace")["trace"], "format": self.format, "options": {**types, **self.options}}
        return {**trace, "clock": "trace"}
