"""Studies: a resolved study file and its cells."""

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
from poolwise.files.machine import MachineDescription, read_machine
from poolwise.files.state import STUDY
from poolwise.files.study import CATALOG, MeasureSection, PerformanceSection, SchedulerSection, StudyFile
from poolwise.hashing import canonical, digest
from poolwise.metrics.measure import Measure
from poolwise.metrics.summary import STANDARD, metrics_of
from poolwise.model import Kind, Machine
from poolwise.short_repr import short_repr
from poolwise.studies.cells import Cell, Generated, Parameter, Trace, cell_sources
from poolwise.studies.initial_state import SavedState
from poolwise.traces.generators import configure

FILES: Mapping[str, str] = {"machine": "machines", "scheduler": "schedulers", "power": "power", "prices": "prices"}
"""Section that a file may replace -> catalog folder."""


@dataclass(frozen=True, eq=False)
class Study:
    """A resolved study file: every name in it is known, and every machine can be built. `load` returns it.

    Attributes
    ----------
    name, title : file name without suffix, and title
    file : study file
    tables : resolved content, including machine files and --set values
    vary : dotted path -> values as written
    measure : what is measured
    cells : the runs that are compared, in the order of the file (the last thing varied changes fastest, then the seed)
    memory_machine : machine of `measure.memory_baseline`, None if there is none
    metrics : additional metrics of `measure.metrics`, with absolute paths
    measures : the same, configured
    today : key of a cell -> the run of what runs today that it is compared with

    Examples
    --------
    >>> import poolwise
    >>> study = poolwise.load("cerit-pools", {"scheduler.order": "fm"})
    >>> study.name, list(study.vary)
    ('cerit-pools', ['machine.pool.memory.memory'])
    """

    __repr__ = short_repr

    name: str
    title: str
    file: Path
    tables: Mapping[str, Any]
    vary: Mapping[str, tuple[Parameter, ...]]
    measure: MeasureSection
    cells: tuple[Cell, ...]
    memory_machine: MachineDescription | None = None
    metrics: tuple[Component, ...] = ()
    measures: tuple[Measure, ...] = ()
    today: Mapping[str, Cell] = field(default_factory=dict)

    def memory_baseline(self, cell: Cell) -> Cell | None:
        """Return the baseline cell for a cell's throughput per memory dollar, or None if the study has none."""
        return None if self.memory_machine is None else cell.on(self.memory_machine)

    @cached_property
    def memory_baselines(self) -> tuple[Cell, ...]:
        """Distinct baseline runs for throughput per memory dollar; empty if the study has none."""
        found = [self.memory_baseline(cell) for cell in self.cells]
        return tuple({cell.key: cell for cell in found if cell is not None}.values())

    @cached_property
    def baselines(self) -> tuple[Cell, ...]:
        """Distinct runs under FCFS without backfilling for fairness metrics; empty if the study has none."""
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
        """All simulated runs: the cells, and baselines and runs of today that are not among them."""
        found: dict[str, Cell] = {}
        for cell in (*self.cells, *self.baselines, *self.memory_baselines, *self.today.values()):
            found.setdefault(cell.key, cell)  # the first of the rows that share a run
        return tuple(found.values())

    @cached_property
    def sha256(self) -> str:
        """SHA-256 of the resolved content."""
        return digest(canonical(self.tables))


def load(path: str | Path, set: Mapping[str, Any] | None = None) -> Study:
    """Read a study file, or a shipped study by its name, and resolve everything in it.

    Parameters
    ----------
    path
        File, folder of `poolwise snapshot`, or name of a shipped study.
    set
        Dotted path -> value that replaces one of the file, as --set does. A path that is set is no longer varied.

    Returns
    -------
    Study

    Raises
    ------
    InputError
        The study is invalid; the error names file, line, field and remedy.

    Examples
    --------
    >>> import poolwise
    >>> study = poolwise.load("cerit-pools", {"workload.jobs": 700, "scheduler.order": "fm"})
    >>> len(study.cells)
    5
    """
    return resolve(Document.read(find(path)), set)


def resolve(document: Document, set: Mapping[str, Any] | None = None) -> Study:
    """Resolve the study in a document, which is modified; `set` and errors as in `load`."""
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
            read_machine(document, ("machine",))
    problems.finish()
    cells: list[Cell] = []
    today: dict[str, Cell] = {}
    seen: dict[tuple[str, str], int] = {}
    resolver = _Resolver()
    with problems.attempt():
        resolver.names(base, document)  # report wrong names even if varied values replace them
    if not any(path.startswith("workload") for path in vary):
        with problems.attempt():
            resolver.workload(base, document, base.seeds.chosen()[0])
    problems.finish()
    for parameters, variant in _variants(document, vary):
        checked = study_file.check(variant)
        costs_key = ""
        for cell in resolver.cells(checked, variant, parameters, base.seeds.chosen()):
            costs_key = costs_key or canonical(cell.costs.content())
            if (same := (cell.key, costs_key)) in seen:
                message = f"duplicate cells: {cells[seen[same]].label} and {cell.label}"
                raise document.error(("vary",), message, "list each value once")
            seen[same] = len(cells)
            cells.append(cell)
        if base.today is not None:
            left, current = _today(variant, base.today.name, parameters)
            then = resolver.cells(study_file.check(current), current, left, base.seeds.chosen())
            today |= zip((cell.key for cell in cells[-len(base.seeds.chosen()) :]), then, strict=True)
    shown = {path: tuple(_label_value(value) for value in values) for path, values in vary.items()}
    metrics, measures = _measures(document, base)
    machine = _memory_machine(document, base, {_cores(cell.machine) for cell in cells})
    name, runs = file.stem, tuple(cells)
    return Study(name, base.title or name, file, document.tables, shown, base.measure, runs, machine, metrics, measures, today)


def find(path: str | Path) -> Path:
    """Return the path of a study file, of the study.toml in a folder, or of a catalog study."""
    file = Path(path)
    if (file / STUDY).is_file():
        return file / STUDY
    if file.is_dir() and str(path) not in [name for name, _ in catalog.shipped("studies")]:
        raise InputError(
            f"no {STUDY} in the folder", file=file, remedy="give a study file, or a folder written by `poolwise snapshot`"
        )
    if file.is_file() or file.suffix or len(file.parts) > 1:
        return file
    return catalog.find("studies", str(path))


def parse_setting(text: str) -> tuple[str, Any]:
    """Parse KEY=VALUE; the value is TOML or a bare string.

    Raises InputError for a missing "=" and for unbalanced brackets or quotes.
    """
    key, equals, value = text.partition("=")
    key, value = key.strip(), value.strip()
    if not equals or not key:
        raise InputError(f"'{text}' is not KEY=VALUE", field="--set", remedy="such as --set scheduler.scope=system")
    try:
        return key, tomllib.loads(f"value = {value}")["value"]
    except tomllib.TOMLDecodeError as error:
        if value[:1] in ("[", "{", '"', "'"):
            message = f"{key}: {value} is not a valid TOML value"
            raise InputError(message, field="--set", remedy="close brackets and quotes") from error
        return key, value


def _set(document: Document, key: str, value: Any) -> None:
    """Replace a value; a path that is set is no longer varied."""
    vary = document.tables.get("vary")
    varied = _flat(vary) if isinstance(vary, dict) else {}
    if key.startswith("vary."):
        document.tables["vary"] = {**varied, key.removeprefix("vary."): value}
        document.replaced[key] = Origin(SET)
        return
    for path in varied:
        if key.startswith(f"{path}."):
            message = f"'{key}' cannot be set because '{path}' is varied"
            raise InputError(message, field=key, remedy=f"set '{path}' or 'vary.{path}'")
    if key in varied:
        document.tables["vary"] = {path: values for path, values in varied.items() if path != key}
    document.set(key, value, Origin(SET))
    _open(document, key)


def _vary(document: Document) -> dict[str, list[Any]]:
    """Return dotted path -> list of values."""
    written = document.tables.get("vary", {})
    found = _flat(written) if isinstance(written, dict) else {}  # validation of the file rejects other types
    for path, values in found.items():
        location = ("vary", path) if path in document.tables["vary"] else ("vary", *path.split("."))
        if not isinstance(values, list) or not values:
            raise document.error(location, "expected a non-empty list of values", f'write "{path}" = [...]')
        if path.partition(".")[0] in ("vary", "seeds", "measure", "version", "title", "today"):
            raise document.error(location, f"'{path}' cannot be varied", "vary machine, workload, scheduler or performance")
    return found


def _variants(document: Document, vary: Mapping[str, list[Any]]) -> Iterator[tuple[dict[str, Parameter], Document]]:
    """Yield every combination of values with its document; outer paths are set before inner ones."""
    inward = sorted(vary, key=lambda path: path.count("."))
    for values in itertools.product(*vary.values()):
        chosen = dict(zip(vary, values, strict=True))
        variant = document.copy()
        for path in inward:
            _, line, label = document.location(("vary", path))
            variant.set(path, chosen[path], Origin(label or "vary", line))
            _open(variant, path)
        yield {path: _label_value(value) for path, value in chosen.items()}, variant


def _today(variant: Document, name: str, parameters: Mapping[str, Parameter]) -> tuple[dict[str, Parameter], Document]:
    """Return the varied values that today's configuration of a variant keeps, and its document."""
    current = variant.copy()
    written = current.tables.pop("today")
    for part in ("machine", "scheduler"):
        if part in written:
            _, line, label = variant.location(("today", part))
            current.parts.pop(part, None)
            current.set(part, written[part], Origin(label or "today", line))
            _open(current, part)
    left = {path: value for path, value in parameters.items() if path.partition(".")[0] not in written}
    return {"today": name, **left}, current


def _open(document: Document, *sections: str) -> None:
    """Replace file names by the content of the files, in those of the given sections that support it."""
    for section in sections:
        reference = document.tables.get(section)
        if section in FILES and isinstance(reference, str):
            part = Document.read(_resolve_section_file(document, section, reference))
            if section == "machine":
                document.tables[section] = part.tables
                if "format" not in part.tables:  # other formats have their own names
                    part.tables.setdefault("name", part.file.stem)
            else:
                check_version(part)
                document.tables[section] = {k: v for k, v in part.tables.items() if k not in ("version", "title")}
            document.replaced.pop(section, None)
            document.parts[section] = part


def _resolve_section_file(document: Document, section: str, reference: str, path: tuple[str, ...] = ()) -> Path:
    """Return the path of a section's file or catalog entry; errors report the location of `path`, by default the section."""
    if reference.startswith(CATALOG):
        with document.errors_at(*(path or (section,))):
            return catalog.find(FILES[section], reference.removeprefix(CATALOG))
    file = document.resolve_file(path or (section,), reference)
    if not file.is_file():
        remedy = f'give a {section} file, or "{CATALOG}NAME"'
        raise document.error(path or (section,), f"no such file: {reference}", remedy)
    return file


def _measures(document: Document, base: StudyFile) -> tuple[tuple[Component, ...], tuple[Measure, ...]]:
    """Return the metrics of `measure.metrics`, with absolute paths, and the built metrics."""
    with document.errors_at("measure", "metrics"):
        chosen = tuple(component.resolve_paths(document.file.parent) for component in base.measure.metrics)
        measures = tuple(component.make("metrics") for component in chosen)
        metrics_of((*STANDARD, *measures))
    return chosen, measures


def _memory_machine(document: Document, base: StudyFile, cores: set[tuple[int, ...]]) -> MachineDescription | None:
    """Read the machine of `measure.memory_baseline`; `cores` are the core counts of the other machines' nodes."""
    reference, path = base.measure.memory_baseline, ("measure", "memory_baseline")
    if reference is None:
        return None
    part = Document.read(_resolve_section_file(document, "machine", reference, path))
    part.tables.setdefault("name", part.file.stem)
    found = read_machine(part)
    if cores != {_cores(found.machine)}:  # the same trace would give different jobs there
        raise document.error(path, "its nodes have different core counts", "use a machine that differs in memory only")
    return found


def _cores(machine: Machine) -> tuple[int, ...]:
    """Return the distinct core counts of whole nodes, ascending."""
    cores = machine.per_node.get("cores")
    return () if cores is None else tuple(sorted(set(cores[machine.of_kind(Kind.NODE)].tolist())))


class _Resolver:
    """Builder of cells that caches machines and hashes of traces."""

    def __init__(self) -> None:
        self._machines: dict[str, MachineDescription] = {}
        self._digests: dict[Path, str] = {}

    def cells(
        self, file: StudyFile, document: Document, parameters: dict[str, Parameter], seeds: Sequence[int]
    ) -> Iterator[Cell]:
        """Yield a cell for each seed; the cells share everything that does not depend on the seed."""
        scheduler, performance = self.names(file, document)
        text = canonical([document.tables["machine"], str(document.location(("machine", "version"))[0].parent)])
        if text not in self._machines:
            self._machines[text] = read_machine(document, ("machine",))
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
        for key, component in named.items():
            if component is not None:
                with problems.attempt(), document.errors_at("performance", key):
                    found[key] = component.resolve_paths(document.file.parent)
                    found[key].make("models")
        problems.finish()
        performance = file.performance.model_copy(update=found)
        with document.errors_at("performance"):
            models_of(performance, 0)
        return scheduler, performance

    def memory_use(self, file: StudyFile, document: Document, seed: int) -> Component | None:
        """Return the model of memory use; its seed defaults to the cell's."""
        if file.workload.memory_use is None:
            return None
        with document.errors_at("workload", "memory_use"):
            component = file.workload.memory_use.resolve_paths(document.file.parent)
            made = component.make("memory_uses")
        seeded = "seed" in getattr(made, "__dataclass_fields__", {}) and "seed" not in component.settings
        return Component(name=component.name, **{**component.settings, **({"seed": seed} if seeded else {})})

    def workload(self, file: StudyFile, document: Document, seed: int) -> Trace | Generated | SavedState:
        workload = file.workload
        if workload.state is not None:
            return self._state(file, document, workload.state)
        if workload.generator is None:
            return self._trace(file, document, seed)
        with document.errors_at("workload", "settings"):
            component = Component.of(workload.generator, workload.settings).resolve_paths(document.file.parent)
        name, settings = component.name, {"seed": seed, **component.settings}
        with document.errors_at("workload", "generator"):
            registry.find("generators", name)
        with document.errors_at("workload", "settings"):
            configure(name, **settings)
        return Generated(name, canonical(settings), workload.first, workload.jobs)

    def _state(self, file: StudyFile, document: Document, reference: str) -> SavedState:
        path = document.resolve_file(("workload", "state"), reference)
        if not path.is_file():
            remedy = "give the state.toml of a folder written by `poolwise snapshot`, relative to the study file"
            raise document.error(("workload", "state"), f"no such file: {reference}", remedy)
        if file.measure.warm_up:
            problem = "a run from a state cannot have a warm-up"
            raise document.error(("measure", "warm_up"), problem, "write warm_up = 0")
        with document.errors_at("workload", "state"):
            return SavedState.of(path.resolve(), file.workload.unsaid)

    def _trace(self, file: StudyFile, document: Document, seed: int) -> Trace:
        """Return the excerpt of the trace; the seed of a format defaults to the cell's."""
        workload = file.workload
        assert workload.trace is not None  # validation requires a trace, a generator or a state
        if workload.trace.startswith(CATALOG):
            try:
                path = catalog.find("traces", workload.trace.removeprefix(CATALOG))
            except InputError as error:
                raise document.error(("workload", "trace"), error.message, error.remedy) from None
        else:
            path = document.resolve_file(("workload", "trace"), workload.trace)
        if not path.is_file():
            remedy = "give a path relative to the study file, or --set workload.trace=PATH"
            raise document.error(("workload", "trace"), f"no such file: {workload.trace}", remedy)
        path = path.resolve()
        if path not in self._digests:
            self._digests[path] = digest(path.read_bytes())
        known: Mapping[str, Any] = {}
        given, name = workload.options, workload.format
        if workload.format != "auto":
            with document.errors_at("workload", "options"):
                component = Component.of(workload.format, workload.options).resolve_paths(document.file.parent)
            with document.errors_at("workload", "format"):
                known = getattr(registry.find("formats", component.name), "__dataclass_fields__", {})
            with document.errors_at("workload", "options"):
                component.make("formats")
            given, name = component.settings, component.name
        options = canonical({"seed": seed, **given} if "seed" in known else given)
        return Trace(str(path), self._digests[path], name, options, workload.first, workload.jobs, workload.clock)


def _flat(table: Mapping[str, Any], before: str = "") -> dict[str, Any]:
    """Flatten [vary], which may have quoted keys or nested tables."""
    found: dict[str, Any] = {}
    for key, value in table.items():
        path = f"{before}{key}"
        if isinstance(value, dict):
            found |= _flat(value, f"{path}.")
        else:
            found[path] = value
    return found


def _label_value(value: Any) -> Parameter:
    """Return a varied value as shown in labels."""
    if isinstance(value, dict):
        return str(Component.model_validate(value)) if isinstance(value.get("name"), str) else canonical(value)
    return value if isinstance(value, bool | int | float | str) else canonical(value)
