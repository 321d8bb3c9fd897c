"""Warm start of a replay on shared nodes: placements of the initial runs in the form of the kernel."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from poolwise.arrays import IntArray
from poolwise.engines.shared_nodes.columns import SharedArrays
from poolwise.model import Initial, InitialRun, Workload
from poolwise.platforms.simulated import ended_before

if TYPE_CHECKING:
    from poolwise.kernels.shared_nodes.state import NodeArrays


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
    def of(cls, arrays: SharedArrays, initial: Initial) -> NodeHoldings | None:
        """Split placements by part; return None if a run holds other resources than its job requests."""
        places = _Places(arrays.nodes)
        parts, devices = list[list[int]](), list[list[int]]()
        for run in initial.runs:
            found = places.split(run, arrays)
            if found is None:
                return None
            parts += found[0]
            devices += found[1]
        types = arrays.nodes.idle.shape[1]
        return cls(np.array(parts, dtype=np.int64).reshape(-1, 2), np.array(devices, dtype=np.int64).reshape(len(parts), types))


class _Places:
    """Kernel numbers of nodes, pools and devices by owner."""

    def __init__(self, nodes: NodeArrays) -> None:
        self.node = {owner: n for n, owner in enumerate(nodes.owner.tolist())}
        self.dimension = {int(nodes.column[d]): d for d in range(len(nodes.order))}
        self.pool = {owner: k for k, owner in enumerate(nodes.pool_owner.tolist())}
        self.device = {int(nodes.device[n, t, bit]): (n, t, bit) for n, t, bit in np.argwhere(nodes.device >= 0).tolist()}

    def split(self, run: InitialRun, arrays: SharedArrays) -> tuple[list[list[int]], list[list[int]]] | None:
        """Return node and borrowed MiB of each part of a run, and its devices; None if they differ from its job's request."""
        from poolwise.kernels.shared_nodes.state import MEMORY

        nodes, kinds = arrays.nodes, arrays.kinds
        kind, types = int(arrays.jobs.nodes[run.job]), nodes.idle.shape[1]
        if not arrays.jobs.able[run.job]:
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


def resume_nodes(initial: Initial, held: NodeHoldings, workload: Workload, arrays: SharedArrays) -> None:
    """Start a new replay from the initial runs; raise InputError if one of them would have ended before."""
    from poolwise.kernels.list_scheduling.state import CALLBACK, CONSERVATIVE
    from poolwise.kernels.shared_nodes import state
    from poolwise.kernels.shared_nodes.resume import resume

    jobs, queue, runs, now = arrays.jobs, arrays.queue, arrays.runs, arrays.now
    count = len(initial.runs)
    runs.job[:count] = [run.job for run in initial.runs]
    runs.start[:count] = [run.start for run in initial.runs]
    arrived = int(np.searchsorted(jobs.submit, initial.now, side="right"))
    waits = np.ones(arrived, dtype=np.bool_)
    waits[runs.job[:count][runs.job[:count] < arrived]] = False
    able = jobs.able[:arrived]
    rows, never = np.flatnonzero(waits & able), np.flatnonzero(waits & ~able)
    n = len(rows)
    queue.job[:n], queue.where[rows], queue.since[:n] = rows, np.arange(n), 0
    runs.rejected[: len(never)] = never
    now[state.TIME], now[state.NEXT], now[state.WAITING], now[state.REJECTED] = initial.now, arrived, n, len(never)
    index = arrays.order.kind != CALLBACK and arrays.rules.backfill != CONSERVATIVE
    order, rules, nodes, timeline, tree = arrays.order, arrays.rules, arrays.nodes, arrays.timeline, arrays.tree
    devices = held.devices.copy()  # the kernel swaps them with the idle ones
    if not resume(jobs, arrays.kinds, order, rules, nodes, timeline, queue, tree, runs, held.parts, devices, index, now):
        raise ended_before(workload, int(runs.job[:count][runs.end[:count] < initial.now][0]))
    ended = count > int(now[state.RUNNING])
    now[state.QUIET] = int(not (ended or n))
    if ended or n or len(never):
        now[state.PASSES], now[state.PHASE] = 1, state.MAKE_PASS
