"""Warm start of a replay on racks: placements of the initial runs in the form of the kernel."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from poolwise.arrays import IntArray
from poolwise.engines.list_replay import start_from
from poolwise.engines.list_scheduling.loading import load_resume
from poolwise.engines.list_scheduling.mixed_nodes import pool_cells
from poolwise.engines.progress import MISMATCH, Obstacle
from poolwise.kernels.list_scheduling.state import RackState
from poolwise.model import Initial, Machine, Workload
from poolwise.model.rules import PoolScope


class RackHoldings(NamedTuple):
    """Nodes and MiB that the initial runs hold in each rack, (n_run, n_rack) each."""

    take: IntArray
    borrow: IntArray

    @classmethod
    def of(cls, machine: Machine, initial: Initial) -> RackHoldings | None:
        """Group placements by rack; return None if they contain anything but nodes and pool memory of racks."""
        layout, runs = machine.racks, initial.runs
        holdings = cls(*(np.zeros((len(runs), len(layout.nodes)), dtype=np.int64) for _ in range(2)))
        if not runs:
            return holdings
        rows = [run.placement for run in runs]
        run = np.repeat(np.arange(len(runs)), [len(placement) for placement in rows])
        owner, resource, amount = (
            np.concatenate([getattr(placement, name) for placement in rows]) for name in ("owner", "resource", "amount")
        )
        represented = np.zeros(len(owner), dtype=np.bool_)
        for held, owners, column in (
            (holdings.take, layout.nodes, layout.node_column),
            (holdings.borrow, pool_cells(layout), layout.memory_column),
        ):
            rack = np.full(machine.n_owner + 1, -1)
            rack[owners] = np.arange(len(owners))  # a rack without a pool has owner -1, the last entry, which is never read
            here = (resource == column) & (rack[owner] >= 0)
            np.add.at(held, (run[here], rack[owner[here]]), amount[here])
            represented |= here
        return holdings if represented.all() else None


def why_not_initial(workload: Workload, machine: Machine, initial: Initial, scope: PoolScope) -> Obstacle | None:
    """Return why the kernels cannot continue from the initial runs; None if they can."""
    held = RackHoldings.of(machine, initial)
    if held is None:
        return MISMATCH
    jobs, layout = np.array([run.job for run in initial.runs], dtype=np.int64), machine.racks
    nodes = workload.nodes[jobs] * workload.tasks[jobs]
    remote = held.take * np.maximum(workload.memory[jobs][:, None] - layout.local, 0)
    wanted, cells = np.zeros_like(held.borrow), np.unique(layout.rack, return_index=True, return_inverse=True)
    np.add.at(wanted.T, cells[1][cells[2]], remote.T)
    alike = np.array_equal(held.take.sum(axis=1), nodes) and np.array_equal(held.borrow.sum(axis=1), wanted.sum(axis=1))
    return None if alike and (scope == "system" or np.array_equal(held.borrow, wanted)) else MISMATCH


def resume_racks(initial: Initial, held: RackHoldings, workload: Workload, state: RackState) -> None:
    """Start a new replay from the initial runs; raise InputError if one of them would have ended before."""
    from poolwise.kernels.list_scheduling.resume import resume

    load_resume(state.jobs.mixed is not None)
    start_from(initial, workload, state, lambda: resume(state, held.take, held.borrow))
