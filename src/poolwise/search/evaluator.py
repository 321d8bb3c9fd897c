"""Evaluation of candidates on workloads; results are cached in the search folder, one JSON line each."""

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
from poolwise.search.workloads import evaluate_schedulers
from poolwise.studies.cells import Cell


@dataclass(frozen=True, eq=False)
class EvaluationTask:
    """Candidates to evaluate on one workload: the unit of work of an executor."""

    cell: Cell
    tau_s: float
    candidates: tuple[OrderCandidate, ...]


@dataclass(frozen=True)
class EvaluationTaskType(TaskType[EvaluationTask]):
    """Task type of the search; a process prepares each workload once and reuses it."""

    def key(self, task: EvaluationTask) -> str:
        """Return the hash of the workload and the candidates."""
        return digest(canonical([task.cell.key, task.tau_s, *(candidate.key for candidate in task.candidates)]))

    def label(self, task: EvaluationTask) -> str:
        """Return the workload, its seed and the number of candidates."""
        return f"{task.cell.trace.path}, seed {task.cell.seed}, {len(task.candidates)} candidates"

    def run(self, task: EvaluationTask) -> Record:
        """Measure the objectives of each candidate."""
        found = evaluate_schedulers(task.cell, task.tau_s, [candidate.section for candidate in task.candidates])
        return Record({"fares": [list(fares) for fares in found]})

    def prepare(self, tasks: Sequence[EvaluationTask]) -> None:
        """Load the kernels that the candidates use."""
        load_kernels(
            (task.cell.machine, scheduler_of(candidate.section, task.cell.warm_up))
            for task in tasks
            for candidate in task.candidates
        )


class Evaluator:
    """Evaluates candidates and caches the results.

    Parameters
    ----------
    folder
        Folder of the search; one writer at a time.
    executor
        Executor that runs the evaluations, on this machine or others.
    tau_s
        Minimum run time in the bounded slowdown, s.
    """

    def __init__(self, folder: Path, executor: Executor, tau_s: float) -> None:
        self._path, self._executor, self._tau_s = folder / "tried.jsonl", executor, tau_s
        self._sources = sources("poolwise.search.workloads")
        self._known = self._read()
        self.runs = 0

    def logs(self, candidates: Sequence[OrderCandidate], cells: Sequence[Cell]) -> FloatArray:
        """Return (n_candidate, n_cell, 4) logarithms of the objectives (`JobObjectives.logs`)."""
        wanted: dict[str, EvaluationTask] = {}
        for cell in cells:
            missing = {c.key: c for c in candidates if self._key(c, cell) not in self._known}
            if missing:
                wanted[cell.key] = EvaluationTask(cell, self._tau_s, tuple(missing.values()))
        task_type = EvaluationTaskType()
        if wanted and self.runs == 0:
            task_type.prepare(list(wanted.values()))
        for done in self._executor.results(task_type, wanted):
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
        """Read the cached results, and remove lines that an interrupted writer left incomplete."""
        try:
            content = self._path.read_bytes()
        except FileNotFoundError:
            return {}
        known: dict[str, JobObjectives] = {}
        complete = []
        for line in content.splitlines():
            try:
                entry: Any = json.loads(line)
                known[str(entry["key"])] = JobObjectives(*map(float, entry["fares"]))
            except (ValueError, KeyError, TypeError):
                continue
            complete.append(line + b"\n")
        if b"".join(complete) != content:
            write_whole(self._path, b"".join(complete))
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
            problem = f"cannot write the file: {error.strerror or error}"
            raise InputError(problem, file=self._path, remedy="free some space, then run the same command again") from error
