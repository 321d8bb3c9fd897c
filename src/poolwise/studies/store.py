"""The folder a study writes to: whole cell files, one writer at a time, nothing half-written."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any

import polars as pl

from poolwise.atomic import sync_folder, write_whole
from poolwise.errors import InputError
from poolwise.identity import Json, digest
from poolwise.metrics import Outcomes
from poolwise.studies.cells import Cell, CellRun


@dataclass(frozen=True)
class Store:
    """Cell files `cells/KEY.parquet` (per-job outcomes) and `cells/KEY.json` (facts) under a folder.

    The facts are written last and carry the hash of the outcomes: a cell is there if both are whole. Any number of studies
    may share a folder, one after the other; each reads only the cells with its own keys.
    """

    folder: Path

    @property
    def cells(self) -> Path:
        """Where the cell files stand."""
        return self.folder / "cells"

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Be the only writer; raises InputError if another process is, or if the folder cannot be written."""
        try:
            self.cells.mkdir(parents=True, exist_ok=True)
            lock = os.open(self.folder / ".lock", os.O_RDWR | os.O_CREAT, 0o644)
        except OSError as error:
            problem = f"cannot write results: {error.strerror or error}"
            raise InputError(problem, file=self.folder, remedy="choose another folder (--out)") from error
        try:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                remedy = "wait for it, or choose another folder (--out)"
                raise InputError("another run is writing to this folder", file=self.folder, remedy=remedy) from error
            self._clean()
            yield
        finally:
            os.close(lock)

    def _clean(self) -> None:
        """Remove drafts of writers that were killed."""
        for folder in (self.folder, self.cells):
            for draft in folder.glob(".*.*.*"):
                draft.unlink(missing_ok=True)
            sync_folder(folder)

    def write(self, cell: Cell, run: CellRun) -> None:
        """Keep a cell's outcomes, then its facts."""
        write_whole(self.cells / f"{cell.key}.parquet", run.outcomes)
        write_whole(self.cells / f"{cell.key}.json", text(run.facts))
        line = json.dumps({"key": cell.key, "cell": cell.label, "seconds": round(run.seconds, 3)})
        with (self.folder / "timings.jsonl").open("a", encoding="utf-8") as timings:
            timings.write(line + "\n")

    def facts(self, cell: Cell) -> Json | None:
        """Facts of a cell that is there whole, else None."""
        try:
            facts = json.loads((self.cells / f"{cell.key}.json").read_bytes())
            content = (self.cells / f"{cell.key}.parquet").read_bytes()
        except (FileNotFoundError, ValueError):
            return None
        whole = isinstance(facts, dict) and facts.get("key") == cell.key and facts.get("outcomes_sha256") == digest(content)
        return facts if whole else None

    def damaged(self, cell: Cell) -> bool:
        """Whether there are files of a cell, but not whole ones."""
        there = any((self.cells / f"{cell.key}.{kind}").exists() for kind in ("json", "parquet"))
        return there and self.facts(cell) is None

    def outcomes(self, cell: Cell) -> Outcomes:
        """Read the outcomes of a cell; raises InputError if they are not there whole."""
        facts = self.facts(cell)
        path = self.cells / f"{cell.key}.parquet"
        if facts is None:
            raise InputError("the outcomes of this cell are missing or damaged", file=path, remedy="run the study again")
        return Outcomes.from_frame(pl.read_parquet(BytesIO(path.read_bytes())), facts["machine"])

    def seconds(self) -> dict[str, float]:
        """Wall seconds that cells took when they were last run, by label; empty if unknown."""
        found: dict[str, float] = {}
        try:
            lines = (self.folder / "timings.jsonl").read_text(encoding="utf-8").splitlines()
        except (FileNotFoundError, UnicodeDecodeError):
            return found
        for line in lines:
            try:
                entry: Any = json.loads(line)
                found[str(entry["cell"])] = float(entry["seconds"])
            except (ValueError, KeyError, TypeError):
                continue  # a line that a killed writer left half-written says nothing about results
        return found


def text(content: Json) -> bytes:
    """JSON for people and programs: keys in order, one line a value."""
    return (json.dumps(content, indent=1, sort_keys=True, default=str) + "\n").encode()
