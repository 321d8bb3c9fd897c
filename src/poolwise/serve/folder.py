"""Contents of the served folder: results, study files and states. Nothing outside the folder is opened."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from poolwise.errors import InputError
from poolwise.files.document import Document
from poolwise.files.size_text import SizeText
from poolwise.files.state import is_state
from poolwise.presentation.format import in_unit
from poolwise.studies import load
from poolwise.studies.cells import Parameter
from poolwise.units import parse


@dataclass(frozen=True)
class SavedResults:
    """Results of a study: its folder, and the varied parameters of each run by key."""

    name: str
    title: str
    runs: dict[str, dict[str, Parameter]]
    report: bool


@dataclass(frozen=True)
class RunnableStudy:
    """A study file that can be run: its queue orders, and the varied size with its minimum and maximum in GiB."""

    name: str
    title: str
    orders: tuple[str, ...]
    size: str
    noun: str
    least: int
    most: int


class StudyFolder:
    """A folder with study files and results."""

    def __init__(self, root: Path) -> None:
        self.root = root.resolve()

    def inside(self, name: str) -> Path:
        """Return the path of an entry in the folder; raises InputError for a path outside it."""
        path = self.root if "\0" in name else (self.root / name).resolve()
        if not path.is_relative_to(self.root) or path == self.root:
            raise InputError("the path is not in the served folder", field="path", remedy="choose from the list")
        return path

    def results(self) -> list[SavedResults]:
        """Return the results of studies, by name."""
        files = sorted([*self.root.glob("*/provenance.json"), *self.root.glob("*/*/provenance.json")])
        return [found for file in files if (found := self._results(file)) is not None]

    def _results(self, file: Path) -> SavedResults | None:
        content: dict[str, Any] = json.loads(file.read_bytes())
        if "runs" not in content:
            return None  # the provenance of a plan
        name = str(file.parent.relative_to(self.root))
        runs = {run["key"]: run["parameters"] for run in content["runs"]}
        return SavedResults(name, str(content["study"]), runs, (file.parent / "report.html").is_file())

    def states(self) -> list[str]:
        """Return the state directories, whose waiting jobs can be forecast, by name."""
        inside = sorted([*self.root.glob("*/"), *self.root.glob("*/*/")])
        return [str(path.relative_to(self.root)) for path in inside if is_state(path)]

    def studies(self) -> list[RunnableStudy]:
        """Return the study files, by name; other files are skipped."""
        return [found for file in sorted(self.root.glob("*.toml")) if (found := self._study(file)) is not None]

    def _study(self, file: Path) -> RunnableStudy | None:
        tables = Document.read(file).tables
        if "workload" not in tables or "vary" not in tables:
            return None
        study = load(file)
        orders = tuple(str(value) for value in study.vary.get("scheduler.order", ()))
        for path, values in study.vary.items():
            if path.startswith("machine.") and all(isinstance(value, str) for value in values) and len(values) > 1:
                sizes = [parse(str(value), "memory") for value in values]
                noun = SizeText.of(path, study.cells[0].machine_tables).noun
                ends = [int(float(in_unit(size, "GiB"))) for size in (min(sizes), max(sizes))]
                return RunnableStudy(file.name, study.title, orders, path, noun, max(1, ends[0]), max(1, ends[1]))
        return RunnableStudy(file.name, study.title, orders, "", "", 0, 0)
