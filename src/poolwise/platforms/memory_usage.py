"""A simulated machine whose jobs use more and less memory as their work goes on, and stand still where it runs out.

Two laws hold whoever schedules. A run that uses more than it holds does nothing until it holds that. One that also uses
more than its job asked for is ended, and does not wait again: its user said too little. Everything else is decided: a
scheduler gives and takes memory by `Resize`, and stops a run that stands still for too long.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from poolwise.errors import InputError, PolicyError
from poolwise.interfaces import PerformanceModel
from poolwise.model import Ended, Event, EventBatch, Machine, MemoryInUse, Outcome, Placement, Run, Snapshot, Stalled, Start
from poolwise.model.workload import Workload
from poolwise.platforms.progress import STANDING, RunPace
from poolwise.platforms.simulated import MEMORY, Simulation


@dataclass(frozen=True, slots=True)
class _Step:
    """A run comes to a step of its memory."""

    run: int
    step: int


class MemoryUsageMachine(Simulation):
    """A simulation of whole nodes whose workload says what memory jobs use; takes what `Simulation` takes.

    Raises InputError for nodes that jobs share, and for runs that are at work when it begins.
    """

    def __init__(
        self,
        machine: Machine,
        workload: Workload,
        truth: PerformanceModel,
        estimate: PerformanceModel | None = None,
        **settings: Any,
    ) -> None:
        assert workload.memory_use is not None
        if "nodes" not in machine.resources or "memory" not in machine.resources:
            raise InputError(
                f"memory in use is simulated on whole nodes with memory, and '{machine.name}' has none",
                field="memory_use",
                remedy='write allocation = "whole" in each [[node]], or leave memory_use out',
            )
        if settings.get("initial") is not None:
            problem = "nobody knows how far runs at work have come in their use of memory"
            raise InputError(problem, field="memory_use", remedy="leave memory_use out")
        self._use, self._asked = workload.memory_use, workload.memory
        self._nodes, self._memory = machine.resource("nodes"), machine.resource("memory")
        self._used: dict[int, int] = {}  # run -> MiB on each node
        self._stalled: dict[int, int] = {}  # run -> ns
        self._step: dict[int, int] = {}
        self._step_at: dict[int, int] = {}  # run -> ns at which its next step is expected
        super().__init__(machine, workload, truth, estimate, **settings)
        self._in_use = MemoryInUse(MappingProxyType(self._used), MappingProxyType(self._stalled))

    def events(self) -> Iterator[EventBatch]:
        """Yield the events; raises PolicyError where the scheduler leaves runs without the memory that they use."""
        yield from super().events()
        if self._stalled:
            job = int(self._jobs.id[self._runs[next(iter(self._stalled))].job])
            raise PolicyError(
                f"{len(self._stalled)} runs, of job {job} first, use more memory than they hold, and the scheduler neither "
                "gives it to them nor stops them"
            )

    def _start(self, start: Start) -> int:
        number = super()._start(start)
        self._step[number], self._used[number] = 0, int(self._use.steps(start.job)[1][0])
        self.recorder.used(number, self.now, self._used[number])
        run = self._runs[number]
        if self._lacks(run):
            self._push(self.now, MEMORY, _Step(number, 0))
            self._step_at[number] = self.now
        self._pace(run, self._truly(), self.snapshot())
        return number

    def _happen(self, event: Any) -> Iterable[Event]:
        """Let a run come to a step of its memory."""
        if not isinstance(event, _Step):
            return super()._happen(event)
        number, step = event.run, event.step
        if self._step_at.get(number) != self.now:
            return ()  # superseded: the run changed pace, or is gone
        run, (_, memory) = self._runs[number], self._use.steps(self._runs[number].job)
        del self._step_at[number]
        if step > self._step[number]:
            self._step[number], self._used[number] = step, int(memory[step])
            self.recorder.used(number, self.now, self._used[number])
        if self._lacks(run) and self._used[number] > int(self._asked[run.job]):
            touched: set[int] = set()
            ended = self._end(number, Outcome.OUT_OF_MEMORY, False, touched)
            self._adjust(touched)
            return (ended,)
        self._pace(run, self._truly(), self.snapshot())
        return (Stalled(number),) if number in self._stalled else ()

    def _end(self, number: int, outcome: Outcome, requeue: bool, touched: set[int]) -> Ended:
        """End a run; one that is stopped while it stands still has run out of memory."""
        if number in self._stalled:
            self.recorder.stalled(number, self._stalled.pop(number), self.now)
            outcome = Outcome.OUT_OF_MEMORY if outcome is Outcome.STOPPED else outcome
        for known in (self._used, self._step, self._step_at):
            known.pop(number, None)
        return super()._end(number, outcome, requeue, touched)

    def _pace(self, run: Run, true: Snapshot, seen: Snapshot) -> None:
        """Let a run go on, and expect its next step."""
        super()._pace(run, true, seen)
        if run.id not in self._step or self._progress[run.id].end == self.now:
            return
        work, _ = self._use.steps(run.job)
        step, progress = self._step[run.id] + 1, self._progress[run.id].true
        if step == len(work) or progress.pace == STANDING or progress.fetch is not None:
            if self._step_at.get(run.id) != self.now:
                self._step_at.pop(run.id, None)
            return
        left = max(float(work[step]) - self._work_done(run.id, self.now), 0.0)
        at = max(progress.since, self.now) + math.ceil(left * (1.0 + progress.pace.working))
        if self._step_at.get(run.id) != at:
            self._step_at[run.id] = at
            self._push(at, MEMORY, _Step(run.id, step))

    def _paces(self, run: Run, true: Snapshot, seen: Snapshot) -> tuple[RunPace, RunPace]:
        """No pace at all for a run that uses more than it holds; notes from when to when that is so."""
        number, lacks = run.id, self._lacks(run)
        if lacks:
            self._stalled.setdefault(number, self.now)
            return STANDING, STANDING
        if number in self._stalled:
            self.recorder.stalled(number, self._stalled.pop(number), self.now)
        return super()._paces(run, true, seen)

    def _lacks(self, run: Run) -> bool:
        """Whether a run uses more than it holds; its nodes' memory is its own."""
        used, local = self._used.get(run.id, 0), self.machine.local_memory
        nodes = _amount(run.placement, self._nodes)
        return (used - local) * nodes > _amount(run.placement, self._memory)


def _amount(placement: Placement, resource: int) -> int:
    """What a placement takes of a resource."""
    return int(placement.amount[placement.resource == resource].sum())
