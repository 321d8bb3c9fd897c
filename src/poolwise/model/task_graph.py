"""Task graphs: the rows of a workload that each row waits for."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from poolwise.arrays import IntArray, frozen
from poolwise.errors import InputError

PREDECESSORS = "predecessors"
"""Attribute with the ids of the jobs that a job waits for, separated by commas; empty for none."""


@dataclass(frozen=True, eq=False)
class TaskGraph:
    """Task graph in compressed form: a row is ready once all tasks of the rows that it waits for have finished.

    Attributes
    ----------
    offset, before : (n + 1,) and (n_edge,) rows; row k waits for before[offset[k]:offset[k + 1]], ascending
    """

    offset: IntArray
    before: IntArray

    def __post_init__(self) -> None:
        frozen(self.offset)
        frozen(self.before)

    def __len__(self) -> int:
        return len(self.offset) - 1

    @classmethod
    def of(cls, predecessors: Sequence[Iterable[int]]) -> TaskGraph:
        """Build a graph from the rows that each row waits for; a row that is named twice counts once."""
        lists = [sorted(set(rows)) for rows in predecessors]
        offset = np.zeros(len(lists) + 1, dtype=np.int64)
        np.cumsum([len(rows) for rows in lists], out=offset[1:])
        return cls(offset, np.array([row for rows in lists for row in rows], dtype=np.int64))

    def predecessors(self, row: int) -> list[int]:
        """Return the rows that a row waits for."""
        rows: list[int] = self.before[self.offset[row] : self.offset[row + 1]].tolist()
        return rows

    @cached_property
    def counts(self) -> IntArray:
        """(n,) number of rows that each row waits for."""
        return np.diff(self.offset)

    @cached_property
    def reversed(self) -> TaskGraph:
        """The same graph with the rows that wait for each row."""
        after = np.repeat(np.arange(len(self)), self.counts)
        order = np.argsort(self.before, kind="stable")
        offset = np.searchsorted(self.before[order], np.arange(len(self) + 1))
        return TaskGraph(offset.astype(np.int64), after[order])

    @cached_property
    def order(self) -> list[int]:
        """Rows in an order in which each follows the rows that it waits for, without rows in a cycle or downstream of one."""
        left, after = self.counts.tolist(), self.reversed
        offset, successor = after.offset.tolist(), after.before.tolist()
        ordered = [row for row, count in enumerate(left) if not count]
        for row in ordered:  # grows while it is read
            for later in successor[offset[row] : offset[row + 1]]:
                left[later] -= 1
                if not left[later]:
                    ordered.append(later)
        return ordered

    def cycle(self) -> list[int]:
        """Return the rows of a cycle, each of which waits for the next and the last for the first; empty without one."""
        if not len(self.before) or bool((self.before < np.repeat(np.arange(len(self)), self.counts)).all()):
            return []
        stuck = set(range(len(self))).difference(self.order)
        if not stuck:
            return []
        path, position = [min(stuck)], {min(stuck): 0}
        while True:
            row = next(before for before in self.predecessors(path[-1]) if before in stuck)
            if row in position:
                return path[position[row] :]
            position[row] = len(path)
            path.append(row)


def graph_of(id: IntArray, named: NDArray[np.generic] | None) -> TaskGraph | None:
    """Return the graph that a column of predecessors defines; None if there is no column, or if it is empty in all rows.

    Parameters
    ----------
    id
        (n,) unique ids of the jobs.
    named
        (n,) ids of the predecessors of each job, as text, separated by commas.

    Raises InputError for an unknown id, for a job that waits for itself, and for a cycle.
    """
    texts = [] if named is None else [str(text).strip() for text in named.tolist()]
    if not any(texts):
        return None
    row_of = {str(job): row for row, job in enumerate(id.tolist())}
    predecessors: list[list[int]] = []
    for row, text in enumerate(texts):
        words = [word.strip() for word in text.split(",")] if text else []
        for word in words:
            if word not in row_of:
                remedy = "write ids of jobs of this workload, separated by commas"
                raise InputError(f"job {id[row]} waits for '{word}', which is not a job", field=PREDECESSORS, remedy=remedy)
        predecessors.append([row_of[word] for word in words])
    graph = TaskGraph.of(predecessors)
    if cycle := graph.cycle():
        raise InputError(cycle_problem("job", [str(id[row]) for row in cycle]), field=PREDECESSORS, remedy=CYCLE_REMEDY)
    return graph


CYCLE_REMEDY = "remove one of these dependencies"


def cycle_problem(kind: str, names: Sequence[str]) -> str:
    """Return an error message about a cycle of jobs or tasks, starting with the first name."""
    if len(names) == 1:
        return f"{kind} {names[0]} waits for itself"
    shown = [*names, names[0]] if len(names) <= 5 else [*names[:3], "...", names[0]]
    return f"{kind} {' waits for '.join(shown)}: a cycle"
