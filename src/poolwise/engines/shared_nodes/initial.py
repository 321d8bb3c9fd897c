"""A replay on shared nodes that goes on from runs at work: their placements as the kernels take them."""

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
    """What the parts of runs hold, run by run.

    Attributes
    ----------
    parts : (n_part, 2) node, and MiB from its pool
    devices : (n_part, n_type) devices, a bit each
    """

    parts: IntArray
    devices: IntArray

    @classmethod
    def of(cls, arrays: SharedArrays, initial: Initial) -> NodeHoldings | None:
        """Take placements apart; None where a run holds something else than its job asks for."""
        places = _Places(arrays.nodes)
        parts, devices = list[list[int]](), list[list[int]]()
        for run in initial.runs:
            found = places.take_apart(run, arrays)
            if found is None:
                return None
            parts += found[0]
            devices += found[1]
        types = arrays.nodes.idle.shape[1]
        return cls(np.array(parts, dtype=np.int64).reshape(-1, 2), np.array(devices, dtype=np.int64).reshape(len(parts), types))


class _Places:
    """Where each owner is, as the kernels number nodes and devices."""

    def __init__(self, nodes: NodeArrays) -> None:
        self.node = {owner: n for n, owner in enumerate(nodes.owner.tolist())}
        self.dimension = {int(nodes.column[d]): d for d in range(len(nodes.order))}
        self.pool = {owner: k for k, owner in enumerate(nodes.pool_owner.tolist())}
        self.device = {int(nodes.device[n, t, bit]): (n, t, bit) for n, t, bit in np.argwhere(nodes.device >= 0).tolist()}

    def take_apart(self, run: InitialRun, arrays: SharedArrays) -> tuple[list[list[int]], list[list[int]]] | None:
        """Node and lack of each part of a run, and its devices; None where it holds something else than it asks for."""
        from poolwise.kernels.shared_nodes.state import MEMORY

        nodes, kinds = arrays.nodes, arrays.kinds
        kind, types = int(arrays.jobs.nodes[run.job]), nodes.idle.shape[1]
        if not arrays.jobs.able[run.job]:
            return None
        ask = kinds.ask[kind].tolist()
        held: dict[int, list[int]] = {}
        bits: dict[int, list[int]] = {}
        lent: dict[int, int] = {}
        for _, owner, resource, amount in run.placement.rows():
            if owner in self.node and resource in self.dimension:
                n = self.node[owner]
                held.setdefault(n, [0] * len(ask))[self.dimension[resource]] += amount
            elif owner in self.pool and resource == nodes.column[MEMORY]:
                lent[self.pool[owner]] = lent.get(self.pool[owner], 0) + amount
            elif owner in self.device and amount == 1:
                n, t, bit = self.device[owner]
                held.setdefault(n, [0] * len(ask))[len(nodes.order) + t] += 1
                bits.setdefault(n, [0] * types)[t] |= 1 << bit
            else:
                return None
        lacks = {n: ask[MEMORY] - amounts[MEMORY] for n, amounts in held.items()}
        wanted: dict[int, int] = {}
        for n, lack in lacks.items():
            held[n][MEMORY] += lack
            if lack:
                wanted[int(nodes.pool_of[n])] = wanted.get(int(nodes.pool_of[n]), 0) + lack
        alike = len(held) == int(kinds.parts[kind]) and all(amounts == ask for amounts in held.values())
        if not alike or wanted != lent or min(lacks.values()) < 0:
            return None
        return [[n, lack] for n, lack in lacks.items()], [bits.get(n, [0] * types) for n in held]


def continue_nodes(initial: Initial, held: NodeHoldings, workload: Workload, arrays: SharedArrays) -> None:
    """Let a replay that has not begun go on from some runs; raises InputError where one of them would have ended."""
    from poolwise.kernels.list_scheduling.state import ASKED, CONSERVATIVE
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
    index = arrays.order.kind != ASKED and arrays.rules.backfill != CONSERVATIVE
    order, rules, nodes, timeline, tree = arrays.order, arrays.rules, arrays.nodes, arrays.timeline, arrays.tree
    devices = held.devices.copy()  # the kernel swaps them with what is idle
    if not resume(jobs, arrays.kinds, order, rules, nodes, timeline, queue, tree, runs, held.parts, devices, index, now):
        raise ended_before(workload, int(runs.job[:count][runs.end[:count] < initial.now][0]))
    ended = count > int(now[state.RUNNING])
    now[state.QUIET] = int(not (ended or n))
    if ended or n or len(never):
        now[state.PASSES], now[state.PHASE] = 1, state.MAKE_PASS
