"""Warm start of a replay on shared nodes: placements of the initial runs in the form of the kernel."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from poolwise.arrays import IntArray
from poolwise.engines.list_replay import start_from
from poolwise.kernels.shared_nodes.state import MEMORY, CounterArrays, NodeArrays, SharedState
from poolwise.model import Initial, InitialRun, Workload


class NodeHoldings(NamedTuple):
    """Resources held by the parts of the initial runs, run by run.

    Attributes
    ----------
    parts : (n_part, 2) node, and MiB from its pool
    devices : (n_part, n_type) devices as bits
    """

    parts: IntArray
    devices: IntArray

    @classmethod
    def of(cls, state: SharedState, initial: Initial) -> NodeHoldings | None:
        """Split placements by part; return None if a run holds resources other than those that its job requests."""
        places = _Places(state.nodes)
        parts, devices = list[list[int]](), list[list[int]]()
        for run in initial.runs:
            split_run = places.split(run, state)
            if split_run is None:
                return None
            parts += split_run[0]
            devices += split_run[1]
        types = state.nodes.idle.shape[1]
        return cls(np.array(parts, dtype=np.int64).reshape(-1, 2), np.array(devices, dtype=np.int64).reshape(len(parts), types))


class _Places:
    """Kernel numbers of nodes, pools and devices by owner."""

    def __init__(self, nodes: NodeArrays) -> None:
        self.node = {owner: n for n, owner in enumerate(nodes.owner.tolist())}
        self.dimension = {int(nodes.column[d]): d for d in range(len(nodes.order))}
        self.pool = {owner: k for k, owner in enumerate(nodes.pool_owner.tolist())}
        self.device = {int(nodes.device[n, t, bit]): (n, t, bit) for n, t, bit in np.argwhere(nodes.device >= 0).tolist()}

    def split(self, run: InitialRun, state: SharedState) -> tuple[list[list[int]], list[list[int]]] | None:
        """Return node, borrowed MiB and devices of each part of a run; None if they differ from the job's request."""
        nodes, kinds = state.nodes, state.kinds
        kind, types = int(state.jobs.kind[run.job]), nodes.idle.shape[1]
        if not state.jobs.able[run.job]:
            return None
        request = kinds.request[kind].tolist()
        held: dict[int, list[int]] = {}
        bits: dict[int, list[int]] = {}
        lent: dict[int, int] = {}
        for _, owner, resource, amount in run.placement.rows():
            if owner in self.node and resource in self.dimension:
                n = self.node[owner]
                held.setdefault(n, [0] * len(request))[self.dimension[resource]] += amount
            elif owner in self.pool and resource == nodes.column[MEMORY]:
                lent[self.pool[owner]] = lent.get(self.pool[owner], 0) + amount
            elif owner in self.device and amount == 1:
                n, t, bit = self.device[owner]
                held.setdefault(n, [0] * len(request))[len(nodes.order) + t] += 1
                bits.setdefault(n, [0] * types)[t] |= 1 << bit
            else:
                return None
        borrowed = {n: request[MEMORY] - amounts[MEMORY] for n, amounts in held.items()}
        borrowed_of: dict[int, int] = {}
        for n, borrow in borrowed.items():
            held[n][MEMORY] += borrow
            if borrow:
                borrowed_of[int(nodes.pool_of[n])] = borrowed_of.get(int(nodes.pool_of[n]), 0) + borrow
        alike = len(held) == int(kinds.parts[kind]) and all(amounts == request for amounts in held.values())
        if not alike or borrowed_of != lent or min(borrowed.values()) < 0:
            return None
        return [[n, borrow] for n, borrow in borrowed.items()], [bits.get(n, [0] * types) for n in held]


def resume_nodes(initial: Initial, held: NodeHoldings, workload: Workload, state: SharedState) -> None:
    """Start a new replay from the initial runs; raise InputError if one of them would have ended before."""
    from poolwise.kernels.shared_nodes.resume import resume

    devices = held.devices.copy()  # the kernel swaps them with the idle ones
    start_from(initial, workload, state, lambda: resume(state, held.parts, devices))


def take_counters(state: SharedState, counters: CounterArrays | None) -> None:
    """Initialize the counters of a replay from a state with the amounts that the current runs use."""
    if counters is None:
        return
    jobs = state.runs.job[state.runs.ending[: state.now.running]]
    counters.use[:] = 0
    for job in jobs.tolist():
        demands = slice(counters.first[job], counters.first[job + 1])
        np.add.at(counters.use, counters.counter[demands], counters.amount[demands])
