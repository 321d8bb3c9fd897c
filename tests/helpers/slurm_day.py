"""A day that a real Slurm has run, as `tests/live/slurm/day.py` records it, and its replay."""

from __future__ import annotations

import csv
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from poolwise.engines import simulate
from poolwise.model import Machine, Placement, Run, Schedule, Snapshot, Workload
from poolwise.model.history import RunHistory
from poolwise.model.runs import RunTable
from poolwise.performance.ideal import Ideal
from poolwise.policies.backfill.slurm import SlurmBackfill
from poolwise.policies.order.multifactor import Multifactor
from poolwise.policies.order.multifactor.order import Recalculated
from poolwise.schedulers.list import ListScheduler
from poolwise.units import MS

SLACK_MS = 30
"""Recalculations follow each other at steps of a minute within this."""


def sixteen_racked_nodes() -> Machine:
    """The recorded machine."""
    return Machine.of_racks(4, 4, cores=16, local=65536)


@dataclass(frozen=True)
class RecordedDay:
    """Jobs of a day, ms since it began; rows in the order of submission.

    Attributes
    ----------
    folder : where it stands
    columns : name -> (n_job,) texts or numbers
    recalculations, backfills : ms at which the controller did so
    priorities : ms of a recalculation -> id of a waiting job -> the priority that the controller worked out
    """

    folder: Path
    columns: dict[str, np.ndarray]
    recalculations: list[int]
    backfills: list[int]
    priorities: dict[int, dict[int, int]]

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
        return cls(folder, {**columns, **numbers}, instants["recalculations"], instants["backfills"], priorities)

    @property
    def looks(self) -> tuple[float, float]:
        """Seconds at which the main scheduler first looked at the queue, and from one look to the next: a second and a little.

        Its starts tell: how far into a second they lie moves on slowly, by less than half a second from start to start.
        """
        starts = np.unique(self.columns["start_ms"][self.columns["by"] == "main"]) / 1000
        within = np.unwrap(starts % 1.0, period=1.0)
        drift = np.polynomial.Polynomial.fit(starts, within, 1).convert().coef
        return float(drift[0]), 1.0 / (1.0 - float(drift[1]))

    def workload(self) -> Workload:
        """The jobs, with the time that each ran."""
        known = self.columns
        return Workload.of(
            known["submit_ms"] * MS,
            (known["end_ms"] - known["start_ms"]) * MS,
            id=known["id"],
            requested=known["limit_s"] * 1000 * MS,
            requests={"nodes": known["nodes"], "memory": known["cpus"] // known["nodes"]},  # DefMemPerCPU=1
            attributes={name: known[name] for name in ("user", "account", "qos", "partition", "nice")},
        )

    def order(self) -> Multifactor:
        """The order as the controller was configured."""
        files = (str(self.folder / name) for name in ("slurm.conf", "sshare.txt", "qos.txt"))
        return Multifactor(*files, recalculated=self.recalculations[0] / 1000)

    def priorities_at(self, recalculated_ms: int, jobs: Sequence[int]) -> dict[int, int]:
        """Priorities of jobs, by id, after a recalculation, given when every job really ran."""
        known, machine, table = self.columns, sixteen_racked_nodes(), self.workload().table
        history, runs = RunHistory(), RunTable(machine.capacity.size)
        now = (recalculated_ms + SLACK_MS) * MS
        for row in np.argsort(known["end_ms"], kind="stable").tolist():
            start, end = int(known["start_ms"][row]), int(known["end_ms"][row])
            if end < recalculated_ms:
                history.add(row, start * MS, end * MS)
            elif start < recalculated_ms:
                held = Placement.of([(0, 0, 0, 1)])
                runs.add(Run(row, row, (0,), held, start * MS, 2**60), np.zeros(1, dtype=np.int64), ())
        snapshot = Snapshot(now, machine, table, machine.capacity, machine.capacity, runs, Ideal(), history=history)
        order = Recalculated(self.order())
        rows = np.flatnonzero(np.isin(table.id, jobs))
        found = order.at(order.last(now), rows, snapshot)
        return {int(table.id[row]): int(value) for row, value in zip(rows, found, strict=True)}

    def replay(self) -> Schedule:
        """Run the day's jobs on the same machine under Slurm's order and backfill."""
        conf, order = str(self.folder / "slurm.conf"), self.order()
        how = ListScheduler(
            order,
            SlurmBackfill(
                conf, begun=self.backfills[len(self.backfills) // 2] / 1000, looked=self.looks[0], every=self.looks[1]
            ),
        )
        return simulate(sixteen_racked_nodes(), self.workload(), how).schedule

    def late_ms(self, schedule: Schedule) -> np.ndarray:
        """(n_job,) ms by which each job starts later in the replay than it did."""
        starts = np.empty(len(schedule.job), dtype=np.int64)
        starts[schedule.job] = schedule.start // MS
        return starts - self.columns["start_ms"]
