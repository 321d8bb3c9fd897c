"""Simulated machine whose jobs use varying amounts of memory and stall when memory is not available.

Two rules hold under any scheduler. A run that uses more memory than it holds makes no progress until it holds enough. If it
also uses more than its job requested, it is killed and not requeued, because the request was too small. The scheduler decides
the rest: it resizes the memory of runs by `Resize`, and stops runs that stall for too long.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from poolwise.errors import InputError, PolicyError
from poolwise.interfaces import PerformanceModel
from poolwise.model import Ended, Event, EventBatch, Machine, MemoryInUse, Outcome, Run, RunStalled, Snapshot, Start
from poolwise.model.workload import Workload
from poolwise.platforms.progress import STALLED, RunPace
from poolwise.platforms.simulated import MEMORY, Simulation


@dataclass(frozen=True, slots=True)
class _Step:
    """Event: a run reaches a step of its memory use."""

    run: int
    step: int


class MemoryUsageMachine(Simulation):
    """A simulation of whole nodes with the memory use of jobs over time; raises InputError for any other machine."""

    def __init__(
        self,
        workload: Workload,
        machine: Machine,
        model: PerformanceModel,
        estimate: PerformanceModel | None = None,
        **settings: Any,
    ) -> None:
        assert workload.memory_use is not None
        if "nodes" not in machine.resources or "memory" not in machine.resources:
            problem = f"memory_use requires whole nodes with memory, and '{machine.name}' has none"
            remedy = 'set allocation = "whole" in each [[node]], or remove memory_use'
            raise InputError(problem, field="memory_use", remedy=remedy)
        if settings.get("initial") is not None:
            problem = "memory_use cannot be combined with an initial state"
            raise InputError(problem, field="memory_use", remedy="remove memory_use")
        self._use, self._requested = workload.memory_use, workload.memory
        self._nodes, self._memory = machine.resource("nodes"), machine.resource("memory")
        self._used: dict[int, int] = {}  # run -> MiB on each node
        self._stalled: dict[int, int] = {}  # run -> ns
        self._step: dict[int, int] = {}
        self._step_at: dict[int, int] = {}  # run -> ns at which its next step is expected
        super().__init__(workload, machine, model, estimate, **settings)
        self._in_use = MemoryInUse(MappingProxyType(self._used), MappingProxyType(self._stalled))

    def events(self) -> Iterator[EventBatch]:
        """Yield the events; raise PolicyError if the scheduler leaves runs without the memory that they use."""
        yield from super().events()
        if self._stalled:
            job = int(self._jobs.id[self._runs[next(iter(self._stalled))].job])
            raise PolicyError(
                f"{len(self._stalled)} runs (the first of job {job}) use more memory than they hold, and the scheduler neither "
                "resizes nor stops them"
            )

    def _start(self, start: Start) -> int:
        number = super()._start(start)
        self._step[number], self._used[number] = 0, int(self._use.steps(start.job)[1][0])
        self.recorder.used(number, self.now, self._used[number])
        run = self._runs[number]
        if self._lacks_memory(run):
            self._push(self.now, MEMORY, _Step(number, 0))
            self._step_at[number] = self.now
        self._pace(run, self._true_snapshot(), self.snapshot())
        return number

    def _apply(self, event: Any) -> Iterable[Event]:
        if not isinstance(event, _Step):
            return super()._apply(event)
        number, step = event.run, event.step
        if self._step_at.get(number) != self.now:
            return ()  # superseded: the run changed pace, or is gone
        run, (_, memory) = self._runs[number], self._use.steps(self._runs[number].job)
        del self._step_at[number]
        if step > self._step[number]:
            self._step[number], self._used[number] = step, int(memory[step])
            self.recorder.used(number, self.now, self._used[number])
        if self._lacks_memory(run) and self._used[number] > int(self._requested[run.job]):
            touched: set[int] = set()
            ended = self._end(number, Outcome.OUT_OF_MEMORY, False, touched)
            self._adjust(touched)
            return (ended,)
        self._pace(run, self._true_snapshot(), self.snapshot())
        return (RunStalled(number),) if number in self._stalled else ()

    def _end(self, number: int, outcome: Outcome, requeue: bool, touched: set[int]) -> Ended:
        """End a run; a run that is stopped while it stalls has run out of memory."""
        if number in self._stalled:
            self.recorder.stalled(number, self._stalled.pop(number), self.now)
            outcome = Outcome.OUT_OF_MEMORY if outcome is Outcome.STOPPED else outcome
        for entries in (self._used, self._step, self._step_at):
            entries.pop(number, None)
        return super()._end(number, outcome, requeue, touched)

    def _pace(self, run: Run, true: Snapshot, seen: Snapshot) -> None:
        """Update the pace of a run, and the time of its next step."""
        super()._pace(run, true, seen)
        if run.id not in self._step or self._progress[run.id].end == self.now:
            return
        work, _ = self._use.steps(run.job)
        step, progress = self._step[run.id] + 1, self._progress[run.id].true
        if step == len(work) or progress.pace == STALLED or progress.fetch is not None:
            if self._step_at.get(run.id) != self.now:
                self._step_at.pop(run.id, None)
            return
        left = max(float(work[step]) - self._work_done(run.id, self.now), 0.0)
        at = max(progress.since, self.now) + math.ceil(left * (1.0 + progress.pace.working))
        if self._step_at.get(run.id) != at:
            self._step_at[run.id] = at
            self._push(at, MEMORY, _Step(run.id, step))

    def _paces(self, run: Run, true: Snapshot, seen: Snapshot) -> tuple[RunPace, RunPace]:
        """Record stalls of a run; return its true and estimated pace, which is `STALLED` while it uses more than it holds."""
        number, lacking = run.id, self._lacks_memory(run)
        if lacking:
            self._stalled.setdefault(number, self.now)
            return STALLED, STALLED
        if number in self._stalled:
            self.recorder.stalled(number, self._stalled.pop(number), self.now)
        return super()._paces(run, true, seen)

    def _lacks_memory(self, run: Run) -> bool:
        """Return whether a run uses more memory than it holds, including that of its nodes."""
        used, layout = self._used.get(run.id, 0), self.machine.racks
        counts = layout.node_counts(run.placement)
        needed = sum(count * max(0, used - int(layout.local[g])) for g, count in counts.items())
        return needed > int(run.placement.amount[run.placement.resource == self._memory].sum())
