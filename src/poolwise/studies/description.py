"""Description of one run in a provenance file: the resolved sections of a study file, with the hashes of the files they name.

A description contains everything that a run depends on, so it can be repeated, explained and compared without the original
command. Paths are relative to the file that contains the description.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from poolwise import catalog
from poolwise.errors import InputError
from poolwise.files.component import Component
from poolwise.files.document import Document
from poolwise.files.factory import models_of, scheduler_of
from poolwise.files.machine import machine_with_files
from poolwise.files.study import RunFile
from poolwise.files.validation import map_files
from poolwise.hashing import Json, digest
from poolwise.interfaces import PerformanceModel, Scheduler
from poolwise.studies.cells import Cell, GeneratorSource, TraceSource
from poolwise.studies.initial_state import StateSource
from poolwise.studies.study import resolve


@dataclass(frozen=True, eq=False)
class ConfiguredRun:
    """Scheduler and performance models of a cell, ready to simulate.

    Attributes
    ----------
    scheduler, model : scheduler including its warm-up, and the model of run times
    estimate : model that the scheduler uses; None if it uses `model`
    """

    scheduler: Scheduler
    model: PerformanceModel
    estimate: PerformanceModel | None

    @classmethod
    def of(cls, cell: Cell) -> ConfiguredRun:
        """Build the scheduler and models of a cell."""
        model, estimate = models_of(cell.performance, cell.seed)
        return cls(scheduler_of(cell.scheduler, cell.warm_up), model, estimate)


@dataclass(frozen=True, eq=False)
class RecordedRun:
    """A run described by a provenance file.

    Attributes
    ----------
    file : provenance file
    run : sections of a study file with one run
    files : path -> SHA-256 of every file that the sections name
    parameters : dotted path -> value that the study varied; empty for a single run
    seed : random seed
    key : key of the cell in a study's store; empty for a single run
    metrics : requested metrics in addition to the standard ones
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
        """Name in messages."""
        return " ".join([*(f"{path}={value}" for path, value in self.parameters.items()), f"seed={self.seed}"])

    @property
    def warm_up(self) -> int:
        """Number of jobs, first submitted first, that are not measured."""
        return int(self.run.get("measure", {}).get("warm_up", 0))

    def cell(self, settings: Mapping[str, Any] | None = None) -> Cell:
        """Reconstruct the cell, with some values (dotted path -> value) replaced.

        Raises InputError if a file that it names is missing or has changed.
        """
        names = sorted(path for path, sha256 in self.files.items() if _changed(self.file.parent / path, sha256))
        if names:
            problem = f"{', '.join(Path(name).name for name in names)} changed since the run was simulated"
            raise InputError(problem, file=self.file, field="files", remedy="simulate the run again")
        (cell,) = resolve(Document(self.file, self.run), settings).cells
        return replace(cell, parameters=self.parameters)


def describe(cell: Cell, folder: Path) -> Json:
    """Describe a cell for a file in a folder: `run` contains its sections, `files` the hashes of the files that they name."""
    source = cell.workload
    if isinstance(source, StateSource):
        section: Json = {"state": source.path, "default_runtime": f"{source.default_runtime} ns"}
    else:
        if isinstance(source, GeneratorSource):
            section = {"generator": source.generator, "settings": json.loads(source.settings)}
        else:
            assert isinstance(source, TraceSource)  # jobs that a function draws have no file
            section = {
                "trace": source.path,
                "format": source.format,
                "options": json.loads(source.options),
                "clock": source.clock,
            }
            section |= {} if source.only == "{}" else {"only": json.loads(source.only)}
        section |= {"first": source.first, **({} if source.jobs is None else {"jobs": source.jobs})}
    run = {
        "version": 1,
        "machine": cell.machine_tables,
        "workload": {**section, **({} if cell.memory_use is None else {"memory_use": cell.memory_use.model_dump(mode="json")})},
        "scheduler": cell.scheduler.model_dump(mode="json", include={*cell.scheduler.model_fields_set, "settings"}),
        "performance": cell.performance.model_dump(mode="json", include=cell.performance.model_fields_set),
        "measure": {"warm_up": cell.warm_up, "baseline": False},
        "seeds": {"values": [cell.seed]},
    }
    hashes = dict(source.files()) if isinstance(source, StateSource) else {source.path: source.sha256}
    files = {_relative(Path(path), folder): sha256 for path, sha256 in hashes.items() if isinstance(source, StateSource)}

    def note(text: str) -> str:
        path = Path(text)
        if path.is_absolute() and path.is_file() and not path.is_relative_to(catalog.FOLDER):
            files[_relative(path, folder)] = hashes[text] if text in hashes else digest(path.read_bytes())
        return _portable(text, folder)

    written = {**map_files(RunFile, run, note), "machine": machine_with_files(cell.machine_tables, note)}
    return {"run": written, "files": dict(sorted(files.items()))}


def describe_metrics(metrics: Sequence[Component], folder: Path) -> list[Json]:
    """Describe requested metrics for a file in a folder; no run depends on them."""
    return [metric.with_files("metrics", lambda text: _portable(text, folder)).model_dump() for metric in metrics]


def read_descriptions(file: Path, *, today: bool = False) -> list[RecordedRun]:
    """Read the runs in a provenance file: those of a study, or the single run of a schedule or timeline.

    With `today`, return instead the runs of today's configuration with which the study's cells are compared.

    Raises InputError if the file is not JSON or does not describe a run.
    """
    try:
        content = json.loads(file.read_bytes())
    except ValueError as error:
        raise InputError(f"not valid JSON: {error}", file=file, remedy="run the command again") from error
    try:
        metrics = tuple(
            Component.model_validate(metric).in_folder("metrics", file.parent) for metric in content.get("metrics", ())
        )
        if "runs" in content:
            return [_recorded(file, saved, metrics) for saved in (content["today"]["runs"] if today else content["runs"])]
        return [RecordedRun(file, content["run"], content["files"], {}, content["run"]["seeds"]["values"][0], "", metrics)]
    except (KeyError, TypeError, IndexError, AttributeError, ValidationError) as error:
        problem = "the file does not describe a run: it was written by an older version of Poolwise or by another command"
        raise InputError(problem, file=file, field="run", remedy="run the command again") from error


def _recorded(file: Path, saved: Json, metrics: tuple[Component, ...]) -> RecordedRun:
    seed = saved["run"]["seeds"]["values"][0]
    return RecordedRun(file, saved["run"], saved["files"], saved["parameters"], seed, saved["key"], metrics)


def _portable(text: str, folder: Path) -> str:
    """Return the path of a file in the form in which a file in `folder` stores it; the path of a missing file is unchanged."""
    path = Path(text)
    if not path.is_absolute() or not path.is_file():
        return text
    return f"{catalog.PREFIX}{path.name}" if path.is_relative_to(catalog.FOLDER) else _relative(path, folder)


def _relative(path: Path, folder: Path) -> str:
    return Path(os.path.relpath(path, folder.resolve())).as_posix()


def _changed(path: Path, sha256: str) -> bool:
    try:
        return digest(path.read_bytes()) != sha256
    except FileNotFoundError as error:
        remedy = "restore it, or run the command again"
        raise InputError("an input file of the run is missing", file=path, remedy=remedy) from error
