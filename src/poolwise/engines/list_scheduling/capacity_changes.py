"""Changes of the capacity of racks as the arrays that kernels take."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from poolwise.arrays import IntArray
from poolwise.engines.compiled_engine import Parts
from poolwise.engines.kernel_arrays import blank
from poolwise.engines.list_columns import IN_KERNELS
from poolwise.interfaces import ListRule, rule_of
from poolwise.model import Machine
from poolwise.platforms.simulated import Disturbance

if TYPE_CHECKING:
    from poolwise.kernels.list_scheduling.state import ChangeArrays, JobArrays


def why_not_changing(parts: Parts, rule: ListRule) -> str:
    """Say what keeps kernels from following the changes of capacity of a run; empty if nothing."""
    layout, backfill = parts.machine.racks, rule_of(rule.backfill)
    known = {(int(owner), layout.node_column) for owner in layout.nodes}
    known |= {(int(owner), layout.memory_column) for owner in layout.pools if owner >= 0}
    if any((change.owner, change.resource) not in known for change in parts.disturbances):
        return "something else changes during the run than the nodes and pools of racks"
    if backfill is None or backfill.keeps:
        return "capacity changes during the run, and reservations are kept"
    if rule.order.kind not in IN_KERNELS:
        return f"capacity changes during the run, and order {type(rule.order).__name__} is asked or has a cap"
    if rule.backfill.own_order is not None:
        return "capacity changes during the run, and what is tried beside the head has an order of its own"
    if rule.warm_up or parts.pass_per_event or parts.initial is not None:
        return "capacity changes during the run, beside a warm-up, a pass after each event, or a state that it goes on from"
    return ""


def in_time(disturbances: Iterable[Disturbance]) -> list[Disturbance]:
    """Changes in the order in which a simulation makes them."""
    return sorted(disturbances, key=lambda change: change.time)  # stable


def capacity_after(machine: Machine, disturbances: Iterable[Disturbance], count: int) -> IntArray:
    """(n_owner, n_resource) capacity after so many changes; nothing has less than none."""
    capacity = machine.capacity.copy()
    for change in in_time(disturbances)[:count]:
        cell = change.owner, change.resource
        capacity[cell] = max(capacity[cell] + change.amount, 0)
    return capacity


def peak(machine: Machine, disturbances: Sequence[Disturbance]) -> tuple[IntArray, IntArray]:
    """(n_rack,) nodes and MiB: the most that each rack and each pool has at any time."""
    capacity = machine.capacity.copy()
    most = capacity.copy()
    for change in in_time(disturbances):
        cell = change.owner, change.resource
        capacity[cell] = max(capacity[cell] + change.amount, 0)
        most[cell] = max(most[cell], capacity[cell])
    return _of_racks(machine, most)


def _of_racks(machine: Machine, amounts: IntArray) -> tuple[IntArray, IntArray]:
    """(n_rack,) nodes, and MiB of pools, of (n_owner, n_resource) amounts."""
    layout = machine.racks
    return amounts[layout.nodes, layout.node_column], np.where(
        layout.pools >= 0, amounts[layout.pools, layout.memory_column], 0
    )


def change_arrays(
    machine: Machine, disturbances: Sequence[Disturbance], requeues: bool, jobs: JobArrays
) -> tuple[ChangeArrays, int]:
    """Changes for a replay of some jobs, and how many there are up to the last that gives something."""
    from poolwise.kernels.list_scheduling.state import ChangeArrays

    layout, changes, n = machine.racks, in_time(disturbances), len(jobs.submit)
    rack = {int(owner): r for owners in (layout.nodes, layout.pools) for r, owner in enumerate(owners) if owner >= 0}
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
        most=np.array([column[jobs.able].max(initial=0) for column in (jobs.nodes, jobs.remote)], dtype=np.int64),
        requeues=np.array([requeues]),
        aside=blank(n),
        after=blank(n),
        lost=np.zeros(n, dtype=np.bool_),
    )
    return arrays, max(gains, default=0)
