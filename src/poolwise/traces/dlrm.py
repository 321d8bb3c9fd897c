"""Trace format of Alibaba's GPU-disaggregated recommendation service (DLRM, 2025).

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
from poolwise.quantities import SECOND
from poolwise.registry import register
from poolwise.traces.demand import has_devices, max_per_node
from poolwise.traces.dlrm_whole import whole_instances
from poolwise.traces.format import TraceFormat
from poolwise.traces.memory import LARGEST
from poolwise.traces.numbers import array_to_ns, round_up
from poolwise.traces.selection import occurring, select
from poolwise.traces.table_checks import numbered, refuse, require
from poolwise.traces.table_columns import Source, columns_of_csv, csv_header, known_numbers
from poolwise.traces.text_files import stem

ROLES = {"CN": "cn", "HN": "hn"}
"""Role in the trace -> resource of the nodes that accept it: CPU nodes and heterogeneous (GPU) nodes."""
_AMOUNTS = {
    "cores": ("cpu_request", 1),
    "gpu": ("gpu_request", 1),
    "rdma": ("rdma_request", 1),
    "memory": ("memory_request", 1024),
    "storage": ("disk_request", 1024),
}
"""Resource -> column of the trace, and base units per unit of the trace (GiB -> MiB)."""
_TIMES = ("creation_time", "scheduled_time", "deletion_time")
_COLUMNS = ("instance_sn", "role", "app_name", *(column for column, _ in _AMOUNTS.values()), "max_instance_per_node", *_TIMES)
_LONGEST = 2**31  # seconds: submit + runtime stay below 2**63 ns


@register("formats", "dlrm")
@dataclass(frozen=True)
class DLRM(TraceFormat):
    """Alibaba DLRM instances, CSV (plain or gzip): role, application, requests, creation, scheduling and deletion.

    An instance is a job of one task, submitted at its creation, that runs from its scheduling to its deletion. Instances that
    existed before the trace are submitted when it begins, and instances that outlive it end with its last event; both are
    counted as repaired. The trace has no time limits: the requested time is the runtime.

    Jobs request "cores", "gpu", "rdma" (hundredths of an RDMA card), "memory" and "storage" as in the trace, and one "cn" or
    "hn", which only nodes of their role have; this separates the roles under any scheduler. Resources that the machine lacks
    are ignored and counted. The limits in the trace are not read. The number at the end of instance_sn is the id. Attributes
    are role, app, max_per_node (instances of the application allowed on a node, -1 for no limit; no scheduler of Poolwise
    enforces it) and kind, which is the role in lower case.

    Parameters
    ----------
    every
        Keep only one in `every` instances, for a machine scaled down by that factor; the others are counted as excluded.
    seed
        Selects the sample: instances whose number is congruent to the seed modulo `every`. The `every` samples are disjoint.
    whole
        Undo the disaggregation: each GPU instance takes a share of its application's CPU instances, which are counted as
        excluded. Whole instances request neither a role nor RDMA. See `traces.dlrm_whole`.
    most_cores
        Cores of the largest whole instance; by default those of the largest CPU instance of the trace. CPU instances that
        exceed this remain separate.
    """

    every: int = 1
    seed: int = 0
    whole: bool = False
    most_cores: int = 192

    def recognizes(self, path: Path) -> bool:
        """Return whether the header has the columns of this trace."""
        return {"instance_sn", "role", "rdma_request"} <= csv_header(path)

    def read(self, path: Path, machine: Machine) -> Workload:
        """Read instances for a machine of shared nodes; raise InputError for a machine of whole nodes."""
        if "nodes" in machine.resources:
            problem = f"machine '{machine.name}' allocates whole nodes, but several instances share a node"
            raise InputError(problem, field="machine", remedy='write allocation = "shared" in every [[node]]')
        source = columns_of_csv(path)
        require(source, _COLUMNS)
        for name in ("every", "most_cores"):
            if getattr(self, name) < 1:
                raise InputError(f"{name} is {getattr(self, name)}", field=name, remedy="give 1 or more")
        ids = numbered(source, "instance_sn", "number the instances, such as instance_17")
        created, began, ended, known = _times(source)
        requests = _requests(source)
        reasons = {"runtime 0": ended <= began}
        if self.whole:
            is_gpu, seconds = requests["hn"] > 0, (ended - began) / SECOND
            requests = {name: requests[name] for name in ("cores", "gpu", "memory", "storage")}
            requests, merged = whole_instances(source.texts("app_name"), is_gpu, seconds, requests, self.most_cores)
            reasons["CPU instance merged into the GPU instances of its application"] = merged
        reasons[f"not in the sample of one in {self.every}"] = (ids - self.seed) % self.every != 0
        keep, excluded = select(reasons, path, "use a trace with instances that ran, or another sample")
        amounts, ignored = _available(requests, machine)
        repaired = {
            "requested time unknown, set to the runtime": int(keep.sum()),
            "created before the trace, submitted when it begins": int((keep & ~known[0]).sum()),
            "running at the end of the trace, assumed to end then": int((keep & ~known[1]).sum()),
            **{reason: int((keep & rows).sum()) for reason, rows in ignored.items()},
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
            repaired=occurring(repaired),
            name=stem(path),
        )


def _times(source: Source) -> tuple[IntArray, IntArray, IntArray, tuple[BoolArray, BoolArray]]:
    """Return creation, scheduling and deletion (ns), and masks of rows with a known creation and deletion, (n_row,) each."""
    created, began, ended = columns = [_round_noise(known_numbers(source, name)) for name in _TIMES]
    for name, column in zip(_TIMES, columns, strict=True):
        refuse(source, name, (column < 0) | (column > _LONGEST), "is not a time in seconds since the trace began")
    refuse(
        source, "scheduled_time", np.isfinite(created) != np.isfinite(began), "must be given if and only if creation_time is"
    )
    refuse(source, "scheduled_time", began < created, "is before the creation")
    known = np.isfinite(created), np.isfinite(ended)
    last = max(float(np.nanmax(column, initial=0.0)) for column in columns)
    created, began = np.nan_to_num(created), np.nan_to_num(began)
    refuse(source, "deletion_time", ended < began, "is before the instance was scheduled")
    return array_to_ns(created), array_to_ns(began), array_to_ns(np.where(known[1], ended, last)), known


def _round_noise(seconds: FloatArray) -> FloatArray:
    """Round times, (n_row,), that differ from a whole number only by floating-point noise, such as 475.00000000000006."""
    nearest = np.rint(seconds)
    return np.where(np.abs(seconds - nearest) < 1e-6, nearest, seconds)


def _requests(source: Source) -> dict[str, IntArray]:
    """Return resource -> (n_row,) requested amounts in base units, including the role."""
    role = np.char.strip(source.texts("role"))
    refuse(source, "role", ~np.isin(role, list(ROLES)), f"is not a role; roles are {', '.join(ROLES)}")
    requests = {resource: (role == name).astype(np.int64) for name, resource in ROLES.items()}
    for resource, (column, unit) in _AMOUNTS.items():
        amount = known_numbers(source, column)
        refuse(source, column, ~(amount >= 0) | (amount * unit > LARGEST), "is not a valid amount")
        requests[resource] = round_up(amount * unit).astype(np.int64)
    return requests


def _available(requests: Mapping[str, IntArray], machine: Machine) -> tuple[dict[str, IntArray], dict[str, BoolArray]]:
    """Return the requests for resources that the machine has; and the rows that request others, as reason -> (n_row,) mask."""
    available = {name for name in requests if max_per_node(machine, name) or has_devices(machine, name)}
    ignored = {
        f"{name} ignored, because the machine has none": amount > 0
        for name, amount in requests.items()
        if name not in available
    }
    if not {"cores", "gpu"} & available:
        problem = f"the nodes of machine '{machine.name}' have neither cores nor gpu"
        raise InputError(problem, field="machine", remedy="give its nodes cores")
    return {name: amount for name, amount in requests.items() if name in available}, ignored
