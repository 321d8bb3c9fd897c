"""A study: the resolved study file and the cells that it stands for."""

from __future__ import annotations

import itertools
import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from poolwise import catalog, registry
from poolwise.errors import InputError
from poolwise.studies import machine_file, study_file
from poolwise.studies.build import machine_of
from poolwise.studies.cells import (
    Cell,
    Generated,
    Parameter,
    Trace,
    canonical,
    digest,
    models_of,
    scheduler_content,
    scheduler_of,
    sources,
)
from poolwise.studies.choice import Choice
from poolwise.studies.document import Document, Origin
from poolwise.studies.study_file import CATALOG, MeasureSection, PerformanceSection, SchedulerSection, StudyFile
from poolwise.traces.generators import configure


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
    """

    name: str
    title: str
    file: Path
    tables: Mapping[str, Any]
    vary: Mapping[str, tuple[Parameter, ...]]
    measure: MeasureSection
    cells: tuple[Cell, ...]

    @cached_property
    def baselines(self) -> tuple[Cell, ...]:
        """Runs under FCFS without backfilling that fairness is measured against, each once; empty if not asked for."""
        if not self.measure.baseline:
            return ()
        return tuple({cell.baseline().key: cell.baseline() for cell in self.cells}.values())

    @cached_property
    def runs(self) -> tuple[Cell, ...]:
        """Everything that is simulated: the cells and those baselines that are not among them."""
        keys = {cell.key for cell in self.cells}
        return (*self.cells, *(cell for cell in self.baselines if cell.key not in keys))

    @cached_property
    def sha256(self) -> str:
        """Hash of the resolved content."""
        return digest(canonical(self.tables))


def load(path: str | Path, set: Mapping[str, Any] | None = None) -> Study:
    """Read a study file, or a shipped study by its name, and resolve everything in it.

    Parameters
    ----------
    path
        File, or name of a shipped study.
    set
        Dotted path -> value, as --set: values that replace those of the file. What is set is no longer varied.

    Raises InputError naming file, line, field and remedy.
    """
    file = find(path)
    document = Document.read(file)
    _open_machine(document)
    for key, value in sorted((set or {}).items(), key=lambda item: item[0].count(".")):
        _set(document, key, value)
    base = study_file.check(document)
    vary = _vary(document)
    cells: list[Cell] = []
    seen: dict[str, str] = {}
    resolver = _Resolver()
    resolver.names(base, document)  # a wrong name is wrong, even where what is varied replaces it
    for parameters, variant in _variants(document, vary):
        checked = study_file.check(variant)
        for seed in base.seeds.chosen():
            cell = resolver.cell(checked, variant, parameters, seed)
            if cell.key in seen:
                message = f"two cells are the same: {seen[cell.key]} and {cell.label}"
                raise document.error(("vary",), message, "name each value once")
            seen[cell.key] = cell.label
            cells.append(cell)
    shown = {path: tuple(_written(value) for value in values) for path, values in vary.items()}
    return Study(file.stem, base.title or file.stem, file, document.tables, shown, base.measure, tuple(cells))


def find(path: str | Path) -> Path:
    """Path of a study file, or of a shipped study by its name."""
    file = Path(path)
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
    """Replace a value; what is set is varied no more."""
    vary = document.tables.get("vary")
    varied = _flat(vary) if isinstance(vary, dict) else {}
    if key.startswith("vary."):
        document.tables["vary"] = {**varied, key.removeprefix("vary."): value}
        document.replaced[key] = Origin("--set")
        return
    for path in varied:
        if key.startswith(f"{path}."):
            message = f"'{path}' is varied, so '{key}' cannot be set"
            raise InputError(message, field=key, remedy=f"set '{path}' or 'vary.{path}'")
    if key in varied:
        document.tables["vary"] = {path: values for path, values in varied.items() if path != key}
    document.set(key, value, Origin("--set"))
    if key == "machine":
        _open_machine(document)


def _vary(document: Document) -> dict[str, list[Any]]:
    """Dotted path -> values to take."""
    found = _flat(document.tables.get("vary", {}))
    for path, values in found.items():
        where = ("vary", path) if path in document.tables["vary"] else ("vary", *path.split("."))
        if not isinstance(values, list) or not values:
            raise document.error(where, "what is varied needs a list of values", f'write "{path}" = [...]')
        if path.partition(".")[0] in ("vary", "seeds", "measure", "version", "title"):
            raise document.error(where, f"'{path}' cannot be varied", "vary the machine, workload, scheduler or performance")
    return found


def _variants(document: Document, vary: Mapping[str, list[Any]]) -> Iterator[tuple[dict[str, Parameter], Document]]:
    """Every combination, with the document that it makes; paths are set from the outside in."""
    inward = sorted(vary, key=lambda path: path.count("."))
    for values in itertools.product(*vary.values()):
        chosen = dict(zip(vary, values, strict=True))
        variant = document.copy()
        for path in inward:
            variant.set(path, chosen[path], Origin("vary", document.place(("vary", path))[1]))
            if path == "machine":
                _open_machine(variant)
        yield {path: _written(value) for path, value in chosen.items()}, variant


def _open_machine(document: Document) -> None:
    """Put the content of the machine file in the place of its name."""
    reference = document.tables.get("machine")
    if not isinstance(reference, str):
        return
    if reference.startswith(CATALOG):
        try:
            file = catalog.find("machines", reference.removeprefix(CATALOG))
        except InputError as error:
            raise document.error(("machine",), error.message, error.remedy) from None
    else:
        file = document.file.parent / reference
        if not file.is_file():
            raise document.error(("machine",), f"no such file: {reference}", f'give a machine file, or "{CATALOG}NAME"')
    part = Document.read(file)
    document.tables["machine"] = part.tables
    document.tables["machine"].setdefault("name", file.stem)
    document.replaced.pop("machine", None)
    document.parts["machine"] = part


class _Resolver:
    """Builds cells; machines and traces that occur again are taken from a cache."""

    def __init__(self) -> None:
        self._machines: dict[str, Any] = {}
        self._digests: dict[Path, str] = {}

    def cell(self, file: StudyFile, document: Document, parameters: dict[str, Parameter], seed: int) -> Cell:
        scheduler, performance = self.names(file, document)
        machine = machine_file.check(document, ("machine",)) if isinstance(file.machine, dict) else None
        assert machine is not None  # _open_machine has replaced every text
        text = canonical([machine.content(), machine.name])
        if text not in self._machines:
            built = machine_of(machine, "machine", document, ("machine",))
            self._machines[text] = built
        return Cell(
            parameters,
            seed,
            self._machines[text],
            machine.content(),
            self._workload(file, document, seed),
            scheduler,
            performance,
            file.measure.warm_up,
            sources(),
        )

    def names(self, file: StudyFile, document: Document) -> tuple[SchedulerSection, PerformanceSection]:
        folder = document.file.parent
        section = file.scheduler
        found = {part: getattr(section, part) for part in ("order", "backfill", "placement")}
        named = {part: choice.beside(folder) for part, choice in found.items() if isinstance(choice, Choice)}
        scheduler = section.model_copy(update=named)
        performance = file.performance.model_copy(update={"model": file.performance.model.beside(folder)})
        for group, part in (("orders", "order"), ("backfills", "backfill"), ("placements", "placement")):
            if part in named:
                _try(document, ("scheduler", part), partial(named[part].make, group))
        _try(document, ("scheduler", "kind"), lambda: registry.find("schedulers", scheduler.kind))
        _try(document, ("scheduler", "settings"), lambda: (scheduler_of(scheduler), scheduler_content(scheduler)))
        _try(document, ("performance", "model"), lambda: performance.model.make("models"))
        _try(document, ("performance",), lambda: models_of(performance, 0))
        return scheduler, performance

    def _workload(self, file: StudyFile, document: Document, seed: int) -> Trace | Generated:
        workload = file.workload
        if workload.generator is None:
            return self._trace(file, document)
        settings = {"seed": seed, **workload.settings}
        name = Choice(name=workload.generator).beside(document.file.parent).name
        _try(document, ("workload", "generator"), lambda: registry.find("generators", name))
        _try(document, ("workload", "settings"), lambda: configure(name, **settings))
        return Generated(name, canonical(settings), workload.first, workload.jobs)

    def _trace(self, file: StudyFile, document: Document) -> Trace:
        workload = file.workload
        assert workload.trace is not None  # the section takes one of trace and generator
        if workload.trace.startswith(CATALOG):
            try:
                path = catalog.find("traces", workload.trace.removeprefix(CATALOG))
            except InputError as error:
                raise document.error(("workload", "trace"), error.message, error.remedy) from None
        else:
            path = document.file.parent / workload.trace
        if not path.is_file():
            raise document.error(("workload", "trace"), f"no such file: {workload.trace}", "give a path relative to the study")
        path = path.resolve()
        if path not in self._digests:
            self._digests[path] = digest(path.read_bytes())
        if workload.format != "auto":
            choice = Choice(name=workload.format, **workload.options)
            _try(document, ("workload", "format"), lambda: registry.find("formats", choice.name))
            _try(document, ("workload", "options"), lambda: choice.make("formats"))
        options = canonical(workload.options)
        return Trace(str(path), self._digests[path], workload.format, options, workload.first, workload.jobs)


def _try(document: Document, path: tuple[str, ...], act: Callable[[], object]) -> None:
    """Do something with what stands at a path; an error gets the place, of the setting that it names if there is one."""
    try:
        act()
    except InputError as error:
        inner: Any = document.tables
        for part in path:
            inner = inner.get(part) if isinstance(inner, dict) else None
        named = isinstance(inner, dict) and error.field in inner
        raise document.error((*path, str(error.field)) if named else path, error.message, error.remedy) from error


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
        return str(Choice.model_validate(value)) if "name" in value else canonical(value)
    return value if isinstance(value, bool | int | float | str) else canonical(value)
