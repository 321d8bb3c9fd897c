"""Candidates on workloads, each tried once: what is known is kept in the folder of the search, whole line by whole line."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from poolwise.arrays import FloatArray
from poolwise.atomic import write_whole
from poolwise.engines import load_kernels
from poolwise.errors import InputError
from poolwise.files.configured import scheduler_of
from poolwise.identity import canonical, digest
from poolwise.program import sources
from poolwise.search.fares import JobFares
from poolwise.search.question import OrderCandidate
from poolwise.search.workloads import fares_on
from poolwise.studies.cells import Cell
from poolwise.trials import Bench, Executor, Record


@dataclass(frozen=True, eq=False)
class FareTask:
    """Candidates on one workload, which is what an executor is given at a time."""

    cell: Cell
    tau_s: float
    candidates: tuple[OrderCandidate, ...]


@dataclass(frozen=True)
class FareBench(Bench[FareTask]):
    """Where tasks are done; a workload stays laid out in the process that has done one on it."""

    def key(self, trial: FareTask) -> str:
        """Hash of the workload and the candidates."""
        return digest(canonical([trial.cell.key, trial.tau_s, *(candidate.key for candidate in trial.candidates)]))

    def label(self, trial: FareTask) -> str:
        """The workload, and how many candidates."""
        return f"{trial.cell.trace.path}, seed {trial.cell.seed}, {len(trial.candidates)} candidates"

    def run(self, trial: FareTask) -> Record:
        """Measure how jobs fare under each candidate."""
        found = fares_on(trial.cell, trial.tau_s, [candidate.section for candidate in trial.candidates])
        return Record({"fares": [list(fares) for fares in found]})

    def prepare(self, trials: Sequence[FareTask]) -> None:
        """Load the kernels that any candidate may run in."""
        load_kernels(
            (task.cell.machine, scheduler_of(candidate.section, task.cell.warm_up))
            for task in trials
            for candidate in task.candidates
        )


class Trying:
    """Tries candidates.

    Parameters
    ----------
    folder
        Of the search; one writer at a time.
    executor
        Does the work, here or on other machines.
    tau_s
        Bound of the bounded slowdown, s.
    """

    def __init__(self, folder: Path, executor: Executor, tau_s: float) -> None:
        self._path, self._executor, self._tau_s = folder / "tried.jsonl", executor, tau_s
        self._sources = sources("poolwise.search.workloads")
        self._known = self._read()
        self.runs = 0

    def logs(self, candidates: Sequence[OrderCandidate], cells: Sequence[Cell]) -> FloatArray:
        """(n_candidate, n_cell, 4) logarithms of how jobs fare (`JobFares.logs`)."""
        wanted: dict[str, FareTask] = {}
        for cell in cells:
            missing = {c.key: c for c in candidates if self._key(c, cell) not in self._known}
            if missing:
                wanted[cell.key] = FareTask(cell, self._tau_s, tuple(missing.values()))
        bench = FareBench()
        if wanted and self.runs == 0:
            bench.prepare(list(wanted.values()))
        for done in self._executor.results(bench, wanted):
            task = wanted[done.key]
            lines = []
            for candidate, fares in zip(task.candidates, done.record.content["fares"], strict=True):
                key = self._key(candidate, task.cell)
                self._known[key] = JobFares(*fares)
                lines.append(json.dumps({"key": key, "fares": fares}))
            self._append(lines)
            self.runs += len(lines)
        return np.array([[self._known[self._key(c, cell)].logs() for cell in cells] for c in candidates])

    def _key(self, candidate: OrderCandidate, cell: Cell) -> str:
        return digest(canonical([candidate.key, cell.key, self._tau_s, self._sources]))

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
