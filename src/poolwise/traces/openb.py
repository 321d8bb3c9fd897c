"""Trace format of the pods of Alibaba's GPU-sharing cluster (openb, 2023).

Source: Weng et al. 2023, "Beware of Fragmentation: Scheduling GPU-Sharing Workloads with Fragmentation Gradient Descent".
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from poolwise.arrays import BoolArray, FloatArray, IntArray
from poolwise.model import Machine, Workload
from poolwise.quantities import SECOND
from poolwise.registry import register
from poolwise.traces.demand import Demand
from poolwise.traces.format import TraceFormat
from poolwise.traces.memory import LARGEST
from poolwise.traces.selection import occurring, select
from poolwise.traces.table_checks import numbered, refuse, require
from poolwise.traces.table_columns import Source, columns_of_csv, csv_header, known_numbers
from poolwise.traces.text_files import stem

_COLUMNS = ("name", "cpu_milli", "memory_mib", "num_gpu", "gpu_milli", "creation_time", "deletion_time", "scheduled_time")
_TEXTS = ("gpu_spec", "qos", "pod_phase")
_LIMITS = {"cpu_milli": 2**40, "memory_mib": LARGEST, "num_gpu": 2**20, "gpu_milli": 1000}
_LONGEST = 2**31  # seconds: submit + runtime stay below 2**63 ns


@register("formats", "openb")
@dataclass(frozen=True)
class OpenB(TraceFormat):
    """Alibaba openb pods, CSV (plain or gzip): name, cpu_milli, memory_mib, num_gpu, gpu_milli, creation, deletion, scheduled.

    A pod is a job of one task, submitted at its creation, that runs from its scheduling to its deletion. Pods that were never
    scheduled are excluded and counted. Pods that run until the last deletion, where the trace was cut off, are counted as
    repaired because they may have run longer. The trace has no time limits: the requested time is the runtime. Jobs request
    num_gpu x gpu_milli thousandths of GPUs: "gpu_milli" if nodes or devices have this resource, else whole "gpu". Likewise,
    they request "cpu_milli", else whole "cores". The number at the end of the name is the id. Attributes are gpu_spec, qos,
    pod_phase and num_gpu (as "gpus": the number of GPUs that the thousandths refer to).
    """

    def recognizes(self, path: Path) -> bool:
        """Return whether the header has the columns of this trace."""
        return {"cpu_milli", "gpu_milli", "creation_time"} <= csv_header(path)

    def read(self, path: Path, machine: Machine) -> Workload:
        """Read pods for a machine of whole or shared nodes."""
        source = columns_of_csv(path)
        require(source, _COLUMNS)
        ids = numbered(source, "name", "number the pods, such as openb-pod-0017")
        created, duration, waited, scheduled = _times(source)
        demand = _demand(source)
        keep, excluded = select(
            {"never scheduled": ~scheduled, "runtime unknown or 0": ~(duration > 0)}, path, "use a trace with pods that ran"
        )
        request = demand.filter_rows(keep).to_request(machine)
        submit = created[keep] - created[keep].min()
        known = demand.memory[keep] > 0
        end = created + waited + duration
        last = end[keep] == end[keep].max()
        counts = {
            "requested time unknown, set to the runtime": int(keep.sum()),
            "running at the end of the trace, assumed to end then": int(last.sum()) if last.sum() > 1 else 0,
            "memory of 0, kept as zero": int((~known).sum()),
        }
        return Workload.of(
            submit * SECOND,
            duration[keep].astype(np.int64) * SECOND,
            id=ids[keep],
            tasks=request.tasks,
            requests=request.amounts,
            attributes={
                **{name: source.texts(name)[keep] for name in _TEXTS if name in source.names},
                "gpus": source.wholes("num_gpu")[keep],
                "wait_s": waited[keep],
                "memory_known": known.astype(np.int64),
            },
            excluded=excluded,
            repaired={**occurring(counts), **request.repaired},
            name=stem(path),
        )


def _times(source: Source) -> tuple[IntArray, FloatArray, FloatArray, BoolArray]:
    """Return creation, runtime and wait in s (NaN if unknown), and whether the pod was scheduled, (n_pod,) each."""
    created = source.wholes("creation_time")
    deleted, began = (known_numbers(source, name) for name in ("deletion_time", "scheduled_time"))
    for name, column in (("creation_time", created.astype(np.float64)), ("deletion_time", deleted), ("scheduled_time", began)):
        refuse(source, name, (column < 0) | (column > _LONGEST), "is not a time in seconds since the trace began")
        refuse(source, name, np.isfinite(column) & (column != np.floor(column)), "is not a whole number of seconds")
    refuse(source, "scheduled_time", began < created, "is before the creation")
    refuse(source, "deletion_time", deleted < began, "is before the pod was scheduled")
    return created, deleted - began, began - created, np.isfinite(began)


def _demand(source: Source) -> Demand:
    columns = {name: source.wholes(name) for name in _LIMITS}
    for name, limit in _LIMITS.items():
        refuse(source, name, (columns[name] < 0) | (columns[name] > limit), f"is not between 0 and {limit}")
    count, each = columns["num_gpu"], columns["gpu_milli"]
    refuse(source, "gpu_milli", (count > 0) & (each == 0), "does not state the share of its GPUs that the pod uses")
    return Demand(np.ones_like(count), columns["cpu_milli"], columns["memory_mib"].astype(np.float64), count * each)
