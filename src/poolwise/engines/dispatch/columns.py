"""Conversion of a run of task dispatch to the arrays of its kernel."""

from __future__ import annotations

import numpy as np

from poolwise.arrays import FloatArray, IntArray
from poolwise.engines.dispatch.star import StarNetwork
from poolwise.engines.kernel_arrays import blank, read_only
from poolwise.interfaces import PerformanceModel
from poolwise.kernels.common.state import record
from poolwise.kernels.dispatch import state
from poolwise.model import Machine, Workload
from poolwise.model.snapshot import model_parts
from poolwise.performance.affinity import Affinity, compute_times, rates
from poolwise.performance.transfer import Transfer
from poolwise.policies.placement.units.layout import Choices, UnitLayout
from poolwise.policies.placement.units.policy import TieredPolicy
from poolwise.quantities import NEVER
from poolwise.random import uniform
from poolwise.schedulers.dispatch import LANE, Dispatch
from poolwise.schedulers.task_queues import lanes_of

EXACT = 2**51
"""Bound (ns) below which a slowdown in float64 yields exact times."""


def arrays(
    workload: Workload, machine: Machine, scheduler: Dispatch, model: PerformanceModel, seed: int
) -> state.DispatchState:
    """Build the initial arrays of a run; a replay modifies them."""
    assert isinstance(scheduler.placement, TieredPolicy)
    shape, tiers = _tiers(workload, machine, scheduler.placement)
    lane = lanes_of(workload.table, LANE)
    n, n_lane, layout = len(workload), int(lane.max()) + 1, UnitLayout.of(machine)
    return state.DispatchState(
        jobs=_jobs(workload, machine, model, lane, shape, _draws(scheduler.placement, workload, seed)),
        units=_units(machine, layout),
        idle=all_idle(len(layout.owner)),
        ends=no_ends(len(layout.owner)),
        tiers=tiers,
        lanes=state.TaskQueueArrays(np.full(n_lane, -1), np.full(n_lane, -1), np.full(n, -1), blank(n), blank(n_lane)),
        runs=state.TaskRunArrays(*(blank(int(workload.tasks.sum())) for _ in range(4))),
        now=record(state.DispatchNow),
    )


def graph_arrays(workload: Workload, n_unit: int) -> state.GraphArrays:
    """Build the arrays of a workload's task graph; a replay modifies them."""
    graph, n = workload.task_graph, len(workload)
    assert graph is not None
    row = np.argsort(workload.id, kind="stable")
    rank = np.empty(n, dtype=np.int64)
    rank[row] = np.arange(n)
    return state.GraphArrays(
        missing=graph.counts + 1,
        left=workload.tasks.copy(),
        rank=read_only(rank),
        row=read_only(row),
        turn=blank(n),
        ready=blank(n),
        offset=read_only(graph.reversed.offset),
        successor=read_only(graph.reversed.before),
        job=blank(n_unit),
        counts=blank(2),
    )


def _units(machine: Machine, layout: UnitLayout) -> state.UnitArrays:
    """Build the arrays of the units."""
    kind = np.zeros(len(layout.owner), dtype=np.int64)
    for k, (low, high) in enumerate(layout.of_type):
        kind[low:high] = k
    x, y = machine.position[layout.owner].T
    return state.UnitArrays(read_only(kind), read_only(x), read_only(y), read_only(layout.rank))


def all_idle(n: int) -> state.IdleArrays:
    """Build the counts of n idle units."""
    n_block = n // state.RADIX + 1  # one unit more than there are, because the end of the last range is looked up
    n_region = (n_block - 1) // state.RADIX + 1
    regions = np.minimum(np.arange(max(n_region, state.RADIX)) * state.RADIX**2, n)
    blocks = np.minimum(np.arange(n_region * state.RADIX) * state.RADIX, n)
    units = np.minimum(np.arange(n_block * state.RADIX), n)
    return state.IdleArrays(
        regions=regions.astype(np.int32),
        blocks=(blocks.reshape(-1, state.RADIX) - regions[:n_region, None]).astype(np.int16),
        units=(units.reshape(-1, state.RADIX) - blocks[:n_block, None]).astype(np.int8),
        total=np.array([n]),
    )


def no_ends(n: int) -> state.Ends:
    """Build an empty heap of ends for n units."""
    slots = state.N_DIGIT, state.RADIX
    return state.Ends(blank(n), blank(n), np.full(slots, -1), np.full(slots, NEVER), np.full(state.N_DIGIT, NEVER), blank(1))


def _tiers(workload: Workload, machine: Machine, policy: TieredPolicy) -> tuple[IntArray, state.Tiers]:
    """Return the shape of each job, (n_job,), and the policy's tiers for each shape."""
    choices = Choices(UnitLayout.of(machine), workload.table)
    shape = lanes_of(workload.table, policy.key)
    tier, part, low, high = [0], [0], list[int](), list[int]()
    for job in np.unique(shape, return_index=True)[1].tolist():
        for ranges in policy.tiers(job, choices):
            low.extend(first for first, _ in ranges)
            high.extend(last for _, last in ranges)
            part.append(len(low))
        tier.append(len(part) - 1)
    tiers, parts, lows, highs = (read_only(np.array(column, dtype=np.int64)) for column in (tier, part, low, high))
    return shape, state.Tiers(tiers, parts, lows, highs, blank(len(low)))


def _jobs(
    workload: Workload, machine: Machine, model: PerformanceModel, lane: IntArray, shape: IntArray, draws: FloatArray
) -> state.TaskArrays:
    """Build the arrays of the jobs."""
    parts = model_parts(model)
    transfer = next((part for part in parts if isinstance(part, Transfer)), None)
    compute = _compute(workload, machine) if any(isinstance(part, Affinity) for part in parts) else None
    if compute is None:
        compute = np.repeat(workload.duration[:, None], len(UnitLayout.of(machine).types), axis=1)
    return state.TaskArrays(
        submit=read_only(workload.submit),
        tasks=read_only(workload.tasks),
        lane=read_only(lane),
        shape=read_only(shape),
        compute=read_only(compute),
        transfer=read_only(_transfers(workload, machine, transfer)),
        x=read_only(_column(workload, "data_x")),
        y=read_only(_column(workload, "data_y")),
        draw=read_only(draws),
        first=read_only(np.concatenate([[0], np.cumsum(workload.tasks)[:-1]])),
    )


def _compute(workload: Workload, machine: Machine) -> IntArray | None:
    """Return the compute times (ns), (n_job, n_type), 0 on types that cannot run a job; None if units do not differ."""
    layout = UnitLayout.of(machine)
    if "operations" not in workload.attributes or not len(rates(machine)):
        return None
    rate = layout.rate[_column(workload, "task_type")]
    operations = workload.attributes["operations"].astype(np.float64)[:, None]
    times = np.where(rate > 0, compute_times(operations, np.where(rate > 0, rate, 1.0)), 0)
    work = workload.duration[:, None]
    far = np.maximum(times, work) >= EXACT
    if far.any():  # as the reference engine computes them: work + ceil(work * slowdown)
        slow = np.ceil(work * np.where(times == work, 0.0, (times - work - 0.5) / work)).astype(np.int64)
        times = np.where(far & (rate > 0), work + slow, times)
    return times


def _transfers(workload: Workload, machine: Machine, model: Transfer | None) -> IntArray:
    """Return the transfer times (ns) of each job's data within its position, within its rack and across racks, (n_job, 3)."""
    times = np.zeros((len(workload), 3), dtype=np.int64)
    size = _column(workload, "data_size")
    if model is None or not size.any():
        return times
    star = StarNetwork.of(machine)
    assert star is not None
    if model.local:
        times[:, 0] = -(-size * 1000 // model.local)
    for distance, (bandwidth, latency, links) in ((1, star.near), (2, star.far)):
        if bandwidth:
            times[:, distance] = -(-size * 1000 // bandwidth) + latency + model.switch_ns * (links - 1)
    times[size == 0] = 0
    return times


def _draws(policy: TieredPolicy, workload: Workload, seed: int) -> FloatArray:
    """Return the random numbers of the tasks, (n_task,); (0,) if the tie rule is not random."""
    if policy.tie != "random":
        return np.zeros(0)
    row = np.repeat(np.arange(len(workload)), workload.tasks)
    number = np.arange(len(row)) - np.repeat(np.cumsum(workload.tasks) - workload.tasks, workload.tasks)
    return uniform(seed, "dispatch", row, number)


def _column(workload: Workload, name: str) -> IntArray:
    column = workload.attributes.get(name)
    return np.zeros(len(workload), dtype=np.int64) if column is None else column.astype(np.int64)
