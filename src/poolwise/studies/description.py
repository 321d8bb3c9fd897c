"""One run as its provenance keeps it: the sections of a study file, resolved, with the hashes of the files they name.

A description says all that a run depends on, so that it can be run again, explained and compared without the command that
made it. Paths in it are relative to the file that it stands in, as in every file of Poolwise.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from poolwise import catalog
from poolwise.errors import InputError
from poolwise.files.component import Component
from poolwise.files.document import Document
from poolwise.files.factory import models_of, scheduler_of
from poolwise.hashing import Json, digest
from poolwise.interfaces import PerformanceModel, Scheduler
from poolwise.studies.cells import Cell, Generated
from poolwise.studies.initial_state import SavedState
from poolwise.studies.study import resolve


@dataclass(frozen=True, eq=False)
class Configured:
    """What a cell names, configured: all that the simulation takes beside machine and workload.

    Attributes
    ----------
    scheduler, truth : the scheduler, its warm-up included, and how long jobs take
    estimate : what the scheduler believes; None: the truth
    """

    scheduler: Scheduler
    truth: PerformanceModel
    estimate: PerformanceModel | None

    @classmethod
    def of(cls, cell: Cell) -> Configured:
        """Configure what a cell names."""
        truth, estimate = models_of(cell.performance, cell.seed)
        return cls(scheduler_of(cell.scheduler, cell.warm_up), truth, estimate)


@dataclass(frozen=True, eq=False)
class RecordedRun:
    """A run as a provenance file describes it.

    Attributes
    ----------
    file : where the description stands
    run : the sections of a study file of one run
    files : path -> SHA-256 of every file that they name
    parameters : dotted path -> value of what the study varied; empty for a run by itself
    seed : of the run
    key : of the cell in the folder of a study, empty for a run by itself
    metrics : what was asked for beside the standard metrics
    """

    file: Path
    run: Json
    files: Mapping[str, str]
    parameters: Mapping[str, Any]
    seed: int
    key: str = ""
    metrics: tuple[Component, ...] = ()

    @property
    def label(self) -> str:
        """What messages call it."""
        return " ".join([*(f"{path}={value}" for path, value in self.parameters.items()), f"seed={self.seed}"])

    def cell(self, settings: Mapping[str, Any] | None = None) -> Cell:
        """Set the run up again, with some values (dotted path -> value) replaced.

        Raises InputError where a file that it names is gone or has changed since.
        """
        names = sorted(path for path, sha256 in self.files.items() if _changed(self.file.parent / path, sha256))
        if names:
            problem = f"{', '.join(Path(name).name for name in names)} changed since the run was simulated"
            raise InputError(problem, file=self.file, field="files", remedy="simulate it again")
        (cell,) = resolve(Document(self.file, deepcopy(self.run)), settings).cells
        return replace(cell, parameters=self.parameters)


def describe(cell: Cell, folder: Path) -> Json:
    """Describe a run for a file in a folder: `run`, its sections, and `files`, the hashes of what they name."""
    trace = cell.trace
    if isinstance(trace, SavedState):
        source: Json = {"state": trace.path, "unsaid": f"{trace.unsaid} ns"}
    else:
        if isinstance(trace, Generated):
            source = {"generator": trace.generator, "settings": json.loads(trace.settings)}
        else:
            source = {"trace": trace.path, "format": trace.format, "options": json.loads(trace.options), "clock": trace.clock}
        source |= {"first": trace.first, **({} if trace.jobs is None else {"jobs": trace.jobs})}
    run = {
        "version": 1,
        "machine": cell.machine_tables,
        "workload": {**source, **_used(cell)},
        "scheduler": cell.scheduler.model_dump(mode="json", include=cell.scheduler.model_fields_set),
        "performance": cell.performance.model_dump(mode="json", include=cell.performance.model_fields_set),
        "measure": {"warm_up": cell.warm_up, "baseline": False},
        "seeds": {"values": [cell.seed]},
    }
    known = dict(trace.files()) if isinstance(trace, SavedState) else {trace.path: trace.sha256}
    files = {_relative(Path(path), folder): sha256 for path, sha256 in known.items() if isinstance(trace, SavedState)}

    def note(text: str) -> str:
        written, path = _portable(text, folder)
        if path is not None:
            files[_relative(path, folder)] = known[text] if text in known else digest(path.read_bytes())
        return written

    return {"run": _each_text(run, note), "files": dict(sorted(files.items()))}


def _used(cell: Cell) -> Json:
    """What says which memory the jobs use; nothing where nothing does."""
    return {} if cell.memory_use is None else {"memory_use": cell.memory_use.model_dump(mode="json")}


def describe_metrics(metrics: Sequence[Component], folder: Path) -> list[Json]:
    """Describe what is asked for beside the standard metrics, for a file in a folder; no run depends on it."""
    tables = [{"name": choice.name, **choice.settings} for choice in metrics]
    return [_each_text(table, lambda text: _portable(text, folder)[0]) for table in tables]


def read_descriptions(file: Path, *, today: bool = False) -> list[RecordedRun]:
    """Read the runs that a provenance file describes: those of a study, or the one beside a schedule or a timeline.

    With `today` those that a study's cells are compared with.

    Raises InputError where there is no such file, and where it describes no run.
    """
    try:
        known = json.loads(file.read_bytes())
    except ValueError as error:
        raise InputError(f"not JSON: {error}", file=file, remedy="run it again") from error
    try:
        metrics = tuple(Component.model_validate(asked).beside(file.parent) for asked in known.get("metrics", ()))
        if "runs" in known:
            return [_recorded(file, kept, metrics) for kept in (known["today"]["runs"] if today else known["runs"])]
        return [RecordedRun(file, known["run"], known["files"], {}, known["run"]["seeds"]["values"][0], "", metrics)]
    except (KeyError, TypeError, IndexError, AttributeError, ValidationError) as error:
        problem = "these results do not describe their run: they are of an older version of Poolwise, or of another command"
        raise InputError(problem, file=file, field="run", remedy="run it again") from error


def _recorded(file: Path, kept: Json, metrics: tuple[Component, ...]) -> RecordedRun:
    seed = kept["run"]["seeds"]["values"][0]
    return RecordedRun(file, kept["run"], kept["files"], kept["parameters"], seed, kept["key"], metrics)


def _portable(text: str, folder: Path) -> tuple[str, Path | None]:
    """A text for a file in a folder, and the file that it names, if it is one of the user's own."""
    where, colon, attribute = text.rpartition(":")
    path, end = (Path(where), f":{attribute}") if colon and where.endswith(".py") else (Path(text), "")
    if not path.is_absolute() or not path.is_file():
        return text, None
    if path.is_relative_to(catalog.FOLDER):
        return f"{catalog.PREFIX}{path.name}", None
    return f"{_relative(path, folder)}{end}", path


def _relative(path: Path, folder: Path) -> str:
    return Path(os.path.relpath(path, folder.resolve())).as_posix()


def _changed(path: Path, sha256: str) -> bool:
    try:
        return digest(path.read_bytes()) != sha256
    except FileNotFoundError as error:
        remedy = "put it back where it was, or run it again"
        raise InputError("a file that the run was made from is gone", file=path, remedy=remedy) from error


def _each_text(value: Any, change: Callable[[str], str]) -> Any:
    if isinstance(value, str):
        return change(value)
    if isinstance(value, Mapping):
        return {key: _each_text(inner, change) for key, inner in value.items()}
    return [_each_text(inner, change) for inner in value] if isinstance(value, list | tuple) else value
