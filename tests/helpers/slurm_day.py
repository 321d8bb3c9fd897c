"""A recorded day of a real Slurm (`tests/live/slurm/day.py`), and its replay."""

from __future__ import annotations

import csv
import json
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import numpy as np

from poolwise.engines import simulate
from poolwise.model import Machine, Placement, Run, Schedule, Snapshot, Workload
from poolwise.model.history import RunHistory
from poolwise.model.machine_builder import MachineBuilder
from poolwise.model.run_table import RunTable
from poolwise.performance.ideal import Ideal
from poolwise.policies.backfill.slurm import SlurmBackfill
from poolwise.policies.order.multifactor import Multifactor
from poolwise.policies.order.multifactor.order import Recalculated
from poolwise.policies.placement.nodes.placement import TreeNodes
from poolwise.quantities import MS, NEVER
from poolwise.schedulers.list import ListScheduler
from poolwise.slurm.hostlist import expand

CLOSE_MS = 15
"""Maximum observed time that nodes remain completing after their job has ended."""
SLACK_MS = 30
"""Maximum deviation of the interval between recalculations from a minute."""


def sixteen_racked_nodes() -> Machine:
    """The recorded machine, each node by its name."""
    build = MachineBuilder("4 x 4 nodes", ("cores", "memory"))
    for n in range(16):
        build.node(f"n{n:03}", type="any", rack=n // 4, cores=16, memory=65536)
    return Machine.of(build)


@dataclass(frozen=True)
class RecordedTimes(SlurmBackfill):
    """Slurm's schedulers, with main and backfill passes exactly at given instants (ns), ascending."""

    all_main_passes: tuple[int, ...] = ()
    all_backfills: tuple[int, ...] = ()

    def next_main_pass(self, now: int) -> int:
        return next_instant(self.all_main_passes, now)

    def next_backfill(self, now: int) -> int:
        return next_instant(self.all_backfills, now)


def next_instant(instants: Sequence[int], now: int) -> int:
    """Return the first instant after a time; `NEVER` without one."""
    at = bisect_right(instants, now)
    return instants[at] if at < len(instants) else NEVER


class Found(NamedTuple):
    """Result of a backfill pass for a job: its earliest start (s), now or later, and its nodes."""

    job: int
    start_s: int
    nodes: frozenset[int]


@dataclass(frozen=True)
class RecordedDay:
    """Jobs of a day in order of submission; ms count from a multiple of ten minutes on the controller's clock.

    Attributes
    ----------
    folder : folder of the recording
    columns : name -> (n_job,) texts or numbers
    recalculations, backfills, looks : ms of priority recalculations, backfill passes and main scheduler passes
    priorities : ms of a recalculation -> id of a waiting job -> the priority computed by the controller
    passes : ms of a backfill pass -> its results, in the order in which it tested jobs
    """

    folder: Path
    columns: dict[str, np.ndarray]
    recalculations: list[int]
    backfills: list[int]
    looks: list[int]
    priorities: dict[int, dict[int, int]]
    passes: dict[int, list[Found]]

    @classmethod
    def read(cls, folder: Path) -> RecordedDay:
        with (folder / "jobs.csv").open(newline="") as file:
            rows = sorted(csv.DictReader(file), key=lambda row: (int(row["submit_ms"]), int(row["id"])))
        columns = {name: np.array([row[name] for row in rows]) for name in rows[0]}
        numbers = {name: column.astype(np.int64) for name, column in columns.items() if column[0].lstrip("-").isdigit()}
        priorities: dict[int, dict[int, int]] = {}
        for line in (folder / "priorities.csv").read_text().splitlines()[1:]:
            at, job, priority = map(int, line.split(","))
            priorities.setdefault(at, {})[job] = priority
        instants = json.loads((folder / "instants.json").read_text())
        passes: dict[int, list[Found]] = {}
        with (folder / "passes.csv").open(newline="") as file:
            for row in csv.DictReader(file):
                choice = Found(int(row["job"]), int(row["start_s"]), nodes_of(row["nodes"]))
                passes.setdefault(int(row["pass_ms"]), []).append(choice)
        recorded = (instants[name] for name in ("recalculations", "backfills", "looks"))
        return cls(folder, {**columns, **numbers}, *recorded, priorities, passes)

    @cached_property
    def decided_ms(self) -> np.ndarray:
        """Ms of the pass that started each job, (n_job,), a few ms before the start."""
        start, by = self.columns["start_ms"], self.columns["by"]
        looks, passes = (np.array(ats)[np.searchsorted(ats, start, side="right") - 1] for ats in (self.looks, self.backfills))
        return np.where(by == "main", looks, passes)

    def with_freed_nodes(self) -> RecordedDay:
        """Return the same day, with jobs that last until the controller could use their nodes."""
        return replace(self, columns={**self.columns, "end_ms": self._freed_ms})

    @property
    def close_calls_ms(self) -> np.ndarray:
        """Ms of the ends that were too shortly before a main pass, (k,)."""
        return self.columns["end_ms"][self._freed_ms > self.columns["end_ms"]]

    @cached_property
    def _freed_ms(self) -> np.ndarray:
        """Ms at which the controller could use each job's nodes, (n_job,): at its end, or after a main pass that was too early.

        A main pass within `CLOSE_MS` of an end that started no job on its nodes may have found them still completing.
        """
        freed = self.columns["end_ms"].copy()
        freed_at = {at: set[int]() for at in self.looks}
        for at, nodes in zip(self.decided_ms.tolist(), self.columns["ran_on"], strict=True):
            freed_at.setdefault(at, set()).update(nodes_of(nodes))
        for row, at in enumerate(freed.tolist()):
            main_pass = next_instant(self.looks, at - 1)
            if main_pass - at <= CLOSE_MS and not freed_at[main_pass] & nodes_of(self.columns["ran_on"][row]):
                freed[row] = main_pass + 1
        return freed

    @cached_property
    def workload(self) -> Workload:
        """The jobs, with the time from the decision to start each to its end."""
        columns = self.columns
        submit, start, end = columns["submit_ms"] * MS, self.decided_ms * MS, columns["end_ms"] * MS
        per_node = columns["cpus"] // columns["nodes"]
        return Workload.of(
            submit,
            end - start,
            id=columns["id"],
            requested=columns["limit_s"] * 1000 * MS,
            requests={"nodes": columns["nodes"], "cores": per_node, "memory": per_node},  # DefMemPerCPU=1
            attributes={name: columns[name] for name in ("user", "account", "qos", "partition", "nice")},
        )

    def order(self) -> Multifactor:
        """Return the order with the controller's configuration."""
        files = (str(self.folder / name) for name in ("slurm.conf", "sshare.txt", "qos.txt"))
        return Multifactor(*files, recalculated=self.recalculations[0] / 1000)

    def priorities_at(self, recalculated_ms: int, jobs: Sequence[int]) -> dict[int, int]:
        """Return the priorities of jobs, by id, after a recalculation, given the real runs of all jobs."""
        columns, machine, table = self.columns, sixteen_racked_nodes(), self.workload.table
        history, runs = RunHistory(), RunTable(machine.capacity.size)
        now = (recalculated_ms + SLACK_MS) * MS
        for row in np.argsort(columns["end_ms"], kind="stable").tolist():
            start, end = int(columns["start_ms"][row]), int(columns["end_ms"][row])
            if end < recalculated_ms:
                history.add(row, start * MS, end * MS)
            elif start < recalculated_ms:
                held = Placement.of([(0, 0, 0, 1)])
                runs.add(Run(row, row, (0,), held, start * MS, 2**60), np.zeros(1, dtype=np.int64), ())
        snapshot = Snapshot(now, machine, table, machine.capacity, machine.capacity, runs, Ideal(), history=history)
        order = Recalculated(self.order())
        rows = np.flatnonzero(np.isin(table.id, jobs))
        priorities = order.at(order.last(now), rows, snapshot.accounting())
        return {int(table.id[row]): int(value) for row, value in zip(rows, priorities, strict=True)}

    def backfill(self) -> RecordedTimes:
        """Return Slurm's schedulers with the recorded configuration and pass times."""
        looks, backfills = (tuple(at * MS for at in ats) for ats in (self.looks, self.backfills))
        return RecordedTimes(str(self.folder / "slurm.conf"), all_main_passes=looks, all_backfills=backfills)

    def replay(self) -> Schedule:
        """Run the jobs of the day on the same machine under Slurm's order and backfill."""
        how = ListScheduler(self.order(), self.backfill(), TreeNodes())
        return simulate(self.workload, sixteen_racked_nodes(), how).schedule

    def late_ms(self, schedule: Schedule) -> np.ndarray:
        """Return the delay of each job's start in the replay, (n_job,) ms."""
        starts = np.empty(len(schedule.job), dtype=np.int64)
        starts[schedule.job] = schedule.start
        return starts // MS - self.decided_ms

    def state_at(self, ms: int) -> Snapshot:
        """Return the machine at a time, with the runs that were active."""
        machine, columns = sixteen_racked_nodes(), self.columns
        runs, free = RunTable(machine.capacity.size), machine.capacity.copy()
        for row in np.flatnonzero((columns["start_ms"] < ms) & (columns["end_ms"] > ms)).tolist():
            held = Placement.of([(0, node, 0, 16) for node in sorted(nodes_of(columns["ran_on"][row]))])
            held.take_from(free)
            end = int(columns["start_ms"][row] + 1000 * columns["limit_s"][row]) * MS
            cells = held.owner * len(machine.resources) + held.resource
            runs.add(Run(row, row, (0,), held, int(columns["start_ms"][row]) * MS, end), cells, ())
        return Snapshot(ms * MS, machine, self.workload.table, machine.capacity, free, runs, Ideal())


def nodes_of(text: str) -> frozenset[int]:
    """Parse a Slurm host list, n[000-003,007], into node numbers."""
    return frozenset(int(name.removeprefix("n")) for name in expand(text))
