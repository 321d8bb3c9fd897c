"""What a folder holds for a reader: results of studies, and studies that can be asked; nothing outside it is ever opened."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from poolwise.errors import InputError
from poolwise.files.document import Document
from poolwise.files.size_text import SizeWords
from poolwise.files.state import is_state
from poolwise.presentation.format import in_unit
from poolwise.studies import load
from poolwise.studies.cells import Parameter
from poolwise.units import parse


@dataclass(frozen=True)
class Kept:
    """Results of a study: its folder, and what was varied in each run under the name of its key."""

    name: str
    title: str
    runs: dict[str, dict[str, Parameter]]
    report: bool


@dataclass(frozen=True)
class RunnableStudy:
    """A study file that can be asked: its orders, and the size that is varied with its least and most in GiB."""

    name: str
    title: str
    orders: tuple[str, ...]
    size: str
    noun: str
    least: int
    most: int


class StudyFolder:
    """A folder of study files and results."""

    def __init__(self, root: Path) -> None:
        self.root = root.resolve()

    def inside(self, name: str) -> Path:
        """Path of what is directly or deeper in the folder; raises InputError for anything that is not."""
        path = self.root if "\0" in name else (self.root / name).resolve()
        if not path.is_relative_to(self.root) or path == self.root:
            raise InputError("this is not in the folder that is served", field="path", remedy="choose from the list")
        return path

    def kept(self) -> list[Kept]:
        """Results, by name."""
        files = sorted([*self.root.glob("*/provenance.json"), *self.root.glob("*/*/provenance.json")])
        return [found for file in files if (found := self._kept(file)) is not None]

    def _kept(self, file: Path) -> Kept | None:
        content: dict[str, Any] = json.loads(file.read_bytes())
        if "runs" not in content:
            return None  # of a plan
        name = str(file.parent.relative_to(self.root))
        runs = {run["key"]: run["parameters"] for run in content["runs"]}
        return Kept(name, str(content["study"]), runs, (file.parent / "report.html").is_file())

    def states(self) -> list[str]:
        """State directories, whose waiting jobs can be forecast, by name."""
        inside = sorted([*self.root.glob("*/"), *self.root.glob("*/*/")])
        return [str(path.relative_to(self.root)) for path in inside if is_state(path)]

    def askable(self) -> list[RunnableStudy]:
        """Studies in the folder, by name; files that are no studies are passed over."""
        return [found for file in sorted(self.root.glob("*.toml")) if (found := self._askable(file)) is not None]

    def _askable(self, file: Path) -> RunnableStudy | None:
        tables = Document.read(file).tables
        if "workload" not in tables or "vary" not in tables:
            return None
        study = load(file)
        orders = tuple(str(value) for value in study.vary.get("scheduler.order", ()))
        for path, values in study.vary.items():
            if path.startswith("machine.") and all(isinstance(value, str) for value in values) and len(values) > 1:
                sizes = [parse(str(value), "memory") for value in values]
                noun = SizeWords.of(path, study.cells[0].machine_tables).noun
                ends = [int(float(in_unit(size, "GiB"))) for size in (min(sizes), max(sizes))]
                return RunnableStudy(file.name, study.title, orders, path, noun, max(1, ends[0]), max(1, ends[1]))
        return RunnableStudy(file.name, study.title, orders, "", "", 0, 0)
