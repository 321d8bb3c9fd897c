"""A run: tasks of one job that started together at one placement."""

from __future__ import annotations

from dataclasses import dataclass

from poolwise.model.placement import Placement


@dataclass(frozen=True, slots=True)
class Run:
    """Tasks of a job at work.

    Attributes
    ----------
    id : number of the run, counting from 0; negative in a snapshot that only imagines it (`Snapshot.with_started`)
    job : row of the workload
    start, expected_end : ns; the end is the scheduler's estimate, never the truth
    """

    id: int
    job: int
    tasks: tuple[int, ...]
    placement: Placement
    start: int
    expected_end: int
