"""Recorder of simulated runs, which builds the `Schedule`."""

from __future__ import annotations

import numpy as np

from poolwise.loop import LoopResult
from poolwise.model import Machine, MemoryStep, Outcome, Placement, Resized, Schedule, Stall, Workload


class Recorder:
    """Columns of runs: a start appends a row, and an end completes it."""

    def __init__(self) -> None:
        self._job: list[int] = []
        self._tasks: list[int] = []
        self._start: list[int] = []
        self._end: list[int] = []
        self._outcome: list[Outcome] = []
        self._placements: list[Placement] = []
        self._resizes: list[Resized] = []
        self._memory_steps: list[MemoryStep] = []
        self._stalls: list[Stall] = []

    def __len__(self) -> int:
        """Return the number of runs recorded so far, which is the number of the next run."""
        return len(self._job)

    def started(self, job: int, tasks: int, start: int, placement: Placement) -> int:
        """Record the start of a number of tasks; return the number of the run."""
        self._job.append(job)
        self._tasks.append(tasks)
        self._start.append(start)
        self._end.append(-1)
        self._outcome.append(Outcome.STOPPED)
        self._placements.append(placement)
        return len(self._job) - 1

    def resized(self, run: int, time: int, placement: Placement) -> None:
        """Record the new placement of a run from a time on."""
        self._resizes.append(Resized(run, time, placement))

    def used(self, run: int, time: int, memory: int) -> None:
        """Record the memory use of a run from a time on, MiB on each of its nodes."""
        self._memory_steps.append(MemoryStep(run, time, memory))

    def stalled(self, run: int, begin: int, end: int) -> None:
        """Record that a run stalled for lack of memory; stalls of length 0 are ignored."""
        if end > begin:
            self._stalls.append(Stall(run, begin, end))

    def ended(self, run: int, end: int, outcome: Outcome) -> None:
        """Record the end of a run."""
        self._end[run], self._outcome[run] = end, outcome

    def schedule(self, workload: Workload, machine: Machine, loop: LoopResult) -> Schedule:
        """Build the schedule."""
        lengths = np.array([len(p) for p in self._placements], dtype=np.int64)
        empty = [np.zeros(0, dtype=np.int64)]
        refused: dict[str, int] = {}
        for _, why in loop.refused:
            refused[why] = refused.get(why, 0) + 1
        return Schedule(
            machine=machine,
            workload=workload,
            job=np.array(self._job, dtype=np.int64),
            start=np.array(self._start, dtype=np.int64),
            end=np.array(self._end, dtype=np.int64),
            tasks=np.array(self._tasks, dtype=np.int64),
            outcome=tuple(self._outcome),
            offset=np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64),
            owner=np.concatenate([p.owner for p in self._placements] or empty),
            resource=np.concatenate([p.resource for p in self._placements] or empty),
            amount=np.concatenate([p.amount for p in self._placements] or empty),
            rejected=dict(loop.rejected),
            waiting=loop.waiting,
            passes=loop.passes,
            refused=refused,
            resizes=tuple(self._resizes),
            memory_steps=tuple(self._memory_steps),
            stalls=tuple(self._stalls),
            stops=tuple(loop.stops),
        )
