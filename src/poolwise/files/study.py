"""Study files: TOML that specifies machine, workload, scheduler and varied parameters."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import Field, GetJsonSchemaHandler, model_validator
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from poolwise.errors import Problems
from poolwise.files.component import Component
from poolwise.files.costs import PowerSection, PriceSection
from poolwise.files.document import Document
from poolwise.files.fields import Count, FileName, Positive, Registered, Section, Time
from poolwise.files.validation import find_file
from poolwise.metrics.memory import DOLLARS_PER_GB
from poolwise.quantities import HOUR, SECOND

CATALOG = "catalog:"
MOST_SEEDS = 10_000_000
"""Maximum number of seeds; each adds a row per combination of varied values."""


SECTION_FILES: Mapping[str, FileName] = {
    section: FileName(f'give a {section} file, or "{CATALOG}NAME"', folder)
    for section, folder in {"machine": "machines", "scheduler": "schedulers", "power": "power", "prices": "prices"}.items()
}
"""Sections that a file may replace."""
_TRACE = FileName("give a path relative to the study file, or --set workload.trace=PATH", "traces")
_STATE = FileName("give the state.toml of a folder written by `poolwise snapshot`, relative to the study file")


class WorkloadSection(Section):
    """Source of the jobs, and their selection."""

    trace: Annotated[str | None, _TRACE] = Field(
        default=None, description='trace file, relative to the study file, or "catalog:NAME"'
    )
    generator: Annotated[str | None, Registered("generators", "settings")] = Field(
        default=None, description="workload generator, instead of a trace; draws new jobs for each seed"
    )
    state: Annotated[str | None, _STATE] = Field(
        default=None, description="state.toml written by `poolwise snapshot`, instead of a trace; runs continue from that state"
    )
    default_runtime: Annotated[Time, Field(description="assumed run time of jobs without a time limit in a state")] = HOUR
    settings: dict[str, Any] = Field(default={}, description="settings of the generator, including jobs and seed")
    format: Annotated[str, Registered("formats", "options", none="auto")] = Field(
        default="auto", description="trace format; auto detects it"
    )
    options: dict[str, Any] = Field(default={}, description="options of the trace format")
    only: dict[str, str | int | list[str | int]] = Field(
        default={},
        description='jobs of a trace to keep: attribute -> values, such as partition = ["batch"]; from, to',
    )
    memory_use: Annotated[Component | None, Registered("memory_uses")] = Field(
        default=None, description="model of actual memory use over each job's run; the requested memory if not given"
    )
    first: Count = Field(default=0, description="number of rows to skip before the first job")
    jobs: Positive | None = Field(default=None, description="number of jobs; all if not given")
    clock: Literal["first job", "trace"] = Field(
        default="first job", description="time 0 of the workload: submission of the first selected job, or time 0 of the trace"
    )

    @model_validator(mode="after")
    def _one_source(self) -> WorkloadSection:
        if [self.trace, self.generator, self.state].count(None) != 2:
            raise ValueError("give exactly one of trace, generator and state")
        if self.state is not None and (self.first or self.jobs is not None or self.clock != "first job"):
            raise ValueError("first, jobs and clock select jobs of a trace; they do not apply to a state")
        if self.state is not None and self.memory_use is not None:
            raise ValueError("memory_use applies to traces; a state has requested and held memory only")
        if self.state is None and "default_runtime" in self.model_fields_set:
            raise ValueError("default_runtime applies to a state only")
        if self.generator is None and self.settings:
            raise ValueError("settings apply to a generator; use options for a trace format")
        if self.trace is None and self.only:
            raise ValueError("only selects jobs of a trace")
        if self.trace is None and (self.options or self.format != "auto"):
            raise ValueError("format and options apply to a trace; use settings for a generator")
        return self


class SchedulerSection(Section):
    """Order, placement and start of jobs; kinds other than list accept the components that they support, such as an order."""

    kind: Annotated[str, Registered("schedulers", "settings")] = Field(default="list", description="kind of scheduler")
    order: Annotated[Component | None, Registered("orders")] = Field(
        default=None, description='queue order, or "file.py:Name" relative to the study file'
    )
    backfill: Annotated[Component | None, Registered("backfills")] = Field(default=None, description="backfill policy")
    placement: Annotated[Component | None, Registered("placements")] = Field(default=None, description="placement policy")
    admission: Annotated[Component | None, Registered("admissions")] = Field(
        default=None, description="admission policy; by default jobs within the machine's limits are eligible"
    )
    preemption: Annotated[Component | None, Registered("preemptions")] = Field(
        default=None, description="preemption policy, which lets waiting jobs stop running ones; none by default"
    )
    scope: Literal["rack", "system"] | None = Field(default=None, description="scope of the pools that a node can use")
    settings: dict[str, Any] = Field(default={}, description="settings of scheduler kinds other than list")
    pass_per_event: bool = Field(
        default=False, description="whether to run a scheduling pass after each event rather than after each instant"
    )


class SchedulerFile(SchedulerSection):
    """A standalone scheduler file."""

    version: Annotated[Literal[1], Field(description="version of the file format")]
    title: str = ""


class OrFile:
    """Schema marker for a section that a file name may replace; the file's content is inserted before validation."""

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        return {"anyOf": [{"type": "string", "description": 'file, or "catalog:NAME"'}, handler(schema)]}


class PerformanceSection(Section):
    """Run times under a placement, and the scheduler's estimate of them."""

    model: Annotated[Component, Registered("models")] = Field(
        default_factory=lambda: Component(name="remote_memory"), description="performance model"
    )
    estimate: Literal["own", "mean", "none"] = Field(
        default="own", description="slowdown that the scheduler expects: the model's own, its mean, or none"
    )
    estimate_model: Annotated[Component | None, Registered("models")] = Field(
        default=None, description="performance model for the scheduler's estimate, instead of `estimate`"
    )

    @model_validator(mode="after")
    def _one_estimate(self) -> PerformanceSection:
        if self.estimate_model is not None and self.estimate != "own":
            raise ValueError("give estimate or estimate_model, not both")
        return self


class MeasureSection(Section):
    """Metrics, and the jobs on which they are measured."""

    warm_up: Count = Field(
        default=500,
        description="number of initial jobs excluded from metrics; FCFS without backfilling schedules them "
        "if the scheduler has an order and a backfill",
    )
    population: Literal["common", "paper"] = Field(
        default="common", description="measured jobs: those that finish in all runs, or the paper's rule"
    )
    tau: Annotated[Time, Field(description="minimum run time in bounded slowdown")] = 10 * SECOND
    baseline: bool = Field(default=True, description="whether to also run FCFS without backfilling, for fairness metrics")
    memory_baseline: Annotated[str | None, SECTION_FILES["machine"]] = Field(
        default=None, description="machine file or catalog:NAME of a baseline machine, for throughput per memory dollar"
    )
    metrics: Annotated[list[Component], Registered("metrics")] = Field(
        default=[], description='additional metrics: names, or "file.py:Name" relative to the study file'
    )
    dollars_per_gb: float = Field(default=DOLLARS_PER_GB, gt=0, description="price of memory ($ per 1024 MiB)")


class TodaySection(Section):
    """The configuration in use today, as a reference for every result; omitted parts are those of the compared run."""

    name: str = Field(default="today", description="name in tables and reports")
    machine: str | dict[str, Any] | None = Field(default=None, description="machine, as in the study")
    scheduler: str | SchedulerSection | None = Field(default=None, description="scheduler, as in the study")

    @model_validator(mode="after")
    def _something(self) -> TodaySection:
        if self.machine is None and self.scheduler is None:
            raise ValueError("give machine, scheduler or both")
        return self


class SeedsSection(Section):
    """Seeds, as a list or a count."""

    values: list[Count] | None = None
    count: Positive | None = Field(default=None, le=MOST_SEEDS)

    @model_validator(mode="after")
    def _one_of_both(self) -> SeedsSection:
        if self.values is not None and self.count is not None:
            raise ValueError("give values or count, not both")
        if self.values is not None and (not self.values or len(set(self.values)) != len(self.values)):
            raise ValueError("values must be a non-empty list of distinct seeds")
        return self

    def chosen(self) -> tuple[int, ...]:
        """Return the seeds; (0,) if none is given."""
        if self.values is not None:
            return tuple(self.values)
        return tuple(range(self.count if self.count is not None else 1))


class RunFile(Section):
    """One run."""

    version: Annotated[Literal[1], Field(description="version of the file format")]
    title: str = ""
    machine: str | dict[str, Any] = Field(description='machine file, "catalog:NAME", or the sections of a machine')
    workload: WorkloadSection
    scheduler: Annotated[SchedulerSection, OrFile()] = SchedulerSection()
    performance: PerformanceSection = PerformanceSection()
    measure: MeasureSection = MeasureSection()
    power: Annotated[PowerSection | None, OrFile()] = Field(
        default=None, description="power table, instead of power attributes in the machine file"
    )
    prices: Annotated[PriceSection | None, OrFile()] = Field(
        default=None, description="price list, instead of price attributes in the machine file"
    )
    today: TodaySection | None = Field(default=None, description="configuration in use today")


class StudyFile(RunFile):
    """A study: one run for each combination of varied values and each seed."""

    vary: dict[str, Any] = Field(default={}, description="dotted path -> list of values; a study runs every combination")
    seeds: SeedsSection = SeedsSection()


def inline(document: Document, section: str) -> Document:
    """Replace the name of a section's file by the content of the file."""
    reference = document.tables.get(section)
    if section not in SECTION_FILES or not isinstance(reference, str):
        return document
    with document.errors_at(section):
        file = find_file(reference, SECTION_FILES[section], document.location((section,)))
    part = Document.read(file)
    if section == "machine":  # formats other than tables of racks have their own names
        return document.with_part(section, part, part.tables if "format" in part.tables else tables_with_name(part))
    part.check_version()
    return document.with_part(section, part, {k: v for k, v in part.tables.items() if k not in ("version", "title")})


def tables_with_name(machine: Document) -> dict[str, Any]:
    """Return the tables of a machine file; the machine is named after the file by default."""
    return {"name": machine.file.stem, **machine.tables}


def inline_all(document: Document, problems: Problems) -> Document:
    """Inline the files of all sections; a section whose file cannot be read is removed, except the required machine."""
    for section in SECTION_FILES:
        with problems.attempt():
            document = inline(document, section)
        if section != "machine" and isinstance(document.tables.get(section), str):
            document = document.without(section)
    return document
