"""Task lists of traces: one row per task, with the tasks of a job in adjacent rows.

Fields: task_type data_size data_x data_y operations preferred_type parent_job_id. Traces with dependent tasks have two more:
task_id predecessors. Source: VineSim, section 5.2.1, "Trace description"; specs of the accelerators, "Files". The report
mentions tasks that wait for others of their job (section 7.1), but defines no field for them: these two are ours.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from poolwise.arrays import BoolArray, IntArray, frozen
from poolwise.errors import InputError
from poolwise.model import TaskGraph
from poolwise.model.task_graph import CYCLE_REMEDY, PREDECESSORS, cycle_problem
from poolwise.traces.numbers import are_whole
from poolwise.traces.vinesim.rows import ABSENT, Line, check_width, line_blocks, whole_column
from poolwise.traces.vinesim.types import STANDARD, Types

FIELDS = ("task_type", "data_size", "data_x", "data_y", "operations", "preferred_type", "parent_job_id")
GRAPH_FIELDS = ("task_id", PREDECESSORS)
"""Further fields of a trace with dependent tasks."""
WITH_GRAPH = (*FIELDS, *GRAPH_FIELDS)
LARGEST = 2**53
"""Exclusive upper limit of sizes and operations, so that float64 represents them exactly."""


@dataclass(frozen=True, eq=False)
class TaskList:
    """Tasks in file order.

    Attributes
    ----------
    table : (n_task, 7) int64, columns as in `FIELDS`; data sizes in bytes
    graph : tasks (rows of the table) that wait for others; None if all are independent
    """

    table: IntArray
    graph: TaskGraph | None = None

    def __post_init__(self) -> None:
        if self.table.ndim != 2 or self.table.shape[1] != len(FIELDS):
            raise ValueError(f"the table has shape {self.table.shape}, expected (n, {len(FIELDS)})")
        if self.graph is not None and len(self.graph) != len(self.table):
            raise ValueError(f"the graph has {len(self.graph)} tasks, expected {len(self.table)}")
        frozen(self.table)

    def __len__(self) -> int:
        return len(self.table)

    @classmethod
    def of(cls, tasks: Sequence[Sequence[int]] | IntArray, predecessors: Sequence[Iterable[int]] | None = None) -> TaskList:
        """Build from rows as in `FIELDS`, and the rows that each row waits for.

        Raises InputError with the row for values that `read_tasks` rejects.
        """
        table = np.asarray(tasks, dtype=np.int64).reshape(-1, len(FIELDS))
        graph = None if predecessors is None else TaskGraph.of(predecessors)
        if graph is not None and ((graph.before < 0) | (graph.before >= len(table))).any():
            raise InputError(f"predecessors must be from 0 to {len(table) - 1}", field=PREDECESSORS, remedy="correct the rows")
        task_list = cls(table, graph if graph is not None and len(graph.before) else None)
        if fault := _fault(task_list):
            row, field, problem, remedy = fault
            raise InputError(f"task {row}: {problem}", field=field, remedy=remedy)
        return task_list

    @classmethod
    def of_jobs(
        cls, sizes: Sequence[int], task_type: int | Sequence[int], operations: int, preferred_type: int = 5, data_size: int = 0
    ) -> TaskList:
        """Build jobs from their numbers of tasks, numbered from 0, with data at (0, 0); `task_type` may differ by job."""
        jobs = np.repeat(np.arange(len(sizes)), sizes)
        kinds = np.broadcast_to(np.asarray(task_type, dtype=np.int64), (len(sizes),))[jobs]
        columns = [kinds, np.full(len(jobs), data_size), 0 * jobs, 0 * jobs, np.full(len(jobs), operations)]
        return cls.of(np.stack([*columns, np.full(len(jobs), preferred_type), jobs], axis=1))

    def first_jobs(self, count: int) -> TaskList:
        """Return the first jobs; raise InputError if one of their tasks waits for a task of another job."""
        n = int(np.searchsorted(np.cumsum(self.first_of_job), count, side="right"))
        if self.graph is None:
            return TaskList(self.table[:n])
        part = TaskGraph(self.graph.offset[: n + 1], self.graph.before[: self.graph.offset[n]])
        if len(part.before) and int(part.before.max()) >= n:
            first = "the first job" if count == 1 else f"the first {count:,} jobs"
            problem = f"a task of {first} waits for a task of a later job"
            raise InputError(problem, field="jobs", remedy="read more jobs")
        return TaskList(self.table[:n], part if len(part.before) else None)

    def column(self, name: str) -> IntArray:
        """Return the (n_task,) column of one of the `FIELDS`."""
        return self.table[:, FIELDS.index(name)]

    @cached_property
    def places(self) -> list[tuple[int, int]]:
        """Distinct locations (x, y) of transferred data, ascending."""
        travels = self.column("data_size") > 0
        return [(x, y) for x, y in np.unique(self.table[travels][:, 2:4], axis=0).tolist()]

    @cached_property
    def first_of_job(self) -> BoolArray:
        """(n_task,) mask of the first task of each job."""
        job = self.column("parent_job_id")
        return np.concatenate([np.ones(min(1, len(job)), dtype=np.bool_), job[1:] != job[:-1]])


def read_tasks(path: Path, types: Types = STANDARD) -> TaskList:
    """Read a trace, with types as numbers or names.

    Each row of a trace with dependent tasks has two more fields: the number of the task, unique in the trace, and the numbers
    of the tasks that it waits for, separated by commas, or "--". These may belong to other jobs, and may follow in the file.

    Raises InputError with file, line and field for words that are not whole numbers of at least 0, numbers of 2**53 or more,
    jobs whose tasks are not adjacent, jobs with tasks of several types, repeated or unknown task numbers, tasks that wait for
    themselves, and cycles.
    """
    parts, lines, names = list[IntArray](), list[int](), list[Line]()
    fields: tuple[str, ...] = ()
    for block in line_blocks(path):
        fields = fields or (WITH_GRAPH if len(block[0].words) == len(WITH_GRAPH) else FIELDS)
        for line in block:
            check_width(line, fields)
        parts.append(np.stack([_column(block, k, field, types) for k, field in enumerate(FIELDS)], axis=1))
        lines.extend(row.line for row in block)
        if len(fields) > len(FIELDS):
            names.extend(block)
    tasks = TaskList(np.concatenate(parts), _graph(names) if names else None)
    if fault := _fault(tasks):
        row, field, problem, remedy = fault
        raise InputError(problem, file=path, line=lines[row], field=field, remedy=remedy)
    return tasks


def _graph(rows: Sequence[Line]) -> TaskGraph | None:
    """Return the graph of the fields `GRAPH_FIELDS`; None if no task waits for another. Raise InputError for invalid names."""
    k, row_of = len(FIELDS), dict[int, int]()
    for position, number in enumerate(whole_column(rows, k, GRAPH_FIELDS[0]).tolist()):
        first = row_of.setdefault(number, position)
        if first != position:
            problem = f"task {number} is also in line {rows[first].line}"
            raise rows[position].error(GRAPH_FIELDS[0], problem, "give each task of the trace its own number")
    predecessors: list[list[int]] = []
    for row in rows:
        words = [] if row.words[k + 1] == ABSENT else row.words[k + 1].split(",")
        if not are_whole(words):
            remedy = f"write task numbers separated by commas, without spaces, or {ABSENT}"
            raise row.error(PREDECESSORS, f"'{row.words[k + 1][:40]}' is not a list of task numbers", remedy)
        for word in words:
            if int(word) not in row_of:
                raise row.error(PREDECESSORS, f"no task has the number {word}", f"name tasks of this trace, or write {ABSENT}")
        predecessors.append([row_of[int(word)] for word in words])
    graph = TaskGraph.of(predecessors)
    if cycle := graph.cycle():
        problem = cycle_problem("task", [rows[row].words[k] for row in cycle])
        raise rows[cycle[0]].error(PREDECESSORS, problem, CYCLE_REMEDY)
    return graph if len(graph.before) else None


def _column(table: Sequence[Line], k: int, field: str, types: Types) -> IntArray:
    """Return the (n_row,) numbers of one field."""
    if not field.endswith("_type"):
        return whole_column(table, k, field)
    names = types.units if field == "preferred_type" else types.tasks
    first_row = {row.words[k]: row for row in reversed(table)}  # first row with each word, for the line in errors
    codes = {word: row.code(k, names, field) for word, row in reversed(first_row.items())}
    return np.array([codes[row.words[k]] for row in table], dtype=np.int64)


def _fault(tasks: TaskList) -> tuple[int, str, str, str] | None:
    """Return (row, field, problem, remedy) of the first invalid value, or None if all are valid."""
    for name in FIELDS:
        column = tasks.column(name)
        if len(column) and (int(column.min()) < 0 or int(column.max()) >= LARGEST):
            row = int(np.argmax((column < 0) | (column >= LARGEST)))
            return row, name, f"{column[row]} is not from 0 to 2**53 - 1", "correct the row"
    job, kind = tasks.column("parent_job_id"), tasks.column("task_type")
    if tasks.graph is not None and (cycle := tasks.graph.cycle()):
        return cycle[0], PREDECESSORS, cycle_problem("task", [str(row) for row in cycle]), CYCLE_REMEDY
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
