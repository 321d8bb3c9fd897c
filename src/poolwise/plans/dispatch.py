"""Plans of kind "dispatch": the queue order and placement to run for a workload on given processing units.

Source: VineSim, section 4.6 (deployment and workload fixed, policies searched), section 9 (batch jobs with deadlines alongside
latency-critical jobs).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Self

from poolwise import catalog, registry
from poolwise.errors import InputError
from poolwise.files.component import Component
from poolwise.files.document import Document
from poolwise.files.fields import Section, validate
from poolwise.hashing import digest
from poolwise.metrics.latency import parents
from poolwise.model import Machine
from poolwise.plans.dispatch_answer import dispatch_answer
from poolwise.plans.dispatch_file import DispatchSection
from poolwise.plans.dispatch_tasks import DispatchTask, DispatchTaskType
from poolwise.plans.plan import Answer, PlanFile, ReportProgress
from poolwise.policies.placement.units.policy import UnitPolicy
from poolwise.runner import Executor, Store, records
from poolwise.runner.progress import LineProgress
from poolwise.traces import vinesim
from poolwise.traces.vinesim.affinity import count_columns

FOLDERS = {
    "deployment": "deployments",
    "affinity": "affinities",
    "power": "affinities",
    "types": "affinities",
    "trace": "traces",
}
"""Key of a plan that names a file -> catalog folder of shipped files."""


class DispatchFile(PlanFile):
    """A plan of the queue order and placement to run on given units."""

    plan: DispatchSection


@registry.register("plans", "dispatch")
@dataclass(frozen=True, eq=False)
class DispatchPlan:
    """The queue order and placement with the lowest latency of those that meet the deadline target."""

    file: ClassVar[type[Section]] = DispatchFile

    task_type: DispatchTaskType

    @classmethod
    def read(cls, document: Document) -> Self:
        """Read a plan file; raise InputError with file, line, field and remedy."""
        for name in document.tables:
            if name not in ("version", "title", "plan"):
                raise document.error((name,), f"a dispatch plan cannot have [{name}]", "write everything under [plan]")
        section = validate(DispatchSection, document, ("plan",))
        section = section.model_copy(update={"options": _options(section, document)})
        files = _files(section, document)
        types = vinesim.Types.read(files["types"]) if "types" in files else vinesim.Types()
        _check_names(section, types, document)
        sha256 = {f"{key} {file.name}": digest(file.read_bytes()) for key, file in files.items()}
        paths: dict[str, Path] = {key: files[key] for key in ("trace", "types") if key in files}
        return cls(DispatchTaskType(section, _machine(section, files, types), types, paths, sha256))

    def count_jobs(self) -> int:
        """Count the jobs of the trace or the streams."""
        return parents(self.task_type.workload(0))[1]

    def answer(self, out: Path, executor: Executor, tell: ReportProgress) -> Answer:
        """Simulate every order with every placement, and choose the best pair."""
        section, store = self.task_type.section, Store(out)
        pairs = [(order, placement) for order in range(len(section.order)) for placement in range(len(section.placement))]
        tasks = [DispatchTask(*pair, seed) for pair in pairs for seed in range(section.seeds)]
        tell(f"{len(pairs):,} candidates, {len(tasks):,} runs")
        with store.writing():
            found = records(self.task_type, tasks, store, executor, LineProgress(tell), min_tasks_per_process=2)
        each = [found[k : k + section.seeds] for k in range(0, len(found), section.seeds)]
        return dispatch_answer(self.task_type, dict(zip(pairs, each, strict=True)))


def _files(section: DispatchSection, document: Document) -> dict[str, Path]:
    """Return the files that a plan names, relative to the plan or shipped."""
    found = {}
    for key, kind in FOLDERS.items():
        reference = getattr(section, key)
        if reference is None:
            continue
        with document.errors_at("plan", key):
            shipped = reference.startswith(catalog.PREFIX)
            found[key] = catalog.resolve(kind, reference) if shipped else document.resolve_file(("plan", key), reference)
        if not found[key].is_file():
            raise document.error(("plan", key), f"no such file: {reference}", "give a path relative to the plan")
    return found


def _machine(section: DispatchSection, files: Mapping[str, Path], types: vinesim.Types) -> Machine:
    affinity = vinesim.read_affinity(files["affinity"], section.affinity_kind, types)
    power = vinesim.read_power(files["power"], types, count_columns(files["affinity"])) if "power" in files else None
    if "deployment" in files:
        deployment = vinesim.read_deployment(files["deployment"], types)
        return vinesim.machine_of_units(deployment, affinity, power=power, types=types, name=files["deployment"].stem)
    kinds = [types.units.index(name) for name, count in (section.units or {}).items() for _ in range(count)]
    deployment = vinesim.UnitList.of([(kind, 0, shelf) for shelf, kind in enumerate(kinds)])
    return vinesim.machine_of_units(deployment, affinity, power=power, types=types, name="units")


def _options(section: DispatchSection, document: Document) -> dict[str, object]:
    """Return the options of the format, with files resolved relative to the plan; raise InputError for an unknown name."""
    with document.errors_at("plan", "format"):
        registry.find("formats", section.format)
    with document.errors_at("plan", "options"):
        choice = Component.of(section.format, section.options).resolve_paths(document.file.parent)
        choice.make("formats")
    return choice.settings


def _check_names(section: DispatchSection, types: vinesim.Types, document: Document) -> None:
    for name in section.units or {}:
        if name not in types.units:
            raise document.unknown(("plan", "units"), "unit type", name, list(types.units))
    for k, stream in enumerate(section.stream):
        if stream.type not in types.tasks:
            raise document.unknown(("plan", "stream", k, "type"), "task type", stream.type, list(types.tasks))
        try:
            vinesim.InterArrival.parse(stream.inter_arrival)
        except InputError as error:
            raise document.error(("plan", "stream", k, "inter_arrival"), error.message, error.remedy) from error
    for choice in section.placement:
        with document.errors_at("plan", "placement"):
            policy = choice.make("placements")
            if not isinstance(policy, UnitPolicy):
                remedy = "choose flat, high, pref, closer_to_data, earliest_finish or delay"
                raise InputError(f"'{choice.name}' does not place single tasks", field="placement", remedy=remedy)
            policy.check_settings()
    for choice in section.order:
        with document.errors_at("plan", "order"):
            if choice.make("orders").kind != "static":
                raise InputError(
                    f"'{choice.name}' changes with time", field="order", remedy="choose a static order, such as edf"
                )
