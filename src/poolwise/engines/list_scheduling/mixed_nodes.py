"""Nodes that differ, or on which only some jobs may run, as arrays of the kernel."""

from __future__ import annotations

import numpy as np

from poolwise.arrays import BoolArray, IntArray
from poolwise.engines.kernel_arrays import blank, read_only
from poolwise.kernels.list_scheduling.state import MixedArrays
from poolwise.model import JobTable, Machine
from poolwise.model.eligibility import eligible_owners, eligible_sets
from poolwise.model.machine import RackLayout


def is_mixed(machine: Machine, table: JobTable) -> bool:
    """Return whether nodes differ for some jobs, in a resource that they request or in whether they may be used."""
    return bool(machine.node_sets or machine.partitions) or machine.racks.distinguishes(table.requests)


def pool_cells(layout: RackLayout) -> IntArray:
    """Return (n_group,) the owner of the memory pool of each rack at its first group, -1 elsewhere."""
    cells = np.full(len(layout.pools), -1, dtype=np.int64)
    first = np.unique(layout.rack, return_index=True)[1]
    cells[first] = layout.pools[first]
    return cells


def mixed_arrays(machine: Machine, table: JobTable) -> MixedArrays:
    """Return the arrays of the nodes of a machine and the jobs of a table."""
    layout = machine.racks
    n_group, distinct = len(layout.nodes), layout.distinguishes(table.requests)
    others = sum(layout.others.values(), np.zeros(n_group, dtype=np.int64)) if distinct else np.zeros(n_group, dtype=np.int64)
    sizes = np.unique(layout.local)
    # jobs above all sizes and jobs of the largest size take nodes in the same order
    preference = [np.lexsort((layout.local, others, np.maximum(size - layout.local, 0))) for size in (*sizes, sizes[-1] + 1)]
    _, first, rack, count = np.unique(layout.rack, return_index=True, return_inverse=True, return_counts=True)
    allowed, eligible = _allowed(machine, table)
    return MixedArrays(
        local=read_only(layout.local),
        others=read_only(others),
        rack=read_only(rack),
        home=read_only(first[rack]),
        first=read_only(np.concatenate([[0], np.cumsum(count)])),
        by_preference=read_only(np.array(preference)),
        by_rack=read_only(np.array([order[np.argsort(rack[order], kind="stable")] for order in preference])),
        allowed=read_only(allowed),
        memory=read_only(table.memory),
        level=read_only(np.searchsorted(sizes, table.memory)),
        eligible=read_only(eligible),
        offers=blank(len(count), 5),
        scratch=blank(n_group),
    )


def _allowed(machine: Machine, table: JobTable) -> tuple[BoolArray, IntArray]:
    """Return (n_set, n_group) groups that each set of jobs may use, and (n_job,) the set of each job."""
    layout, sets = machine.racks, eligible_sets(machine, table)
    wanted = [name for name in layout.others if name in table.requests]
    # amounts between two that nodes bring differ for no node
    columns = [np.searchsorted(np.unique(layout.others[name]), table.request(name)) for name in wanted]
    kinds, example, eligible = np.unique(
        np.stack([sets.of[: len(table)], *columns]), axis=1, return_index=True, return_inverse=True
    )
    allowed = np.array([eligible_owners(machine, *sets.value[k])[layout.nodes] for k in kinds[0].tolist()], dtype=np.bool_)
    for name in wanted:
        allowed &= layout.others[name] >= table.request(name)[example][:, None]
    return allowed, eligible.reshape(-1)


def least_remote(mixed: MixedArrays) -> IntArray:
    """Return (n_job,) MiB of remote memory of each job on the largest node that it may use."""
    largest = np.where(mixed.allowed, mixed.local, 0).max(axis=1)
    found: IntArray = np.maximum(mixed.memory - largest[mixed.eligible], 0)
    return found
