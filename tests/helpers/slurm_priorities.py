"""Recorded waiting jobs of a real Slurm with the priorities that it printed (see `tests/live/slurm/priorities.py`)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import numpy as np

from poolwise.model import JobTable, Kind, Machine, Queue, Snapshot
from poolwise.model.history import RunHistory
from poolwise.model.run_table import RunTable
from poolwise.performance.ideal import Ideal
from poolwise.policies.order.multifactor import Multifactor
from poolwise.policies.order.multifactor.order import Recalculated
from poolwise.quantities import SECOND
from poolwise.slurm import durations
from poolwise.slurm.cluster import node_sizes
from poolwise.slurm.conf import SlurmConf

LICENSE = "license/matlab"


def recorded_machine(conf: SlurmConf) -> Machine:
    """Return the recorded machine: 16 shared nodes with 16 CPUs and 64 GiB each, some with GPUs, and its licenses."""
    sizes = node_sizes(conf)
    n = len(sizes)
    pools = (text.partition(":") for text in conf.text("Licenses").split(",") if text)
    return Machine(
        name="16 nodes",
        owners=tuple(sizes),
        kind=np.full(n, Kind.NODE, dtype=np.int64),
        type=("node",) * n,
        rack=np.arange(n, dtype=np.int64) // 4,
        position=np.zeros((n, 2), dtype=np.int64),
        home=np.full(n, -1, dtype=np.int64),
        resources=("cores", "memory", "gpu"),
        capacity=np.array([[size.cpus, size.memory, size.gpus] for size in sizes.values()], dtype=np.int64),
        licenses={name: int(count) for name, _, count in pools},
    )


@dataclass(frozen=True)
class RecordedPriorities:
    """Priorities of waiting jobs, as printed by Slurm and as computed by the order.

    Attributes
    ----------
    printed, ours : job -> column of sprio -> text
    """

    printed: dict[int, dict[str, str]]
    ours: dict[int, dict[str, str]]

    @classmethod
    def read(cls, folder: Path) -> RecordedPriorities:
        jobs = [dict(re.findall(r"(\w+)=(\S+)", line)) for line in (folder / "jobs.txt").read_text().splitlines()]
        for job in jobs:
            job["cpu"] = re.search(r"cpu=(\d+)", job["TRES"])[1]
            mem = re.search(r"mem=([\d.]+)([MG])", job["TRES"])
            for name in ("gres/gpu", LICENSE):
                amount = re.search(rf"{name}=(\d+)", job["TRES"])
                job[name] = amount[1] if amount else "0"
            job["mem"] = int(float(mem[1]) * {"M": 1, "G": 1024}[mem[2]])
        header, *rows = [line.split("|") for line in (folder / "sprio.txt").read_text().splitlines()]
        printed = {int(row[0]): dict(zip(header[1:], row[1:], strict=True)) for row in rows}
        jobs = [job for job in jobs if int(job["JobId"]) in printed]
        stamps = [_second(job["SubmitTime"]) for job in jobs]
        recalculated = _second((folder / "recalculated.txt").read_text().strip())  # time 0, at which the usage was dumped
        nodes = np.array([int(job["NumNodes"].partition("-")[0]) for job in jobs])
        table = JobTable(
            np.array([int(job["JobId"]) for job in jobs]),
            (np.array(stamps) - recalculated) * SECOND,
            requested=np.array([durations.seconds(job["TimeLimit"]) for job in jobs]) * SECOND,
            tasks=nodes,
            requests={
                "cores": np.array([int(job["cpu"]) for job in jobs]) // nodes,
                "memory": np.array([int(job["mem"]) for job in jobs]) // nodes,
                "gpu": np.array([int(job["gres/gpu"]) for job in jobs]) // nodes,
            },
            attributes={
                "user": np.array([job["UserId"].partition("(")[0] for job in jobs]),
                "account": np.array([job["Account"] for job in jobs]),
                "qos": np.array([job["QOS"] for job in jobs]),
                "partition": np.array([job["Partition"] for job in jobs]),
                "nice": np.array([int(job["Nice"]) for job in jobs]),
                LICENSE: np.array([int(job[LICENSE]) for job in jobs]),
            },
        )
        files = (str(folder / name) for name in ("slurm.conf", "sshare.txt", "qos.txt"))
        order = Recalculated(Multifactor(*files))
        machine = recorded_machine(SlurmConf.read_file(folder / "slurm.conf"))
        rows_of = np.arange(len(table))
        snapshot = Snapshot(
            0, machine, table, machine.capacity, machine.capacity, RunTable(machine.capacity.size), Ideal(),
            history=RunHistory(),
        )  # fmt: skip
        terms, priority = order.terms(0, rows_of, snapshot.accounting()), order.priority(Queue.of(table, rows_of), snapshot)
        ids = table.id.tolist()
        ours = {
            job: {"priority": f"{priority[k]:.0f}", **{name: f"{column[k]:.0f}" for name, column in terms._asdict().items()}}
            for k, job in enumerate(ids)
        }
        return cls(printed, ours)

    def differences(self) -> list[str]:
        """Return the differences; the resources of a job are compared by their sum."""
        deviations = []
        for job, columns in self.printed.items():
            for name, text in columns.items():
                computed = self.ours[job][name]
                if name == "tres":
                    amounts = [int(amount) for amount in re.findall(r"=(\d+)", text)]
                    alike = abs(sum(amounts) - int(computed)) <= (len(amounts) + 1) / 2  # each is rounded separately
                else:
                    alike = computed == text
                if not alike:
                    deviations.append(f"job {job}, {name}: Slurm prints {text}, the order computes {computed}")
        return deviations


def _second(text: str) -> int:
    return int(datetime.fromisoformat(text).timestamp())
