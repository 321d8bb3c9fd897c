"""Study files: which machine, which workload, which scheduler, and what is varied."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, GetJsonSchemaHandler, model_validator
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from poolwise.files.component import Component
from poolwise.files.costs import PowerSection, PriceSection
from poolwise.files.document import Document
from poolwise.files.fields import Count, Positive, Section, Time, check_version, validate
from poolwise.metrics.memory import DOLLARS_PER_GB
from poolwise.units import HOUR, SECOND

CATALOG = "catalog:"
MOST_SEEDS = 10_000_000
"""More than anyone runs: every seed is a row of each combination."""


class WorkloadSection(Section):
    """Where the jobs come from, and which of them are taken."""

    trace: str | None = Field(default=None, description='path relative to the study file, or "catalog:NAME" for a shipped one')
    generator: str | None = Field(
        default=None, description="instead of a trace: a workload generator, drawn anew for each seed"
    )
    state: str | None = Field(
        default=None, description="instead of a trace: the state.toml that `poolwise snapshot` wrote; runs go on from there"
    )
    unsaid: Annotated[Time, Field(description="how long jobs of a state run that do not say so")] = HOUR
    settings: dict[str, Any] = Field(default={}, description="settings of the generator; jobs and seed among them")
    format: str = Field(default="auto", description="a trace format; auto recognises it")
    options: dict[str, Any] = Field(default={}, description="options of the format")
    memory_use: Component | None = Field(
        default=None, description="memory that jobs really use over their runs; what they ask for if not given"
    )
    first: Count = Field(default=0, description="rows to leave out before the first job that is taken")
    jobs: Positive | None = Field(default=None, description="number of jobs; all if not given")
    clock: Literal["first job", "trace"] = Field(
        default="first job", description="where time begins: at the first job that is taken, or where the trace's own does"
    )

    @model_validator(mode="after")
    def _one_source(self) -> WorkloadSection:
        if [self.trace, self.generator, self.state].count(None) != 2:
            raise ValueError("give one of trace, generator and state")
        if self.state is not None and (self.first or self.jobs is not None or self.clock != "first job"):
            raise ValueError("first, jobs and clock choose jobs of a trace; a state has its jobs and its time")
        if self.state is not None and self.memory_use is not None:
            raise ValueError("memory_use says what jobs of a trace use; a state has what its jobs ask for and hold")
        if self.state is None and "unsaid" in self.model_fields_set:
            raise ValueError("unsaid belongs to a state")
        if self.generator is None and self.settings:
            raise ValueError("settings belong to a generator; options to the format of a trace")
        if self.trace is None and (self.options or self.format != "auto"):
            raise ValueError("format and options belong to a trace; settings to a generator")
        return self


class SchedulerSection(Section):
    """How jobs are ordered, placed and started; other kinds than list take the parts that they have, such as an order."""

    kind: str = Field(default="list", description="a scheduler")
    order: Component | None = Field(default=None, description='a queue order, or "file.py:Name" relative to the study file')
    backfill: Component | None = Field(default=None, description="a backfill")
    placement: Component | None = Field(default=None, description="a placement")
    admission: Component | None = Field(
        default=None, description="which jobs may be considered; those within the machine's limits"
    )
    scope: Literal["rack", "system"] | None = Field(default=None, description="pools that a node may use")
    settings: dict[str, Any] = Field(default={}, description="settings of schedulers of another kind")
    pass_per_event: bool = Field(default=False, description="a pass after each event, not after all events of an instant")


class SchedulerFile(SchedulerSection):
    """A scheduler in a file of its own."""

    version: Annotated[Literal[1], Field(description="version of this format")]
    title: str = ""


class OrFile:
    """Says in the schema that a file may be named instead of a section; its content is put there before validation."""

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        return {"anyOf": [{"type": "string", "description": 'a file, or "catalog:NAME"'}, handler(schema)]}


class PerformanceSection(Section):
    """How long jobs take where they are placed, and what the scheduler believes about it."""

    model: Component = Field(default_factory=lambda: Component(name="remote_memory"), description="a performance model")
    estimate: Literal["own", "mean", "none"] = Field(default="own", description="slowdown that the scheduler expects")
    estimate_model: Component | None = Field(
        default=None, description="instead: a performance model that the scheduler believes"
    )

    @model_validator(mode="after")
    def _one_estimate(self) -> PerformanceSection:
        if self.estimate_model is not None and self.estimate != "own":
            raise ValueError("give either estimate or estimate_model")
        return self


class MeasureSection(Section):
    """What is measured, and on which jobs."""

    warm_up: Count = Field(
        default=500,
        description="first jobs, not measured; under FCFS without backfilling where the scheduler has order and backfill",
    )
    population: Literal["common", "paper"] = Field(default="common", description="jobs that all runs finish, or the paper's")
    tau: Annotated[Time, Field(description="least runtime in bounded slowdown")] = 10 * SECOND
    baseline: bool = Field(default=True, description="run FCFS without backfilling too, for fairness")
    memory_baseline: str | None = Field(
        default=None, description="a machine file to run on too, for what memory dollars gain; its path, or catalog:NAME"
    )
    metrics: list[Component] = Field(
        default=[], description='metrics beside the standard ones: names, or "file.py:Name" relative to the study file'
    )
    dollars_per_gb: float = Field(default=DOLLARS_PER_GB, gt=0, description="price of memory, $ for 1024 MiB")


class TodaySection(Section):
    """What runs today: every answer says what changes against it. What is not given is as in the run that is compared."""

    name: str = Field(default="today", description="what tables and reports call it")
    machine: str | dict[str, Any] | None = Field(default=None, description="as the study's own machine is written")
    scheduler: str | SchedulerSection | None = Field(default=None, description="as the study's own scheduler is written")

    @model_validator(mode="after")
    def _something(self) -> TodaySection:
        if self.machine is None and self.scheduler is None:
            raise ValueError("give a machine, a scheduler, or both")
        return self


class SeedsSection(Section):
    """Seeds, by value or by number."""

    values: list[Count] | None = None
    count: Positive | None = Field(default=None, le=MOST_SEEDS)

    @model_validator(mode="after")
    def _one_of_both(self) -> SeedsSection:
        if self.values is not None and self.count is not None:
            raise ValueError("give values or count, not both")
        if self.values is not None and (not self.values or len(set(self.values)) != len(self.values)):
            raise ValueError("values must be seeds, each once")
        return self

    def chosen(self) -> tuple[int, ...]:
        """List the seeds, (0,) if none is given."""
        if self.values is not None:
            return tuple(self.values)
        return tuple(range(self.count if self.count is not None else 1))


class RunFile(Section):
    """One run."""

    version: Annotated[Literal[1], Field(description="version of this format")]
    title: str = ""
    machine: str | dict[str, Any] = Field(description='a machine file, "catalog:NAME", or a machine\'s sections in place')
    workload: WorkloadSection
    scheduler: Annotated[SchedulerSection, OrFile()] = SchedulerSection()
    performance: PerformanceSection = PerformanceSection()
    measure: MeasureSection = MeasureSection()
    power: Annotated[PowerSection | None, OrFile()] = Field(default=None, description="instead of watts in the machine file")
    prices: Annotated[PriceSection | None, OrFile()] = Field(default=None, description="instead of its prices")
    today: TodaySection | None = Field(default=None, description="what runs today")


class StudyFile(RunFile):
    """A study: one run for each combination of what is varied and each seed."""

    vary: dict[str, Any] = Field(default={}, description="dotted path -> values; every combination is run")
    seeds: SeedsSection = SeedsSection()


def check(document: Document) -> StudyFile:
    """Validate the study that a document holds; the machine and the names in it are judged elsewhere."""
    check_version(document, model=StudyFile)
    return validate(StudyFile, document)
