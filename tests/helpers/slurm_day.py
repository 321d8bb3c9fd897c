"""A day that a real Slurm has run, as `tests/live/slurm/day.py` records it, and its replay."""

from __future__ import annotations

import csv
import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from poolwise.engines import simulate
from poolwise.model import Machine, Schedule, Workload
from poolwise.policies.backfill.slurm import SlurmBackfill
from poolwise.policies.order.multifactor import Multifactor
from poolwise.schedulers.list import ListScheduler
from poolwise.units import MS


@dataclass(frozen=True)
class RecordedDay:
    """Jobs of a day, ms since it began; rows in the order of submission.

    Attributes
    ----------
    folder : where it stands
    columns : name -> (n_job,) texts or numbers
    recalculations, backfills : ms at which the controller did so
    """

    folder: Path
    columns: dict[str, np.ndarray]
    recalculations: list[int]
    backfills: list[int]

    @classmethod
    def read(cls, folder: Path) -> RecordedDay:
        with (folder / "jobs.csv").open(newline="") as file:
            rows = sorted(csv.DictReader(file), key=lambda row: (int(row["submit_ms"]), int(row["id"])))
        columns = {name: np.array([row[name] for row in rows]) for name in rows[0]}
        numbers = {name: column.astype(np.int64) for name, column in columns.items() if column[0].lstrip("-").isdigit()}
        return cls(folder, {**columns, **numbers}, **json.loads((folder / "instants.json").read_text()))

    @property
    def looked_ms(self) -> int:
        """Ms after a whole second at which the main scheduler looks at the queue: where most of its starts lie."""
        within = np.sort(self.columns["start_ms"][self.columns["by"] == "main"] % 1000)
        return int(np.median((within + 500) % 1000)) - 500 if within[-1] - within[0] > 500 else int(np.median(within))

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

    def replay(self) -> Schedule:
        """Run the day's jobs on the same machine under Slurm's order and backfill."""
        conf = str(self.folder / "slurm.conf")
        order = Multifactor(
            conf,
            str(self.folder / "sshare.txt"),
            str(self.folder / "qos.txt"),
            recalculated=self.recalculations[0] / 1000,
        )
        how = ListScheduler(order, SlurmBackfill(conf, begun=self.backfills[0] / 1000, every=1, looked=self.looked_ms / 1000))
        machine = Machine.of_racks(4, 4, cores=16, local=65536)
        return simulate(machine, self.workload(), how).schedule

    def late_ms(self, schedule: Schedule) -> np.ndarray:
        """(n_job,) ms by which each job starts later in the replay than it did."""
        starts = np.empty(len(schedule.job), dtype=np.int64)
        starts[schedule.job] = schedule.start // MS
        return starts - self.columns["start_ms"]
