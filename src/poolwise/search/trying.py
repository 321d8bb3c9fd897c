"""Candidates on workloads, each tried once: what is known is kept in the folder of the search, whole line by whole line."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from joblib import Parallel, delayed  # type: ignore[import-untyped]  # ships no types

from poolwise.arrays import FloatArray
from poolwise.atomic import write_whole
from poolwise.errors import InputError
from poolwise.files.study import SchedulerSection
from poolwise.identity import canonical, digest
from poolwise.search.fares import JobFares
from poolwise.search.question import OrderCandidate
from poolwise.search.workloads import fares_on
from poolwise.studies.cells import Cell

FareTask = tuple[Cell, float, list[SchedulerSection]]
Executor = Callable[[Sequence[FareTask]], Sequence[list[JobFares]]]
"""Does `fares_on` of each task, in any order and anywhere, and gives the answers in the order of the tasks."""


def here(jobs: int | None) -> Executor:
    """Do the tasks in some processes of this machine, all cores if not given; with one, in this process."""

    def run(tasks: Sequence[FareTask]) -> Sequence[list[JobFares]]:
        if jobs == 1 or len(tasks) < 2:
            return [fares_on(*task) for task in tasks]
        found: list[list[JobFares]] = Parallel(n_jobs=-1 if jobs is None else jobs)(delayed(fares_on)(*task) for task in tasks)
        return found

    return run


class Trying:
    """Tries candidates.

    Parameters
    ----------
    folder
        Of the search; one writer at a time.
    executor
        Does the work.
    tau_s
        Bound of the bounded slowdown, s.
    """

    def __init__(self, folder: Path, executor: Executor, tau_s: float) -> None:
        self._path, self._executor, self._tau_s = folder / "tried.jsonl", executor, tau_s
        self._known = self._read()
        self.runs = 0

    def logs(self, candidates: Sequence[OrderCandidate], cells: Sequence[Cell]) -> FloatArray:
        """(n_candidate, n_cell, 4) logarithms of how jobs fare (`JobFares.logs`)."""
        wanted: dict[str, list[OrderCandidate]] = {}
        for cell in cells:
            missing = {c.key: c for c in candidates if self._key(c, cell) not in self._known}
            if missing:
                wanted[cell.key] = list(missing.values())
        tried = [cell for cell in cells if cell.key in wanted]
        answers = self._executor([(cell, self._tau_s, [c.section for c in wanted[cell.key]]) for cell in tried])
        lines = []
        for cell, found in zip(tried, answers, strict=True):
            for candidate, fares in zip(wanted[cell.key], found, strict=True):
                self._known[self._key(candidate, cell)] = fares
                lines.append(json.dumps({"key": self._key(candidate, cell), "fares": list(fares)}))
        self._append(lines)
        self.runs += len(lines)
        return np.array([[self._known[self._key(c, cell)].logs() for cell in cells] for c in candidates])

    def _key(self, candidate: OrderCandidate, cell: Cell) -> str:
        return digest(canonical([candidate.key, cell.key, self._tau_s]))

    def _read(self) -> dict[str, JobFares]:
        """What is known; a line that a killed writer left half-written is taken out of the file."""
        try:
            content = self._path.read_bytes()
        except FileNotFoundError:
            return {}
        known: dict[str, JobFares] = {}
        whole = []
        for line in content.splitlines():
            try:
                entry: Any = json.loads(line)
                known[str(entry["key"])] = JobFares(*map(float, entry["fares"]))
            except (ValueError, KeyError, TypeError):
                continue
            whole.append(line + b"\n")
        if b"".join(whole) != content:
            write_whole(self._path, b"".join(whole))
        return known

    def _append(self, lines: Sequence[str]) -> None:
        if not lines:
            return
        try:
            with self._path.open("a", encoding="utf-8") as file:
                file.write("".join(f"{line}\n" for line in lines))
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            problem = f"cannot be written: {error.strerror or error}"
            raise InputError(problem, file=self._path, remedy="free some space, then give the same command again") from error
