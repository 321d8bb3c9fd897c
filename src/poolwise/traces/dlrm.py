"""Instances of Alibaba's GPU-disaggregated recommendation service (DLRM, 2025) as a workload.

Source: Yang et al. 2025, "GPU-Disaggregated Serving for Deep Learning Recommendation Models at Scale".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from poolwise.arrays import BoolArray, FloatArray, IntArray
from poolwise.errors import InputError
from poolwise.model import Machine, Workload
from poolwise.registry import register
from poolwise.traces.demand import most_on_a_node, on_devices
from poolwise.traces.dlrm_whole import whole_instances
from poolwise.traces.format import TraceFormat
from poolwise.traces.memory import LARGEST
from poolwise.traces.numbers import array_to_ns, round_up
from poolwise.traces.selection import select
from poolwise.traces.table_checks import known_numbers, numbered, refuse, require
from poolwise.traces.table_columns import Source, columns_of_csv
from poolwise.traces.text_files import beginning
from poolwise.units import SECOND

ROLES = {"CN": "cn", "HN": "hn"}
"""Role in the trace -> resource of the nodes that may take it: CPU nodes, heterogeneous (GPU) nodes."""
_AMOUNTS = {
    "cores": ("cpu_request", 1),
    "gpu": ("gpu_request", 1),
    "rdma": ("rdma_request", 1),
    "memory": ("memory_request", 1024),
    "storage": ("disk_request", 1024),
}
"""Resource -> column of the trace, and base units in one of its units (GiB -> MiB)."""
_TIMES = ("creation_time", "scheduled_time", "deletion_time")
_COLUMNS = ("instance_sn", "role", "app_name", *(column for column, _ in _AMOUNTS.values()), "max_instance_per_node", *_TIMES)
_LONGEST = 2**31  # seconds: submit + runtime stay below 2**63 ns


@register("formats", "dlrm")
@dataclass(frozen=True)
class DLRM(TraceFormat):
    """Alibaba DLRM instances, CSV (plain or gzip): role, application, requests, creation, scheduling and deletion.

    An instance is a job of one task, submitted at its creation, that runs from when it was scheduled to its deletion. Those
    that were there when the trace began are submitted at its begin, those that outlive it end with its last event; both are
    counted as repaired. Users gave no time limits: the requested time is the runtime.

    Jobs ask for what they requested: "cores", "gpu", "rdma" (hundredths of an RDMA card), "memory" and "storage"; and for one
    "cn" or "hn", which only nodes of their role have: so the roles are placed apart by any scheduler. What the machine has
    nothing of is left out and counted. Limits are not read. The number at the end of instance_sn is the id; role, app and
    max_per_node (instances of the application that a node may hold, -1 without limit; no scheduler here keeps it) are
    attributes; kind is the role, "cn" or "hn".

    Parameters
    ----------
    every
        Only one in `every` instances, for a machine of that part of the size; the others are counted as excluded.
    seed
        Which: those whose number leaves the same remainder as the seed when divided by `every`. So there are `every` samples,
        which share no instance.
    whole
        Instances as they would be if CPUs and GPUs were not apart: a GPU instance with a share of its application's CPU
        instances, which are counted as excluded. They ask for no role and no RDMA. See `traces.dlrm_whole`.
    most_cores
        Cores of the largest whole instance; by default those of the largest CPU instance of the trace. CPU instances for which
        that leaves no room stay by themselves.
    """

    every: int = 1
    seed: int = 0
    whole: bool = False
    most_cores: int = 192

    def recognises(self, path: Path) -> bool:
        """Whether the header names what instances of this trace have."""
        header = beginning(path).partition(b"\n")[0].decode("utf-8-sig", "replace").strip()
        return {"instance_sn", "role", "rdma_request"} <= {*header.split(",")}

    def read(self, path: Path, machine: Machine) -> Workload:
        """Read instances for a machine of shared nodes; raises InputError for one of whole nodes."""
        if "nodes" in machine.resources:
            problem = f"machine '{machine.name}' has nodes that are taken whole; several instances share a node"
            raise InputError(problem, field="machine", remedy='write allocation = "shared" in every [[node]]')
        source = columns_of_csv(path)
        require(source, _COLUMNS)
        for name in ("every", "most_cores"):
            if getattr(self, name) < 1:
                raise InputError(f"{name} is {getattr(self, name)}", field=name, remedy="give 1 or more")
        ids = numbered(source, "instance_sn", "number the instances: instance_17")
        created, began, ended, known = _times(source)
        asked = _asked(source)
        reasons = {"runtime 0": ended <= began}
        if self.whole:
            is_gpu = asked["hn"] > 0
            asked = {name: asked[name] for name in ("cores", "gpu", "memory", "storage")}
            asked, merged = whole_instances(source.texts("app_name"), is_gpu, (ended - began) / SECOND, asked, self.most_cores)
            reasons["a CPU instance, its work with the GPU instances of its application"] = merged
        reasons[f"not in the sample of one in {self.every}"] = (ids - self.seed) % self.every != 0
        keep, excluded = select(reasons, path, "give a trace with instances that ran, or another sample")
        amounts, left_out = _there(asked, machine)
        repaired = {
            "requested time unknown, taken as the runtime": int(keep.sum()),
            "there before the trace, taken as submitted at its begin": int((keep & ~known[0]).sum()),
            "there after the trace, taken as ended with it": int((keep & ~known[1]).sum()),
            **{reason: int((keep & asks).sum()) for reason, asks in left_out.items()},
        }
        return Workload.of(
            created[keep],
            (ended - began)[keep],
            id=ids[keep],
            requests={name: amount[keep] for name, amount in amounts.items()},
            attributes={
                "role": source.texts("role")[keep],
                "kind": np.char.lower(np.char.strip(source.texts("role")[keep])),
                "app": source.texts("app_name")[keep],
                "max_per_node": source.wholes("max_instance_per_node")[keep],
                "wait_s": (began - created)[keep] / SECOND,
            },
            excluded=excluded,
            repaired={reason: count for reason, count in repaired.items() if count},
            name=path.name.removesuffix(".gz").removesuffix(".csv"),
        )


def _times(source: Source) -> tuple[IntArray, IntArray, IntArray, tuple[BoolArray, BoolArray]]:
    """(n_row,) creation, scheduling and deletion in ns; and which rows' creation and deletion the trace gives."""
    created, began, ended = columns = [_dusted(known_numbers(source, name)) for name in _TIMES]
    for name, column in zip(_TIMES, columns, strict=True):
        refuse(source, name, (column < 0) | (column > _LONGEST), "is not a time in seconds since the trace began")
    refuse(
        source, "scheduled_time", np.isfinite(created) != np.isfinite(began), "is given without the creation, or not with it"
    )
    refuse(source, "scheduled_time", began < created, "is before the creation")
    known = np.isfinite(created), np.isfinite(ended)
    last = max(float(np.nanmax(column, initial=0.0)) for column in columns)
    created, began = np.nan_to_num(created), np.nan_to_num(began)
    refuse(source, "deletion_time", ended < began, "is before the instance was scheduled")
    return array_to_ns(created), array_to_ns(began), array_to_ns(np.where(known[1], ended, last)), known


def _dusted(seconds: FloatArray) -> FloatArray:
    """(n_row,) the same, whole where only the dust of a subtraction is beyond (the trace has 475.00000000000006)."""
    nearest = np.rint(seconds)
    return np.where(np.abs(seconds - nearest) < 1e-6, nearest, seconds)


def _asked(source: Source) -> dict[str, IntArray]:
    """Resource -> (n_row,) amounts in base units that instances asked for, a role among them."""
    role = np.char.strip(source.texts("role"))
    refuse(source, "role", ~np.isin(role, list(ROLES)), f"is not a role; roles are {', '.join(ROLES)}")
    asked = {resource: (role == name).astype(np.int64) for name, resource in ROLES.items()}
    for resource, (column, unit) in _AMOUNTS.items():
        given = known_numbers(source, column)
        refuse(source, column, ~(given >= 0) | (given * unit > LARGEST), "is not an amount")
        asked[resource] = round_up(given * unit).astype(np.int64)
    return asked


def _there(asked: Mapping[str, IntArray], machine: Machine) -> tuple[dict[str, IntArray], dict[str, BoolArray]]:
    """The amounts of what the machine has; reason -> (n_row,) who asks for others."""
    there = {name for name in asked if most_on_a_node(machine, name) or on_devices(machine, name)}
    left_out = {
        f"{name} left out, since the machine has none": amount > 0 for name, amount in asked.items() if name not in there
    }
    if not {"cores", "gpu"} & there:
        problem = f"the nodes of machine '{machine.name}' have neither cores nor gpu"
        raise InputError(problem, field="machine", remedy="give its nodes cores")
    return {name: amount for name, amount in asked.items() if name in there}, left_out
