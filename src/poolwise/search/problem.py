"""Resolved search file: space of candidates, baseline, and workloads of each split."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, get_args

from poolwise import catalog
from poolwise.errors import InputError
from poolwise.files.document import SET, Document, Origin
from poolwise.files.factory import scheduler_content
from poolwise.files.scheduler import check_composition, load_scheduler
from poolwise.files.study import SECTION_FILES, SchedulerSection, inline
from poolwise.files.validation import find_file, validate
from poolwise.hashing import Json, canonical, digest
from poolwise.search.file import BudgetSection, ObjectivesSection, RangeSection, SearchFile, WorkloadsSection
from poolwise.studies.cells import Cell
from poolwise.studies.study import resolve
from poolwise.studies.variants import with_values

SplitName = Literal["train", "validation", "test"]
SPLITS: tuple[SplitName, ...] = get_args(SplitName)
Settings = Mapping[str, Any]
"""Dotted path of the space -> value."""


@dataclass(frozen=True, eq=False)
class OrderCandidate:
    """Scheduler to evaluate; its `key` hashes all settings that results depend on.

    Attributes
    ----------
    name : display name
    section : the scheduler
    settings : values of the space; empty for a scheduler given by a file
    """

    name: str
    section: SchedulerSection
    settings: Settings

    @property
    def key(self) -> str:
        """Hash of the parts of the scheduler that results depend on."""
        return digest(canonical(scheduler_content(self.section)))


@dataclass(frozen=True, eq=False)
class OrderSearchProblem:
    """Resolved search.

    Attributes
    ----------
    name, title : file name without suffix, and title
    document : the file, whose [scheduler] defines the family of candidates
    space : dotted path -> range
    objectives, budget : sections of the file
    baseline, references : schedulers to compare candidates with
    splits : workloads of each split
    content : file content that identifies the search
    """

    name: str
    title: str
    document: Document
    space: Mapping[str, RangeSection]
    objectives: ObjectivesSection
    budget: BudgetSection
    baseline: OrderCandidate
    references: tuple[OrderCandidate, ...]
    splits: Mapping[SplitName, tuple[Cell, ...]]
    content: Json

    @property
    def sha256(self) -> str:
        """Hash of the resolved content."""
        return digest(canonical(self.content))

    def sample_runs(self) -> tuple[Cell, ...]:
        """Return the training runs of the scheduler from which the candidates are derived."""
        base = self.candidate("", {})
        return tuple(replace(cell, scheduler=base.section) for cell in self.splits["train"])

    def candidate(self, name: str, settings: Settings) -> OrderCandidate:
        """Configure a candidate; raise InputError for settings that the scheduler family lacks."""
        document = with_values(self.document, settings, "space")
        section = validate(SchedulerSection, document, ("scheduler",))
        with document.errors_at("scheduler"):
            check_composition(section)
        return OrderCandidate(name, section, dict(settings))


def load_search(path: str | Path, set: Mapping[str, Any] | None = None) -> OrderSearchProblem:
    """Read a search file or a shipped one by name; `set` replaces values by dotted path, as --set does.

    Raises InputError with file, line, field and remedy.
    """
    file = catalog.file("searches", path)
    document = Document.read(file)
    for key, value in (set or {}).items():
        document = document.with_value(key, value, Origin(SET))
    content = document.tables
    document = inline(document, "scheduler")
    read = validate(SearchFile, document)
    for path_ in read.space:
        if not path_.startswith("scheduler."):
            message = f"'{path_}' is outside [scheduler]; only scheduler settings can be searched"
            raise document.error(("space", path_), message, 'use a path such as "scheduler.order. ..."')
    objectives = read.objectives
    named = (
        (("objectives", "baseline"), objectives.baseline),
        *((("objectives", "beside"), name) for name in objectives.beside),
    )
    orders = [_known(document, name, place) for place, name in named]
    splits = {name: tuple(_cells(document, name, getattr(read.splits, name))) for name in SPLITS}
    _check_disjoint(document, splits)
    problem = OrderSearchProblem(
        file.stem,
        read.title or file.stem,
        document,
        read.space,
        objectives,
        read.budget,
        orders[0],
        tuple(orders[1:]),
        splits,
        content,
    )
    for key, span in read.space.items():  # report invalid settings before any evaluation
        for value in span.values or (span.min, span.max):
            try:
                problem.candidate("", {key: value})
            except InputError as error:
                raise document.error(("space", key), error.message, error.remedy) from error
    return problem


def _known(document: Document, reference: str, place: tuple[str, ...]) -> OrderCandidate:
    with document.errors_at(*place):
        file = find_file(reference, SECTION_FILES["scheduler"], document.location(place))
    read = load_scheduler(file)
    section = SchedulerSection(**{name: getattr(read, name) for name in SchedulerSection.model_fields})
    return OrderCandidate(file.stem, section, {})


def _cells(document: Document, split: SplitName, sections: list[WorkloadsSection]) -> list[Cell]:
    """Resolve a cell for each workload of a split."""
    cells: list[Cell] = []
    for k in range(len(sections)):
        written = dict(document.tables["splits"][split][k])
        measure = {"warm_up": written.pop("warm_up", 0), "baseline": False}
        tables = {"version": 1, "scheduler": {}, "measure": measure, **written}
        lines = {path[3:]: line for path, line in document.lines.items() if path[:3] == ("splits", split, k)}
        cells += resolve(Document(document.file, tables, lines)).cells
    return cells


def _check_disjoint(document: Document, splits: Mapping[SplitName, tuple[Cell, ...]]) -> None:
    """Raise InputError if two splits share a workload on the same machine: an order must not be rated on its training data."""
    seen: dict[str, SplitName] = {}
    for name in SPLITS:
        for cell in splits[name]:
            key = canonical([cell.machine_content, cell.workload.content()])
            if seen.setdefault(key, name) != name:
                raise document.error(
                    ("splits", name),
                    f"{cell.workload.path} (seed {cell.seed}) is also in the {seen[key]} split",
                    "use another seed or another part of the trace",
                )
