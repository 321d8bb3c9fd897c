"""Trace format of the jobs of Microsoft's Philly GPU clusters (2017).

Source: Jeon et al. 2019, "Analysis of Large-Scale Multi-Tenant GPU Clusters for DNN Training Workloads".
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import tzinfo
from pathlib import Path

import numpy as np

from poolwise.arrays import IntArray
from poolwise.model import Machine, Workload
from poolwise.quantities import SECOND
from poolwise.registry import register
from poolwise.traces import time_of_day
from poolwise.traces.demand import Demand, max_per_node
from poolwise.traces.format import TraceFormat
from poolwise.traces.numbers import NotANumber, array_to_ns
from poolwise.traces.selection import select
from poolwise.traces.table_checks import refuse, require
from poolwise.traces.table_columns import Source, columns_of_csv, csv_header, known_numbers
from poolwise.traces.text_files import stem

_COLUMNS = ("timestamp", "duration", "num_gpus")
_LONGEST = 2**31  # seconds: submit + runtime stay below 2**63 ns
_MOST = 2**24  # GPUs of a job


@register("formats", "philly")
@dataclass(frozen=True)
class Philly(TraceFormat):
    """Microsoft Philly jobs, CSV (plain or gzip): timestamp of the submission, duration in seconds, num_gpus, cluster.

    A job gets all of its GPUs at once. On whole nodes, it takes as many nodes as its GPUs need. On shared nodes, it has the
    smallest number of equal tasks that fit the largest node size, and they request "gpu_milli" or else "gpu". The trace has no
    memory, CPUs or time limits: the requested time is the runtime. It has no job ids either: jobs are numbered by their row in
    the file, from 1. The cluster is an attribute.

    Parameters
    ----------
    timezone
        Time zone of the timestamps. With "UTC", time spans across a daylight saving change are off by one hour.
    """

    timezone: str = "UTC"

    def recognizes(self, path: Path) -> bool:
        """Return whether the header has the columns of this trace."""
        return {*_COLUMNS} <= csv_header(path)

    def read(self, path: Path, machine: Machine) -> Workload:
        """Read jobs for a machine of whole or shared nodes with GPUs."""
        local = time_of_day.zone(self.timezone)
        source = columns_of_csv(path)
        require(source, _COLUMNS)
        submit, repeated = _submit(source, local)
        duration, gpus = known_numbers(source, "duration"), source.wholes("num_gpus")
        refuse(source, "duration", duration > _LONGEST, "s exceeds 68 years")
        refuse(source, "num_gpus", (gpus < 0) | (gpus > _MOST), f"is not between 0 and {_MOST}")
        reasons = {"runtime unknown or 0": ~(duration > 0), "GPUs unknown or 0": gpus == 0}
        keep, excluded = select(reasons, path, "use a trace with durations and num_gpus")
        request = _demand(gpus[keep], machine).to_request(machine)
        repaired = {"requested time unknown, set to the runtime": int(keep.sum())}
        if repeated:
            repaired[time_of_day.REPEATED] = repeated
        return Workload.of(
            (submit[keep] - submit[keep].min()) * SECOND,
            array_to_ns(duration[keep]),
            id=np.flatnonzero(keep) + 1,
            tasks=request.tasks,
            requests={name: amounts for name, amounts in request.amounts.items() if name != "memory"},
            attributes={"cluster": source.texts("cluster")[keep]} if "cluster" in source.names else {},
            excluded=excluded,
            repaired={**repaired, **request.repaired},
            epoch=int(submit[keep].min()) * SECOND,
            name=stem(path),
        )


def _submit(source: Source, local: tzinfo) -> tuple[IntArray, int]:
    """Return seconds since 1970, (n_job,), and how many are in the hour that a clock repeats when summer time ends."""
    try:
        submit, repeated = time_of_day.seconds([word.strip() for word in source.texts("timestamp").tolist()], local)
    except NotANumber as error:
        remedy = "write a time such as 2017-10-09 07:01:55, and set its time zone (--timezone)"
        raise source.error(error.position, "timestamp", error.problem, remedy) from error
    refuse(source, "timestamp", submit - submit.min() > _LONGEST, "is more than 68 years after the first job")
    return submit, repeated


def _demand(gpus: IntArray, machine: Machine) -> Demand:
    most = max_per_node(machine, "gpu") or max_per_node(machine, "gpu_milli") // 1000
    parts = -(-gpus // most) if most else np.ones_like(gpus)
    return Demand(parts, np.zeros_like(gpus), np.zeros(len(gpus), dtype=np.float64), gpus * 1000)
