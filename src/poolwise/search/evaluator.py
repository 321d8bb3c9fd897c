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
from poolwise.atomic_write import write_whole
from poolwise.code_fingerprint import sources
from poolwise.engines import load_kernels
from poolwise.errors import InputError
from poolwise.files.factory import scheduler_of
from poolwise.hashing import canonical, digest
from poolwise.runner import Executor, Record, TaskType
from poolwise.search.objectives import JobObjectives
from poolwise.search.problem import OrderCandidate
from poolwise.search.workloads import fares_on
from poolwise.studies.cells import Cell


@dataclass(frozen=True, eq=False)
class EvaluationTask:
    """Candidates on one workload, which is what an executor is given at a time."""

    cell: Cell
    tau_s: float
    candidates: tuple[OrderCandidate, ...]


@dataclass(frozen=True)
class EvaluationTaskType(TaskType[EvaluationTask]):
    """Where tasks are done; a workload stays laid out in the process that has done one on it."""

    def key(self, trial: EvaluationTask) -> str:
        """Hash of the workload and the candidates."""
        return digest(canonical([trial.cell.key, trial.tau_s, *(candidate.key for candidate in trial.candidates)]))

    def label(self, trial: EvaluationTask) -> str:
        """The workload, and how many candidates."""
        return f"{trial.cell.trace.path}, seed {trial.cell.seed}, {len(trial.candidates)} candidates"

    def run(self, trial: EvaluationTask) -> Record:
        """Measure how jobs fare under each candidate."""
        found = fares_on(trial.cell, trial.tau_s, [candidate.section for candidate in trial.candidates])
        return Record({"fares": [list(fares) for fares in found]})

    def prepare(self, trials: Sequence[EvaluationTask]) -> None:
        """Load the kernels that any candidate may run in."""
        load_kernels(
            (task.cell.machine, scheduler_of(candidate.section, task.cell.warm_up))
            for task in trials
            for candidate in task.candidates
        )


class Evaluator:
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
        """(n_candidate, n_cell, 4) logarithms of how jobs fare (`JobObjectives.logs`)."""
        wanted: dict[str, EvaluationTask] = {}
        for cell in cells:
            missing = {c.key: c for c in candidates if self._key(c, cell) not in self._known}
            if missing:
                wanted[cell.key] = EvaluationTask(cell, self._tau_s, tuple(missing.values()))
        bench = EvaluationTaskType()
        if wanted and self.runs == 0:
            bench.prepare(list(wanted.values()))
        for done in self._executor.results(bench, wanted):
            task = wanted[done.key]
            lines = []
            for candidate, fares in zip(task.candidates, done.record.content["fares"], strict=True):
                key = self._key(candidate, task.cell)
                self._known[key] = JobObjectives(*fares)
                lines.append(json.dumps({"key": key, "fares": fares}))
            self._append(lines)
            self.runs += len(lines)
        return np.array([[self._known[self._key(c, cell)].logs() for cell in cells] for c in candidates])

    def _key(self, candidate: OrderCandidate, cell: Cell) -> str:
        return digest(canonical([candidate.key, cell.key, self._tau_s, self._sources]))

    def _read(self) -> dict[str, JobObjectives]:
        """What is known; a line that a killed writer left half-written is taken out of the file."""
        try:
            content = self._path.read_bytes()
        except FileNotFoundError:
            return {}
        known: dict[str, JobObjectives] = {}
        whole = []
        for line in content.splitlines():
            try:
                entry: Any = json.loads(line)
                known[str(entry["key"])] = JobObjectives(*map(float, entry["fares"]))
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
