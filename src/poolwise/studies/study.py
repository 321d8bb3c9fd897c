"""A study: the resolved study file and the cells that it stands for."""

from __future__ import annotations

import itertools
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from poolwise import catalog, registry
from poolwise.errors import InputError, Problems
from poolwise.files import scheduler as scheduler_file
from poolwise.files import study as study_file
from poolwise.files.component import Component
from poolwise.files.costs import Costs
from poolwise.files.document import SET, Document, Origin
from poolwise.files.factory import models_of
from poolwise.files.fields import check_version
from poolwise.files.machine import Described, described
from poolwise.files.state import STUDY
from poolwise.files.study import CATALOG, MeasureSection, PerformanceSection, SchedulerSection, StudyFile
from poolwise.hashing import canonical, digest
from poolwise.metrics.measure import Measure
from poolwise.metrics.summary import STANDARD, metrics_of
from poolwise.model import Kind, Machine
from poolwise.studies.cells import Cell, Generated, Parameter, Trace, cell_sources
from poolwise.studies.initial_state import SavedState
from poolwise.traces.generators import configure

FILES: Mapping[str, str] = {"machine": "machines", "scheduler": "schedulers", "power": "power", "prices": "prices"}
"""Section that may be a file of its own -> folder of the shipped ones."""


@dataclass(frozen=True, eq=False)
class Study:
    """What a study file asks for, resolved; every name in it is known and every machine can be built.

    Attributes
    ----------
    name, title : the file's name without ending, and its title
    file : where it stands
    tables : the resolved content, machine files and --set included
    vary : dotted path -> values as written
    measure : what is measured
    cells : the runs that are compared, in the order of the file (the last thing varied changes fastest, then the seed)
    memory_machine : machine of `measure.memory_baseline`, None if there is none
    metrics : what `measure.metrics` asks for beside the standard metrics, files named in full
    measures : the same, configured
    """

    name: str
    title: str
    file: Path
    tables: Mapping[str, Any]
    vary: Mapping[str, tuple[Parameter, ...]]
    measure: MeasureSection
    cells: tuple[Cell, ...]
    memory_machine: Described | None = None
    metrics: tuple[Component, ...] = ()
    measures: tuple[Measure, ...] = ()
    today: Mapping[str, Cell] = field(default_factory=dict)

    def memory_baseline(self, cell: Cell) -> Cell | None:
        """Run that a cell's throughput per memory dollar is measured against; None if not asked for."""
        return None if self.memory_machine is None else cell.on(self.memory_machine)

    @cached_property
    def memory_baselines(self) -> tuple[Cell, ...]:
        """Runs that throughput per memory dollar is measured against, each once; empty if not asked for."""
        found = [self.memory_baseline(cell) for cell in self.cells]
        return tuple({cell.key: cell for cell in found if cell is not None}.values())

    @cached_property
    def baselines(self) -> tuple[Cell, ...]:
        """Runs under FCFS without backfilling that fairness is measured against, each once; empty if not asked for."""
        if not self.measure.baseline:
            return ()
        found: dict[str, Cell] = {}
        variant: Cell | None = None
        for cell in self.cells:
            if variant is None or variant.parameters is not cell.parameters:
                variant, first = cell, cell.baseline()
            baseline = replace(first, seed=cell.seed, trace=cell.trace, memory_use=cell.memory_use)
            found.setdefault(baseline.key, baseline)
        return tuple(found.values())

    @cached_property
    def runs(self) -> tuple[Cell, ...]:
        """Everything that is simulated: the cells and those baselines that are not among them."""
        found: dict[str, Cell] = {}
        for cell in (*self.cells, *self.baselines, *self.memory_baselines, *self.today.values()):
            found.setdefault(cell.key, cell)  # of rows that share a run the first is kept
        return tuple(found.values())

    @cached_property
    def sha256(self) -> str:
        """Hash of the resolved content."""
        return digest(canonical(self.tables))


def load(path: str | Path, set: Mapping[str, Any] | None = None) -> Study:
    """Read a study file, or a shipped study by its name, and resolve everything in it.

    Raises InputError naming file, line, field and remedy.

    Parameters
    ----------
    path
        File, or name of a shipped study.
    set
        Dotted path -> value, as --set: values that replace those of the file. What is set is no longer varied.
    """
    return resolve(Document.read(find(path)), set)


def resolve(document: Document, set: Mapping[str, Any] | None = None) -> Study:
    """Resolve everything in a document that holds a study, which is changed by that; `set` and errors as in `load`."""
    file = document.file
    _open(document, *FILES)
    for key, value in sorted((set or {}).items(), key=lambda item: item[0].count(".")):
        _set(document, key, value)
    problems = Problems()
    with problems.attempt():
        base = study_file.check(document)
    with problems.attempt():
        vary = _vary(document)
    if isinstance(document.tables.get("machine"), dict) and "machine" not in str(document.tables.get("vary")):
        with problems.attempt():
            described(document, ("machine",))
    problems.finish()
    cells: list[Cell] = []
    today: dict[str, Cell] = {}
    seen: dict[tuple[str, str], int] = {}
    resolver = _Resolver()
    with problems.attempt():
        resolver.names(base, document)  # a wrong name is wrong, even where what is varied replaces it
    if not any(path.startswith("workload") for path in vary):
        with problems.attempt():
            resolver.workload(base, document, base.seeds.chosen()[0])
    problems.finish()
    for parameters, variant in _variants(document, vary):
        checked = study_file.check(variant)
        priced = ""
        for cell in resolver.cells(checked, variant, parameters, base.seeds.chosen()):
            priced = priced or canonical(cell.costs.content())
            if (same := (cell.key, priced)) in seen:
                message = f"two cells are the same: {cells[seen[same]].label} and {cell.label}"
                raise document.error(("vary",), message, "name each value once")
            seen[same] = len(cells)
            cells.append(cell)
        if base.today is not None:
            left, there = _today(variant, base.today.name, parameters)
            then = resolver.cells(study_file.check(there), there, left, base.seeds.chosen())
            today |= zip((cell.key for cell in cells[-len(base.seeds.chosen()) :]), then, strict=True)
    shown = {path: tuple(_written(value) for value in values) for path, values in vary.items()}
    metrics, measures = _measures(document, base)
    machine = _memory_machine(document, base, {_cores(cell.machine) for cell in cells})
    name, runs = file.stem, tuple(cells)
    return Study(name, base.title or name, file, document.tables, shown, base.measure, runs, machine, metrics, measures, today)


def find(path: str | Path) -> Path:
    """Path of a study file, of the study.toml of a folder, or of a shipped study by its name."""
    file = Path(path)
    if (file / STUDY).is_file():
        return file / STUDY
    if file.is_dir() and str(path) not in [name for name, _ in catalog.shipped("studies")]:
        raise InputError(
            f"the folder has no {STUDY}", file=file, remedy="give a study file, or a folder of `poolwise snapshot`"
        )
    if file.is_file() or file.suffix or len(file.parts) > 1:
        return file
    return catalog.find("studies", str(path))


def parse_setting(text: str) -> tuple[str, Any]:
    """Read KEY=VALUE, the value in TOML's syntax or as a bare text.

    Raises InputError for a missing "=" and for brackets or quotes that do not close.
    """
    key, equals, value = text.partition("=")
    key, value = key.strip(), value.strip()
    if not equals or not key:
        raise InputError(f"'{text}' is not KEY=VALUE", field="--set", remedy="such as --set scheduler.scope=system")
    try:
        return key, tomllib.loads(f"value = {value}")["value"]
    except tomllib.TOMLDecodeError as error:
        if value[:1] in ("[", "{", '"', "'"):
            message = f"{key}: {value} is not a TOML value"
            raise InputError(message, field="--set", remedy="close brackets and quotes") from error
        return key, value


def _set(document: Document, key: str, value: Any) -> None:
    """Replace a value; what is set is no longer varied."""
    vary = document.tables.get("vary")
    varied = _flat(vary) if isinstance(vary, dict) else {}
    if key.startswith("vary."):
        document.tables["vary"] = {**varied, key.removeprefix("vary."): value}
        document.replaced[key] = Origin(SET)
        return
    for path in varied:
        if key.startswith(f"{path}."):
            message = f"'{path}' is varied, so '{key}' cannot be set"
            raise InputError(message, field=key, remedy=f"set '{path}' or 'vary.{path}'")
    if key in varied:
        document.tables["vary"] = {path: values for path, values in varied.items() if path != key}
    document.set(key, value, Origin(SET))
    _open(document, key)


def _vary(document: Document) -> dict[str, list[Any]]:
    """Dotted path -> values to take."""
    written = document.tables.get("vary", {})
    found = _flat(written) if isinstance(written, dict) else {}  # another type is refused with the rest of the file
    for path, values in found.items():
        where = ("vary", path) if path in document.tables["vary"] else ("vary", *path.split("."))
        if not isinstance(values, list) or not values:
            raise document.error(where, "what is varied needs a list of values", f'write "{path}" = [...]')
        if path.partition(".")[0] in ("vary", "seeds", "measure", "version", "title", "today"):
            raise document.error(where, f"'{path}' cannot be varied", "vary the machine, workload, scheduler or performance")
    return found


def _variants(document: Document, vary: Mapping[str, list[Any]]) -> Iterator[tuple[dict[str, Parameter], Document]]:
    """Every combination, with the document that it makes; paths are set from the outside in."""
    inward = sorted(vary, key=lambda path: path.count("."))
    for values in itertools.product(*vary.values()):
        chosen = dict(zip(vary, values, strict=True))
        variant = document.copy()
        for path in inward:
            _, line, label = document.place(("vary", path))
            variant.set(path, chosen[path], Origin(label or "vary", line))
            _open(variant, path)
        yield {path: _written(value) for path, value in chosen.items()}, variant


def _today(variant: Document, name: str, parameters: Mapping[str, Parameter]) -> tuple[dict[str, Parameter], Document]:
    """What runs today in the place of a variant: what is varied of it still, and the document that says so."""
    there = variant.copy()
    written = there.tables.pop("today")
    for part in ("machine", "scheduler"):
        if part in written:
            _, line, label = variant.place(("today", part))
            there.parts.pop(part, None)
            there.set(part, written[part], Origin(label or "today", line))
            _open(there, part)
    left = {path: value for path, value in parameters.items() if path.partition(".")[0] not in written}
    return {"today": name, **left}, there


def _open(document: Document, *sections: str) -> None:
    """Replace names of files by their content, in those of the sections that may be files."""
    for section in sections:
        reference = document.tables.get(section)
        if section in FILES and isinstance(reference, str):
            part = Document.read(_file_of(document, section, reference))
            if section == "machine":
                document.tables[section] = part.tables
                if "format" not in part.tables:  # other forms have names of their own
                    part.tables.setdefault("name", part.file.stem)
            else:
                check_version(part)
                document.tables[section] = {k: v for k, v in part.tables.items() if k not in ("version", "title")}
            document.replaced.pop(section, None)
            document.parts[section] = part


def _file_of(document: Document, section: str, reference: str, place: tuple[str, ...] = ()) -> Path:
    """Path of a file or a shipped one; errors stand at `place`, the section if not given."""
    if reference.startswith(CATALOG):
        with document.placing(*(place or (section,))):
            return catalog.find(FILES[section], reference.removeprefix(CATALOG))
    file = document.beside(place or (section,), reference)
    if not file.is_file():
        remedy = f'give a {section} file, or "{CATALOG}NAME"'
        raise document.error(place or (section,), f"no such file: {reference}", remedy)
    return file


def _measures(document: Document, base: StudyFile) -> tuple[tuple[Component, ...], tuple[Measure, ...]]:
    """What `measure.metrics` names, with files in full, and the same configured."""
    with document.placing("measure", "metrics"):
        chosen = tuple(choice.beside(document.file.parent) for choice in base.measure.metrics)
        measures = tuple(choice.make("metrics") for choice in chosen)
        metrics_of((*STANDARD, *measures))
    return chosen, measures


def _memory_machine(document: Document, base: StudyFile, cores: set[tuple[int, ...]]) -> Described | None:
    """Machine that `measure.memory_baseline` names; `cores` are those that the other machines have."""
    reference, place = base.measure.memory_baseline, ("measure", "memory_baseline")
    if reference is None:
        return None
    part = Document.read(_file_of(document, "machine", reference, place))
    part.tables.setdefault("name", part.file.stem)
    found = described(part)
    if cores != {_cores(found.machine)}:  # the same log would give other jobs there
        raise document.error(place, "its nodes have other numbers of cores", "compare machines with equal nodes but for memory")
    return found


def _cores(machine: Machine) -> tuple[int, ...]:
    """Cores that a whole node may have, ascending."""
    cores = machine.per_node.get("cores")
    return () if cores is None else tuple(sorted(set(cores[machine.of_kind(Kind.NODE)].tolist())))


class _Resolver:
    """Builds cells; machines and traces that occur again are taken from a cache."""

    def __init__(self) -> None:
        self._machines: dict[str, Described] = {}
        self._digests: dict[Path, str] = {}

    def cells(
        self, file: StudyFile, document: Document, parameters: dict[str, Parameter], seeds: Sequence[int]
    ) -> Iterator[Cell]:
        """A cell for each seed, which share all that does not depend on it."""
        scheduler, performance = self.names(file, document)
        text = canonical([document.tables["machine"], str(document.place(("machine", "version"))[0].parent)])
        if text not in self._machines:
            self._machines[text] = described(document, ("machine",))
        machine = self._machines[text]
        costs = Costs(file.power, file.prices)
        costs.check(machine.machine, document)
        workload: Trace | Generated | SavedState | None = None
        for seed in seeds:
            before, workload = workload, self.workload(file, document, seed)
            workload = before if before == workload else workload
            memory_use = self.memory_use(file, document, seed)
            yield Cell(
                parameters,
                seed,
                *machine,
                workload,
                scheduler,
                performance,
                file.measure.warm_up,
                cell_sources(),
                costs,
                memory_use,
            )

    def names(self, file: StudyFile, document: Document) -> tuple[SchedulerSection, PerformanceSection]:
        problems = Problems()
        with problems.attempt():
            scheduler = scheduler_file.resolve(file.scheduler, document, ("scheduler",))
        named = {"model": file.performance.model, "estimate_model": file.performance.estimate_model}
        found: dict[str, Component] = {}
        for key, choice in named.items():
            if choice is not None:
                with problems.attempt(), document.placing("performance", key):
                    found[key] = choice.beside(document.file.parent)
                    found[key].make("models")
        problems.finish()
        performance = file.performance.model_copy(update=found)
        with document.placing("performance"):
            models_of(performance, 0)
        return scheduler, performance

    def memory_use(self, file: StudyFile, document: Document, seed: int) -> Component | None:
        """What says which memory jobs use; one with a seed gets the cell's unless the study gives one."""
        if file.workload.memory_use is None:
            return None
        with document.placing("workload", "memory_use"):
            choice = file.workload.memory_use.beside(document.file.parent)
            made = choice.make("memory_uses")
        seeded = "seed" in getattr(made, "__dataclass_fields__", {}) and "seed" not in choice.settings
        return Component(name=choice.name, **{**choice.settings, **({"seed": seed} if seeded else {})})

    def workload(self, file: StudyFile, document: Document, seed: int) -> Trace | Generated | SavedState:
        workload = file.workload
        if workload.state is not None:
            return self._state(file, document, workload.state)
        if workload.generator is None:
            return self._trace(file, document, seed)
        with document.placing("workload", "settings"):
            choice = Component.of(workload.generator, workload.settings).beside(document.file.parent)
        name, settings = choice.name, {"seed": seed, **choice.settings}
        with document.placing("workload", "generator"):
            registry.find("generators", name)
        with document.placing("workload", "settings"):
            configure(name, **settings)
        return Generated(name, canonical(settings), workload.first, workload.jobs)

    def _state(self, file: StudyFile, document: Document, reference: str) -> SavedState:
        path = document.beside(("workload", "state"), reference)
        if not path.is_file():
            remedy = "give the state.toml of a folder that `poolwise snapshot` wrote, relative to the study"
            raise document.error(("workload", "state"), f"no such file: {reference}", remedy)
        if file.measure.warm_up:
            problem = "a run that goes on from a state has no warm-up"
            raise document.error(("measure", "warm_up"), problem, "write warm_up = 0")
        with document.placing("workload", "state"):
            return SavedState.of(path.resolve(), file.workload.unsaid)

    def _trace(self, file: StudyFile, document: Document, seed: int) -> Trace:
        """The stretch that is read; a format with a seed gets the cell's unless the study gives one."""
        workload = file.workload
        assert workload.trace is not None  # the section takes one of trace and generator
        if workload.trace.startswith(CATALOG):
            try:
                path = catalog.find("traces", workload.trace.removeprefix(CATALOG))
            except InputError as error:
                raise document.error(("workload", "trace"), error.message, error.remedy) from None
        else:
            path = document.beside(("workload", "trace"), workload.trace)
        if not path.is_file():
            remedy = "give a path relative to the study, or --set workload.trace=PATH"
            raise document.error(("workload", "trace"), f"no such file: {workload.trace}", remedy)
        path = path.resolve()
        if path not in self._digests:
            self._digests[path] = digest(path.read_bytes())
        known: Mapping[str, Any] = {}
        given, name = workload.options, workload.format
        if workload.format != "auto":
            with document.placing("workload", "options"):
                choice = Component.of(workload.format, workload.options).beside(document.file.parent)
            with document.placing("workload", "format"):
                known = getattr(registry.find("formats", choice.name), "__dataclass_fields__", {})
            with document.placing("workload", "options"):
                choice.make("formats")
            given, name = choice.settings, choice.name
        options = canonical({"seed": seed, **given} if "seed" in known else given)
        return Trace(str(path), self._digests[path], name, options, workload.first, workload.jobs, workload.clock)


def _flat(table: Mapping[str, Any], before: str = "") -> dict[str, Any]:
    """[vary] may be written with quoted keys or as nested tables."""
    found: dict[str, Any] = {}
    for key, value in table.items():
        path = f"{before}{key}"
        if isinstance(value, dict):
            found |= _flat(value, f"{path}.")
        else:
            found[path] = value
    return found


def _written(value: Any) -> Parameter:
    """A varied value as labels show it."""
    if isinstance(value, dict):
        return str(Component.model_validate(value)) if isinstance(value.get("name"), str) else canonical(value)
    return value if isinstance(value, bool | int | float | str) else canonical(value)
