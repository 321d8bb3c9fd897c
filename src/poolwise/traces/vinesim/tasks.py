"""Task lists of traces: one row per task, with the tasks of a job in adjacent rows.

Fields: task_type data_size data_x data_y operations preferred_type parent_job_id. Source: VineSim, section 5.2.1, "Trace
description"; specs of the accelerators, "Files".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from poolwise.arrays import BoolArray, IntArray, frozen
from poolwise.errors import InputError
from poolwise.traces.vinesim.rows import Line, line_blocks, whole_column
from poolwise.traces.vinesim.types import STANDARD, Types

FIELDS = ("task_type", "data_size", "data_x", "data_y", "operations", "preferred_type", "parent_job_id")
LARGEST = 2**53
"""Exclusive upper limit of sizes and operations, so that float64 represents them exactly."""


@dataclass(frozen=True, eq=False)
class TaskList:
    """Tasks in file order.

    Attributes
    ----------
    table : (n_task, 7) int64, columns as in `FIELDS`; data sizes in bytes
    """

    table: IntArray

    def __post_init__(self) -> None:
        if self.table.ndim != 2 or self.table.shape[1] != len(FIELDS):
            raise ValueError(f"the table has shape {self.table.shape}, expected (n, {len(FIELDS)})")
        frozen(self.table)

    def __len__(self) -> int:
        return len(self.table)

    @classmethod
    def of(cls, tasks: Sequence[Sequence[int]] | IntArray) -> TaskList:
        """Build from rows as in `FIELDS`; raise InputError with the row for values that `read_tasks` rejects."""
        table = np.asarray(tasks, dtype=np.int64).reshape(-1, len(FIELDS))
        found = cls(table)
        if fault := _fault(found):
            row, field, problem, remedy = fault
            raise InputError(f"task {row}: {problem}", field=field, remedy=remedy)
        return found

    @classmethod
    def of_jobs(
        cls, sizes: Sequence[int], task_type: int | Sequence[int], operations: int, preferred_type: int = 5, data_size: int = 0
    ) -> TaskList:
        """Build jobs from their numbers of tasks, numbered from 0, with data at (0, 0); `task_type` may differ by job."""
        jobs = np.repeat(np.arange(len(sizes)), sizes)
        kinds = np.broadcast_to(np.asarray(task_type, dtype=np.int64), (len(sizes),))[jobs]
        columns = [kinds, np.full(len(jobs), data_size), 0 * jobs, 0 * jobs, np.full(len(jobs), operations)]
        return cls.of(np.stack([*columns, np.full(len(jobs), preferred_type), jobs], axis=1))

    def column(self, name: str) -> IntArray:
        """Return the (n_task,) column of one of the `FIELDS`."""
        return self.table[:, FIELDS.index(name)]

    @cached_property
    def places(self) -> list[tuple[int, int]]:
        """Locations (x, y) of data that is transferred, each once, ascending."""
        travels = self.column("data_size") > 0
        return [(x, y) for x, y in np.unique(self.table[travels][:, 2:4], axis=0).tolist()]

    @cached_property
    def first_of_job(self) -> BoolArray:
        """(n_task,) mask of the first task of each job."""
        job = self.column("parent_job_id")
        return np.concatenate([np.ones(min(1, len(job)), dtype=np.bool_), job[1:] != job[:-1]])


def read_tasks(path: Path, types: Types = STANDARD) -> TaskList:
    """Read a trace, with types as numbers or names.

    Raises InputError with file, line and field for words that are not whole numbers of at least 0, numbers of 2**53 or more,
    jobs whose tasks are not adjacent, and jobs with tasks of several types.
    """
    parts, lines = list[IntArray](), list[int]()
    for block in line_blocks(path, FIELDS):
        parts.append(np.stack([_column(block, k, field, types) for k, field in enumerate(FIELDS)], axis=1))
        lines.extend(row.line for row in block)
    tasks = TaskList(np.concatenate(parts))
    if fault := _fault(tasks):
        row, field, problem, remedy = fault
        raise InputError(problem, file=path, line=lines[row], field=field, remedy=remedy)
    return tasks


def _column(table: Sequence[Line], k: int, field: str, types: Types) -> IntArray:
    """Return the (n_row,) numbers of one field."""
    if not field.endswith("_type"):
        return whole_column(table, k, field)
    names = types.units if field == "preferred_type" else types.tasks
    known = {row.words[k]: row for row in reversed(table)}  # first row with each word, for the line in errors
    codes = {word: row.code(k, names, field) for word, row in reversed(known.items())}
    return np.array([codes[row.words[k]] for row in table], dtype=np.int64)


def _fault(tasks: TaskList) -> tuple[int, str, str, str] | None:
    """Return (row, field, problem, remedy) of the first invalid value, or None if all are valid."""
    for name in FIELDS:
        column = tasks.column(name)
        if len(column) and (int(column.min()) < 0 or int(column.max()) >= LARGEST):
            row = int(np.argmax((column < 0) | (column >= LARGEST)))
            return row, name, f"{column[row]} is not from 0 to 2**53 - 1", "correct the row"
    job, kind = tasks.column("parent_job_id"), tasks.column("task_type")
    begins = np.flatnonzero(tasks.first_of_job)
    order = np.argsort(job[begins], kind="stable")
    again = begins[order[1:]][job[begins[order[1:]]] == job[begins[order[:-1]]]]
    if len(again):
        row = int(again.min())
        return row, "parent_job_id", f"the tasks of job {job[row]} are not adjacent", "write a job's tasks in adjacent rows"
    mixed = ~tasks.first_of_job
    mixed[1:] &= kind[1:] != kind[:-1]
    if mixed.any():
        row = int(np.argmax(mixed))
        problem = f"job {job[row]} has tasks of type {kind[row - 1]} and {kind[row]}"
        return row, "task_type", problem, "give the tasks of a job one type, or split the job"
    return None
