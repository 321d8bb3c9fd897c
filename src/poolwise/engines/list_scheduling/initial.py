"""A replay on racks that goes on from runs at work: their placements as the kernels take them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from poolwise.arrays import IntArray
from poolwise.engines.list_scheduling.columns import ListArrays
from poolwise.engines.watch import UNLIKE, Obstacle
from poolwise.model import Initial, Machine, Workload
from poolwise.model.rules import PoolScope
from poolwise.platforms.simulated import ended_before


class RackHoldings(NamedTuple):
    """(n_run, n_rack) nodes and MiB that runs hold."""

    take: IntArray
    borrow: IntArray

    @classmethod
    def of(cls, machine: Machine, initial: Initial) -> RackHoldings | None:
        """Sort placements by rack; None where they hold anything but nodes and memory of racks."""
        layout = machine.racks
        rack = {int(owner): r for r, owner in enumerate(layout.nodes)}
        pool = {int(owner): r for r, owner in enumerate(layout.pools) if owner >= 0}
        found = cls(*(np.zeros((len(initial.runs), len(layout.nodes)), dtype=np.int64) for _ in range(2)))
        for k, run in enumerate(initial.runs):
            for _, owner, resource, amount in run.placement.rows():
                if resource == layout.node_column and owner in rack:
                    found.take[k, rack[owner]] += amount
                elif resource == layout.memory_column and owner in pool:
                    found.borrow[k, pool[owner]] += amount
                else:
                    return None
        return found


def unlike(machine: Machine, workload: Workload, initial: Initial, scope: PoolScope) -> Obstacle | None:
    """Say why the kernels cannot go on from some runs; None if they can."""
    held = RackHoldings.of(machine, initial)
    if held is None:
        return UNLIKE
    jobs = np.array([run.job for run in initial.runs], dtype=np.int64)
    remote = np.maximum(workload.memory[jobs] - machine.local_memory, 0)
    nodes = workload.nodes[jobs] * workload.tasks[jobs]
    alike = np.array_equal(held.take.sum(axis=1), nodes) and np.array_equal(held.borrow.sum(axis=1), nodes * remote)
    if scope == "rack":
        alike = alike and np.array_equal(held.borrow, held.take * remote[:, None])
    return None if alike else UNLIKE


def go_on_from(initial: Initial, held: RackHoldings, workload: Workload, arrays: ListArrays) -> None:
    """Let a replay that has not begun go on from some runs; raises InputError where one of them would have ended."""
    from poolwise.kernels.list_scheduling import state
    from poolwise.kernels.list_scheduling.resume import resume

    jobs, queue, runs, now = arrays.jobs, arrays.queue, arrays.runs, arrays.now
    count = len(initial.runs)
    runs.job[:count] = [run.job for run in initial.runs]
    runs.start[:count] = [run.start for run in initial.runs]
    now[state.TIME] = initial.now
    if not resume(jobs, arrays.rules, arrays.racks, runs, held.take, held.borrow, now):
        raise ended_before(workload, int(runs.job[:count][runs.end[:count] < initial.now][0]))
    arrived = int(np.searchsorted(jobs.submit, initial.now, side="right"))
    waits = np.ones(arrived, dtype=np.bool_)
    waits[runs.job[:count][runs.job[:count] < arrived]] = False
    able = jobs.able[:arrived]
    rows, never = np.flatnonzero(waits & able), np.flatnonzero(waits & ~able)
    n = len(rows)
    queue.job[:n], queue.where[rows] = rows, np.arange(n)
    queue.nodes[:n], queue.remote[:n], queue.length[:n] = jobs.nodes[rows], jobs.remote[rows], jobs.length[rows]
    queue.since[:n] = 0
    runs.rejected[: len(never)] = never
    ended = count > int(now[state.RUNNING])
    now[state.NEXT], now[state.WAITING], now[state.REJECTED] = arrived, n, len(never)
    now[state.QUIET] = int(not (ended or n))
    if ended or n or len(never):
        now[state.PASSES], now[state.PHASE] = 1, state.MAKE_PASS
