"""Offered load of each resource that jobs request, on a whole machine and on the nodes of its partitions.

For machines whose nodes are shared, and for partitions; `throughput.offered_load` computes the load of whole nodes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from poolwise.arrays import BoolArray
from poolwise.metrics.resource_use import owners_with, requested_amounts
from poolwise.model import Kind, Machine, Workload
from poolwise.model.eligibility import NO_PARTITION, eligible_owners, taking_partitions
from poolwise.quantities import SECOND


@dataclass(frozen=True)
class ResourceLoad:
    """Load of one resource between the first and the last submission.

    Attributes
    ----------
    resource : name
    load : requested amount x run time / (installed amount x time); above 1 the queue grows as long as jobs arrive
    without_few : load without the few jobs that request most of the resource over time
    partition : name of the partition, or of several separated by commas; "" for the whole machine
    """

    resource: str
    load: float
    without_few: float
    partition: str = ""


def loads(workload: Workload, machine: Machine, counted: BoolArray, few: int) -> list[ResourceLoad]:
    """Return the load of each resource of a machine, the scarcest resource first; empty if all jobs are submitted at once.

    Parameters
    ----------
    workload, machine
        The jobs and the machine.
    counted
        (n_job,) jobs that count, such as those that the machine can run.
    few
        Number of jobs without which the load is also computed.
    """
    return _loads(workload, machine, counted, np.ones(machine.n_owner, dtype=np.bool_), few, "")


def partition_loads(workload: Workload, machine: Machine, counted: BoolArray, few: int) -> list[ResourceLoad]:
    """Return the load of the scarcest resource of each partition, the highest first.

    Only jobs that may run nowhere else count; jobs that several partitions accept count for these partitions together.
    """
    if not machine.partitions:
        return []
    names = taking_partitions(machine, workload.table, slice(0, len(workload)))
    loads = []
    for name in np.unique(names).tolist():
        if name not in ("", NO_PARTITION):
            here = eligible_owners(machine, name, "") | (machine.kind == Kind.POOL)
            loads += _loads(workload, machine, counted & (names == name), here, few, name)[:1]
    return sorted(loads, key=lambda load: -load.load)


def _loads(
    workload: Workload, machine: Machine, counted: BoolArray, here: BoolArray, few: int, partition: str
) -> list[ResourceLoad]:
    span = float(np.ptp(workload.submit) / SECOND) if len(workload) else 0.0
    loads = []
    devices = (machine.kind == Kind.DEVICE) & np.where(machine.home >= 0, here[machine.home], True)
    whole = "nodes" in machine.resources  # their memory and cores are taken with the node
    for name in (["nodes"] if whole else sorted(set(workload.requests) - {"nodes"})) if span else ():
        work = np.where(counted, requested_amounts(workload, name) * (workload.duration / SECOND), 0.0)
        capacity, _ = owners_with(machine, name)
        installed = float(capacity[here | devices].sum())
        if installed and work.any():
            most = np.sort(work)[::-1][:few].sum()
            offered = installed * span
            loads.append(ResourceLoad(name, float(work.sum() / offered), float((work.sum() - most) / offered), partition))
    return sorted(loads, key=lambda load: (-load.load, load.resource))
