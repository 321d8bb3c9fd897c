"""Schedules: every run with its start, end and placement, as arrays."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from poolwise.arrays import BoolArray, IntArray
from poolwise.errors import InputError
from poolwise.model.decision import Stop
from poolwise.model.event import Outcome
from poolwise.model.machine import Machine
from poolwise.model.memory_use import MemoryStep, Stall
from poolwise.model.run import Resized
from poolwise.model.workload import Workload
from poolwise.short_repr import fit_repr, short_repr


def owners_text(machine: Machine, rows: Iterable[tuple[int, int, int]]) -> str:
    """Format rows (owner, resource, amount) as OWNER:RESOURCE=AMOUNT:... for each owner, joined by ';'; base units."""
    gives: dict[str, list[str]] = {}
    for owner, resource, amount in rows:
        gives.setdefault(machine.owners[owner], []).append(f"{machine.resources[resource]}={amount}")
    return ";".join(":".join([owner, *parts]) for owner, parts in gives.items())


class Holdings(NamedTuple):
    """Rows (run, owner, resource, amount) that are held from `begin` to `end` (ns), each array (n_row,) int64."""

    run: IntArray
    owner: IntArray
    resource: IntArray
    amount: IntArray
    begin: IntArray
    end: IntArray

    def __repr__(self) -> str:
        return short_repr(self)


@dataclass(frozen=True, eq=False)
class Schedule:
    """The result of a simulation: every run with its placement.

    Attributes
    ----------
    workload, machine : workload and machine of the simulation
    job, start, end : (n_run,) row of the workload, ns, ns; in the order of starts
    tasks : (n_run,) number of tasks of the job in the run
    outcome : n_run outcomes
    offset : (n_run + 1,) rows offset[k]:offset[k+1] of `owner`, `resource`, `amount` are run k's placement
    owner, resource, amount : (n_row,)
    rejected : row of the workload -> reason
    waiting : rows of jobs that never started
    passes : number of scheduling passes
    refused : reason -> number of decisions that the platform refused
    resizes : placements that runs got while they ran, in the order of time; `offset` to `amount` describe only the first
        placement of each run, and `holdings` all of them
    memory_steps : memory that runs used, in the order of time; empty if the workload does not contain memory use
    stalls : periods in which runs made no progress for lack of memory, in the order of their ends
    stops : stops of runs by the scheduler, in the order of time

    Examples
    --------
    >>> import poolwise
    >>> workload = poolwise.Workload.of(["0 s", "0 s"], ["1 min", "1 min"])
    >>> schedule = poolwise.simulate(workload, poolwise.Machine.flat(1), engine="reference").schedule
    >>> schedule.start // 10**9
    array([ 0, 60])
    >>> schedule.placement_of(1)  # owner, resource, amount
    [(0, 0, 1)]
    """

    def __repr__(self) -> str:
        counts = {
            "runs": self.n_run,
            "jobs done": int(self.done.sum()),
            "rejected": len(self.rejected),
            "waiting": len(self.waiting),
            "passes": self.passes,
        }
        text = ", ".join(f"{count:,} {name}" for name, count in counts.items())
        return fit_repr(f"Schedule of '{self.workload.name}' on '{self.machine.name}': {text}")

    workload: Workload
    machine: Machine
    job: IntArray
    start: IntArray
    end: IntArray
    tasks: IntArray
    outcome: tuple[Outcome, ...]
    offset: IntArray
    owner: IntArray
    resource: IntArray
    amount: IntArray
    rejected: Mapping[int, str]
    waiting: tuple[int, ...]
    passes: int
    refused: Mapping[str, int]
    resizes: tuple[Resized, ...] = ()
    memory_steps: tuple[MemoryStep, ...] = ()
    stalls: tuple[Stall, ...] = ()
    stops: tuple[Stop, ...] = ()

    @cached_property
    def holdings(self) -> Holdings:
        """All rows that runs held, with their times; each placement of a run ends when the next one begins."""
        run = np.repeat(np.arange(self.n_run), np.diff(self.offset))
        begin, end = self.start[run], self.end[run]
        whole = Holdings(run, self.owner, self.resource, self.amount, begin, end)
        if not self.resizes:
            return whole
        parts, since = [], {resized.run: int(self.start[resized.run]) for resized in self.resizes}
        last = {k: self.placement_of(k) for k in since}
        for resized in self.resizes:
            parts += [(resized.run, *row, since[resized.run], resized.time) for row in last[resized.run]]
            last[resized.run] = [row[1:] for row in resized.placement.rows()]
            since[resized.run] = resized.time
        parts += [(k, *row, since[k], int(self.end[k])) for k, rows in last.items() for row in rows]
        steady = ~np.isin(run, list(since))
        table = np.array(parts, dtype=np.int64).reshape(-1, 6).T
        return Holdings(*(np.concatenate([original[steady], changed]) for original, changed in zip(whole, table, strict=True)))

    @property
    def n_run(self) -> int:
        """Number of runs."""
        return len(self.job)

    @cached_property
    def finished(self) -> BoolArray:
        """(n_run,) runs that finished their work."""
        return np.array([outcome is Outcome.FINISHED for outcome in self.outcome], dtype=np.bool_)

    @cached_property
    def job_start(self) -> IntArray:
        """(n_job,) ns of the first start of a finished run, -1 for jobs without one."""
        first = np.full(len(self.workload), np.iinfo(np.int64).max, dtype=np.int64)
        np.minimum.at(first, self.job[self.finished], self.start[self.finished])
        return np.where(first == np.iinfo(np.int64).max, -1, first)

    @cached_property
    def job_end(self) -> IntArray:
        """(n_job,) ns of the last end of a finished run, -1 for jobs without one."""
        last = np.full(len(self.workload), -1, dtype=np.int64)
        np.maximum.at(last, self.job[self.finished], self.end[self.finished])
        return last

    @cached_property
    def done(self) -> BoolArray:
        """(n_job,) jobs all of whose tasks finished."""
        finished = np.bincount(self.job[self.finished], weights=self.tasks[self.finished], minlength=len(self.workload))
        done: BoolArray = finished == self.workload.tasks
        return done

    def rejections(self) -> dict[str, int]:
        """Return the number of rejected jobs by reason, sorted by reason."""
        counts: dict[str, int] = {}
        for reason in self.rejected.values():
            counts[reason] = counts.get(reason, 0) + 1
        return dict(sorted(counts.items()))

    @cached_property
    def canceled(self) -> Mapping[int, str]:
        """Row of the workload -> reason, of the jobs that the scheduler stopped without requeuing them."""
        ended = {int(self.job[stop.run]): stop.reason for stop in self.stops if not stop.requeue}
        return {row: reason for row, reason in sorted(ended.items()) if not self.done[row]}

    def cancellations(self) -> dict[str, int]:
        """Return the number of canceled jobs by reason, sorted by reason."""
        return dict(sorted(Counter(self.canceled.values()).items()))

    def placement_of(self, run: int) -> list[tuple[int, int, int]]:
        """Return the rows (owner, resource, amount) of a run's placement."""
        rows = slice(int(self.offset[run]), int(self.offset[run + 1]))
        return list(zip(self.owner[rows].tolist(), self.resource[rows].tolist(), self.amount[rows].tolist(), strict=True))

    def placements(self) -> list[str]:
        """Return the placement of each run as text: `rack_placements` on racks of whole nodes, else owner by owner.

        In the latter form each owner is OWNER:RESOURCE=AMOUNT:..., and owners are joined by ';'.
        """
        if self._in_racks():
            return self.rack_placements()
        return [owners_text(self.machine, self.placement_of(run)) for run in range(self.n_run)]

    def _in_racks(self) -> bool:
        """Return whether runs use only nodes and memory of racks of identical nodes."""
        try:
            layout = self.machine.racks
        except InputError:
            return False
        return bool(np.isin(self.resource, [layout.node_column, layout.memory_column]).all())

    def rack_placements(self) -> list[str]:
        """Return the placement of each run as rack:nodes:poolMiB joined by ';'; racks that provide only memory have 0 nodes."""
        layout, rack = self.machine.racks, self.machine.rack.tolist()
        owner, resource, amount = self.owner.tolist(), self.resource.tolist(), self.amount.tolist()
        bounds, texts = self.offset.tolist(), []
        for first, last in pairwise(bounds):
            nodes: dict[int, int] = {}
            memory: dict[int, int] = {}
            for k in range(first, last):
                share = nodes if resource[k] == layout.node_column else memory
                share[rack[owner[k]]] = share.get(rack[owner[k]], 0) + amount[k]
            racks = sorted(nodes.keys() | memory.keys())
            texts.append(";".join(f"{r}:{nodes.get(r, 0)}:{memory.get(r, 0)}" for r in racks))
        return texts
