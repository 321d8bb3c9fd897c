"""Contents of the served folder: results, study files and states. Files outside the folder are never opened."""

from __future__ import annotations

import itertools
import json
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl

from poolwise.atomic_write import write_whole
from poolwise.catalog import PREFIX
from poolwise.errors import InputError
from poolwise.files.document import Document
from poolwise.files.size_text import SizeText
from poolwise.files.state import is_state
from poolwise.presentation.format import in_unit, order_name
from poolwise.quantities import parse
from poolwise.studies import Study, load

ASKED = ".asked"
"""Suffix of the folder with the runs that were requested in the browser; it is next to the study file."""
_KEPT = "asked.json"
LISTED = 500
"""Maximum number of listed runs of one study."""
METRICS = ("mean_bounded_slowdown", "median_bounded_slowdown", "mean_wait_s", "utilization", "rejected")
"""Columns of the table of runs."""


@dataclass(frozen=True)
class AskedRun:
    """A request in the browser: its name, tags and settings, and the population that its metrics cover."""

    name: str
    tags: str
    settings: dict[str, Any]
    population: str = ""

    @classmethod
    def now(cls, settings: dict[str, Any]) -> AskedRun:
        """Return a new request that is named after its settings."""
        return cls(", ".join(itertools.starmap(_named, settings.items())) or "as in the study", "", settings)

    @classmethod
    def read(cls, folder: Path) -> AskedRun | None:
        """Read the request stored in a folder; return None if there is none."""
        file = folder / _KEPT
        return cls(**json.loads(file.read_bytes())) if file.is_file() else None

    def write(self, folder: Path) -> None:
        """Store the request in the folder of its runs."""
        write_whole(folder / _KEPT, json.dumps(asdict(self)).encode())


@dataclass(frozen=True)
class SavedResults:
    """Results of a study.

    Attributes
    ----------
    folder, name, study : path in the served folder, display name, and title of the study
    at : ISO time of the results, with the offset from UTC
    report : whether there is a report
    asked : request that started the runs; None for results of `poolwise run`
    runs : key, settings and metrics of the first `LISTED` runs
    count : number of runs
    """

    folder: str
    name: str
    study: str
    at: str
    report: bool
    asked: AskedRun | None
    runs: list[dict[str, Any]]
    count: int


class VariedNumber(NamedTuple):
    """A number that a study varies: its dotted path, its display name, and its values as text."""

    path: str
    name: str
    values: str


@dataclass(frozen=True)
class RunnableStudy:
    """A study file that can run: its queue orders, the varied size with its range in GiB, and the other varied numbers."""

    name: str
    title: str
    orders: tuple[str, ...]
    size: str
    noun: str
    least: int
    most: int
    numbers: tuple[VariedNumber, ...]


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
        """Return the results of studies, the latest first."""
        files = [*self.root.glob("*/results.parquet"), *self.root.glob("*/*/results.parquet")]
        saved = [result for file in files if (result := self._results(file)) is not None]
        return sorted(saved, key=lambda result: result.at, reverse=True)

    def _results(self, file: Path) -> SavedResults | None:
        frame, folder = pl.read_parquet(file), file.parent
        if "key" not in frame.columns:
            return None  # the results of a plan
        request, name = AskedRun.read(folder), str(folder.relative_to(self.root))
        varied = frame.columns[: frame.columns.index("seed")]
        values = [] if request is None else [*itertools.starmap(_named, request.settings.items())]
        runs = [
            {
                "key": row["key"],
                "settings": ", ".join([*(_named(path, row[path]) for path in varied), *values]) or row["key"][:8],
                **{metric: None if row[metric] != row[metric] else row[metric] for metric in METRICS},
            }
            for row in frame.head(LISTED).iter_rows(named=True)
        ]
        study = str(json.loads((folder / "provenance.json").read_bytes())["study"])
        at = datetime.fromtimestamp(file.stat().st_mtime).astimezone().isoformat(timespec="seconds")
        report = (folder / "report.html").is_file()
        return SavedResults(name, request.name if request else name, study, at, report, request, runs, len(frame))

    def asked(self, name: str) -> tuple[Path, AskedRun]:
        """Return the folder and the request of a kept run; raises InputError for any other folder."""
        folder = self.inside(name)
        request = AskedRun.read(folder) if folder.parent.suffix == ASKED else None
        if request is None:
            raise InputError(f"'{name}' is not a run that was requested here", field="results", remedy="choose from the list")
        return folder, request

    def states(self) -> list[str]:
        """Return the state directories, whose waiting jobs can be forecast, by name."""
        inside = sorted([*self.root.glob("*/"), *self.root.glob("*/*/")])
        return [str(path.relative_to(self.root)) for path in inside if is_state(path)]

    def studies(self) -> list[RunnableStudy]:
        """Return the study files, by name; other files are skipped."""
        return [study for file in sorted(self.root.glob("*.toml")) if (study := self._study(file)) is not None]

    def _study(self, file: Path) -> RunnableStudy | None:
        tables = Document.read(file).tables
        if "workload" not in tables or "vary" not in tables:
            return None
        study = load(file)
        orders = tuple(str(value) for value in study.vary.get("scheduler.order", ()))
        numbers = tuple(
            VariedNumber(path, _noun(study, path), ", ".join(map(str, values)))
            for path, values in study.vary.items()
            if all(_is_number(value) for value in values)
        )
        for path, values in study.vary.items():
            if path.startswith("machine.") and all(isinstance(value, str) for value in values) and len(values) > 1:
                sizes = [parse(str(value), "memory") for value in values]
                noun = SizeText.of(path, study.cells[0].machine_tables).noun
                ends = [int(float(in_unit(size, "GiB"))) for size in (min(sizes), max(sizes))]
                return RunnableStudy(file.name, study.title, orders, path, noun, max(1, ends[0]), max(1, ends[1]), numbers)
        return RunnableStudy(file.name, study.title, orders, "", "", 0, 0, numbers)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _noun(study: Study, path: str) -> str:
    """Return the name of a varied number: "fat nodes in each rack", or the end of its path."""
    texts = SizeText.of(path, study.cells[0].machine_tables)
    return texts.noun if texts.counted else path.rpartition(".")[2]


def _named(path: str, value: object) -> str:
    """Return the display text of a varied value, preceded by the end of its path if it is a number."""
    return f"{path.rpartition('.')[2]} {value}" if _is_number(value) else _short(value)


def _short(value: object) -> str:
    """Return the display text of a varied value: orders in capitals, catalog names without their prefix."""
    return order_name(str(value).removeprefix(PREFIX))
