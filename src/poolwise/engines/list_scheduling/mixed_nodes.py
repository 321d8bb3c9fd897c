"""Arrays of the kernel for nodes that differ, or on which only some jobs may run."""

from __future__ import annotations

import numpy as np

from poolwise.arrays import BoolArray, IntArray
from poolwise.engines.kernel_arrays import blank, read_only
from poolwise.interfaces import PlacementPolicy
from poolwise.kernels.list_scheduling.head_state import RackHeadArrays
from poolwise.kernels.list_scheduling.state import MixedArrays
from poolwise.model import JobTable, Kind, Machine
from poolwise.model.eligibility import eligible_owners, eligible_sets
from poolwise.model.machine import RackLayout
from poolwise.policies.backfill.none import pools_of


def is_mixed(machine: Machine, table: JobTable) -> bool:
    """Return whether nodes differ for some jobs: in a requested resource, or in which jobs may use them."""
    return bool(machine.node_sets or machine.partitions) or machine.racks.distinguishes(table.requests)


def pool_cells(layout: RackLayout) -> IntArray:
    """Return the owner of each rack's memory pool at the rack's first group, -1 at other groups, (n_group,)."""
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
    """Return the groups that each set of jobs may use, (n_set, n_group), and the set of each job, (n_job,)."""
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
    """Return the remote memory (MiB) of each job on the largest node that it may use, (n_job,)."""
    largest = np.where(mixed.allowed, mixed.local, 0).max(axis=1)
    values: IntArray = np.maximum(mixed.memory - largest[mixed.eligible], 0)
    return values


def head_arrays(machine: Machine, table: JobTable, placement: PlacementPolicy) -> RackHeadArrays:
    """Return the arrays of the heads of the partitions that jobs of a table use."""
    layout, sets = machine.racks, eligible_sets(machine, table)
    cells = pool_cells(layout)

    def resources(name: str, constraint: str) -> BoolArray:
        """Return a mask of the groups, and of the pools, that a set of nodes contains, (2 * n_group,)."""
        usable = eligible_owners(machine, name, constraint) & (machine.kind == Kind.NODE)
        pools = pools_of(usable, machine, placement)
        return np.concatenate([usable[layout.nodes], (cells >= 0) & pools[cells]])

    usable = np.array([resources(*value) for value in sets.value])
    blocks = np.array([resources(name, "") for name, _ in sets.value])
    n_set, n_group = len(usable), len(layout.nodes)
    return RackHeadArrays(
        of=read_only(sets.of[: len(table)].astype(np.int64)),
        usable=read_only(usable),
        blocks=read_only(blocks),
        competes=read_only(usable.astype(np.int64) @ blocks.T.astype(np.int64) > 0),
        blocked=np.zeros(2 * n_group, dtype=np.bool_),
        free=blank(n_group),
        pool=blank(n_group),
        line=blank(len(table)),
        key=np.zeros(len(table)),
        head=blank(n_set),
        window=blank(n_set),
        shadow_free=blank(n_set, n_group),
        shadow_pool=blank(n_set, n_group),
    )
