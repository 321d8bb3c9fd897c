"""Studies: a resolved study file and its cells."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from poolwise import catalog
from poolwise.errors import InputError, Problems
from poolwise.files.component import Component
from poolwise.files.document import Document
from poolwise.files.machine import MachineDescription
from poolwise.files.state import STUDY
from poolwise.files.study import MeasureSection
from poolwise.hashing import canonical, digest
from poolwise.metrics.measure import Measure
from poolwise.metrics.summary import STANDARD, metrics_of
from poolwise.short_repr import short_repr
from poolwise.studies.cells import Cell, Parameter
from poolwise.studies.expansion import Expansion
from poolwise.studies.variants import ResolvedStudy


@dataclass(frozen=True, eq=False)
class Study:
    """A resolved study file: every name in it is known, and every machine can be built. `load` returns it.

    Attributes
    ----------
    name, title : file name without suffix, and title
    file : study file
    tables : resolved content, including machine files and --set values
    vary : dotted path -> values as written
    measure : the section [measure]
    cells : the runs that are compared, in the order of the file (the seed changes fastest, then the last varied path)
    memory_machine : machine of `measure.memory_baseline`, None if there is none
    metrics : additional metrics of `measure.metrics`, with absolute paths
    measures : the additional metrics as configured objects
    today : key of a cell -> the run of today's configuration with which it is compared

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
        baselines = [self.memory_baseline(cell) for cell in self.cells]
        return tuple({cell.key: cell for cell in baselines if cell is not None}.values())

    @cached_property
    def baselines(self) -> tuple[Cell, ...]:
        """Distinct runs under FCFS without backfilling for fairness metrics; empty if the study has none."""
        if not self.measure.baseline:
            return ()
        distinct: dict[str, Cell] = {}
        variant: Cell | None = None
        for cell in self.cells:
            if variant is None or variant.parameters is not cell.parameters:
                variant, first = cell, cell.baseline()
            baseline = replace(first, seed=cell.seed, workload=cell.workload, memory_use=cell.memory_use)
            distinct.setdefault(baseline.key, baseline)
        return tuple(distinct.values())

    @cached_property
    def runs(self) -> tuple[Cell, ...]:
        """All simulated runs: the cells, and the baselines and runs of today's configuration that are not among them."""
        distinct: dict[str, Cell] = {}
        for cell in (*self.cells, *self.baselines, *self.memory_baselines, *self.today.values()):
            distinct.setdefault(cell.key, cell)  # the first of the rows that share a run
        return tuple(distinct.values())

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
        Dotted path -> value that replaces the one in the file, as --set does. Values set here are no longer varied.

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
    """Resolve the study in a document; `set` and errors as in `load`. The error contains every problem of every file."""
    problems = Problems()
    resolved = ResolvedStudy.of(document, set or {}, problems)
    expansion, written = Expansion(resolved, problems), resolved.document
    file, measure = expansion.file, expansion.file.measure
    with written.errors_at("measure", "metrics"):
        measures = tuple(component.make("metrics") for component in measure.metrics)
        metrics_of((*STANDARD, *measures))
    return Study(
        name=document.file.stem,
        title=file.title or document.file.stem,
        file=document.file,
        tables=written.tables,
        vary=resolved.shown,
        measure=measure,
        cells=tuple(expansion.cells),
        memory_machine=expansion.memory_machine(written),
        metrics=tuple(measure.metrics),
        measures=measures,
        today=expansion.today,
    )


def find(path: str | Path) -> Path:
    """Return the path of a study file, of the study.toml in a folder, or of a catalog study."""
    file = Path(path)
    if (file / STUDY).is_file():
        return file / STUDY
    if file.is_dir() and str(path) not in [name for name, _ in catalog.shipped("studies")]:
        raise InputError(
            f"no {STUDY} in the folder", file=file, remedy="give a study file, or a folder written by `poolwise snapshot`"
        )
    return catalog.file("studies", path)


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
