"""Changes of the capacity of racks as arrays of the kernel."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache

import numpy as np

from poolwise.arrays import IntArray
from poolwise.engines.compiled_engine import RunSpec
from poolwise.engines.kernel_arrays import blank
from poolwise.engines.list_columns import IN_KERNELS
from poolwise.engines.list_scheduling.mixed_nodes import pool_cells
from poolwise.interfaces import ListRule
from poolwise.interfaces.user_class import rule_of
from poolwise.kernels.list_scheduling.state import ChangeArrays, JobArrays
from poolwise.model import Machine
from poolwise.platforms.simulated import Disturbance
from poolwise.policies.admission.machine_limits import barred

MOST = 2**30
"""Number of nodes, and of MiB, that exceeds every machine; used on mixed nodes, where no request is the largest."""


def why_unsupported(spec: RunSpec, rule: ListRule) -> str:
    """Return why the kernels do not support the changes of capacity of a run; empty if they do."""
    layout, backfill = spec.machine.racks, rule_of(rule.backfill)
    cells = {(int(owner), layout.node_column) for owner in layout.nodes}
    cells |= {(int(owner), layout.memory_column) for owner in layout.pools if owner >= 0}
    if any((change.owner, change.resource) not in cells for change in spec.disturbances):
        return "capacity other than that of nodes and rack pools changes during the run"
    if backfill is None or backfill.keeps or backfill.times is not None:
        return "capacity changes during the run, with held reservations or backfilling at intervals"
    if rule.order.kind not in IN_KERNELS:
        return f"capacity changes during the run, and order {type(rule.order).__name__} is called at each pass or has a cap"
    if rule.backfill.backfill_order is not None:
        return "capacity changes during the run, with a backfill order of its own"
    if len(barred(spec.machine, spec.workload.table)):
        return "capacity changes during the run, and a job exceeds limits"
    if rule.warm_up or spec.pass_per_event or spec.initial is not None:
        return "capacity changes during the run, with a warm-up, pass_per_event or an initial state"
    return ""


def in_order(disturbances: Iterable[Disturbance]) -> list[Disturbance]:
    """Return the changes in the order in which the simulation applies them."""
    return sorted(disturbances, key=lambda change: change.time)  # stable


def capacity_after(machine: Machine, disturbances: Iterable[Disturbance], count: int) -> IntArray:
    """Return the capacity after `count` changes, (n_owner, n_resource); it never falls below 0."""
    capacity = machine.capacity.copy()
    for change in in_order(disturbances)[:count]:
        cell = change.owner, change.resource
        capacity[cell] = max(capacity[cell] + change.amount, 0)
    return capacity


def peak(machine: Machine, disturbances: Sequence[Disturbance]) -> tuple[IntArray, IntArray]:
    """Return the peak over time of each rack's number of nodes, and of its pool's memory (MiB), (n_rack,) each."""
    capacity = machine.capacity.copy()
    max_request = capacity.copy()
    for change in in_order(disturbances):
        cell = change.owner, change.resource
        capacity[cell] = max(capacity[cell] + change.amount, 0)
        max_request[cell] = max(max_request[cell], capacity[cell])
    return _of_racks(machine, max_request)


def _of_racks(machine: Machine, amounts: IntArray) -> tuple[IntArray, IntArray]:
    """Return the nodes of each rack, and the MiB of its pool, (n_rack,) each, from (n_owner, n_resource) amounts."""
    layout, pools = machine.racks, pool_cells(machine.racks)
    return amounts[layout.nodes, layout.node_column], np.where(pools >= 0, amounts[pools, layout.memory_column], 0)


@cache
def no_changes() -> ChangeArrays:
    """Return empty arrays of changes; kernels read only their lengths."""
    nothing = blank(0)
    return ChangeArrays(
        time=nothing,
        rack=nothing,
        amount=nothing,
        of_pool=nothing.astype(np.bool_),
        nodes=nothing,
        memory=nothing,
        max_request=nothing,
        requeues=nothing.astype(np.bool_),
        deferred=nothing,
        rejected_after=nothing,
        lost=nothing.astype(np.bool_),
    )


def change_arrays(
    machine: Machine, disturbances: Sequence[Disturbance], requeues: bool, jobs: JobArrays
) -> tuple[ChangeArrays, int]:
    """Return the changes for a replay, and the number of changes up to the last one that adds capacity."""
    layout, changes, n = machine.racks, in_order(disturbances), len(jobs.submit)
    rack = {int(owner): r for owners in (layout.nodes, pool_cells(layout)) for r, owner in enumerate(owners) if owner >= 0}
    nodes, memory = _of_racks(machine, machine.capacity)
    pools = set(layout.pools.tolist())
    gains = [k for k, change in enumerate(changes, start=1) if change.amount > 0]
    arrays = ChangeArrays(
        time=np.array([change.time for change in changes], dtype=np.int64),
        rack=np.array([rack[change.owner] for change in changes], dtype=np.int64),
        amount=np.array([change.amount for change in changes], dtype=np.int64),
        of_pool=np.array([change.owner in pools for change in changes], dtype=np.bool_),
        nodes=nodes,
        memory=memory,
        max_request=np.array([column[jobs.able].max(initial=0) for column in (jobs.nodes, jobs.remote)], dtype=np.int64)
        if jobs.mixed is None
        else np.full(2, MOST),
        requeues=np.array([requeues]),
        deferred=blank(n),
        rejected_after=blank(n),
        lost=np.zeros(n, dtype=np.bool_),
    )
    return arrays, max(gains, default=0)
