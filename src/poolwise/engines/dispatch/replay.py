"""The compiled engine of task dispatch: tasks on idle units under policies of tiers, with the reference's result.

What it runs is said by `unsupported`; it turns the study into arrays, lets the kernels replay them, and turns the record
back into a `Schedule`, byte for byte that of `engine.simulated`.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from poolwise.arrays import FloatArray, IntArray
from poolwise.draws import uniform
from poolwise.engines.dispatch.star import Star
from poolwise.engines.list_scheduling.columns import blank, read_only
from poolwise.errors import InputError
from poolwise.interfaces import PerformanceModel
from poolwise.loop import Observer
from poolwise.model import Kind, Machine, Outcome, Schedule, Workload
from poolwise.performance.affinity import Affinity, compute_times, rates
from poolwise.performance.combined import Combined
from poolwise.performance.ideal import Ideal
from poolwise.performance.transfer import Transfer, places
from poolwise.platforms.simulated import Disturbance
from poolwise.policies.order.priorities import FCFS
from poolwise.policies.placement.units.choices import Choices
from poolwise.policies.placement.units.high import High
from poolwise.policies.placement.units.layout import UnitLayout
from poolwise.policies.placement.units.policy import TieredPolicy
from poolwise.schedulers.dispatch import LANE, Dispatch
from poolwise.schedulers.lanes import lanes_of

if TYPE_CHECKING:
    from poolwise.kernels.dispatch import state

log = logging.getLogger(__name__)

FAMILY = "dispatch"  # of kernels
EXACT = 2**51
"""Times in ns below which a slowdown in float64 gives them exactly."""


class Arrays(NamedTuple):
    """The arguments of the kernel `replay`."""

    jobs: state.Jobs
    units: state.Units
    idle: state.Idle
    ends: state.Ends
    tiers: state.Tiers
    lanes: state.Lanes
    runs: state.Runs
    now: IntArray


def unsupported(
    machine: Machine,
    workload: Workload,
    scheduler: Dispatch,
    truth: PerformanceModel,
    *,
    disturbances: Sequence[Disturbance] = (),
    pass_per_event: bool = False,
    observer: Observer | None = None,
) -> str:
    """Say why there is no kernel for a run; empty if there is one. What the scheduler believes does not matter here."""
    if len(disturbances):
        return "capacity changes during the run"
    if observer is not None:
        return "an observer wants to see each pass"
    if pass_per_event:
        return "a pass after each event"
    policy = scheduler.placement
    if type(scheduler.order) is not FCFS:
        return f"order {type(scheduler.order).__name__} has no kernel"
    if not isinstance(policy, TieredPolicy) or type(policy).choose is not TieredPolicy.choose:
        return f"placement {type(policy).__name__} has no kernel"
    parts = truth.models if type(truth) is Combined else (truth,)
    for kind in {type(model) for model in parts} - {Affinity, Transfer, Ideal}:
        return f"performance model {kind.__name__} has no kernel"
    if len({type(model) for model in parts}) < len(parts):
        return "a performance model counts twice"
    if not len(workload):
        return "the workload is empty"
    if int(machine.capacity[machine.kind == Kind.NODE, UnitLayout.of(machine).column].max()) > 1:
        return "a unit has several slots"
    if any(isinstance(model, Transfer) for model in parts):
        return _no_distances(machine, workload)
    return ""


def _no_distances(machine: Machine, workload: Workload) -> str:
    """Say why transfers do not depend on place, rack and beyond alone; empty if they do."""
    size = workload.attributes.get("data_size")
    if size is None or not bool(size.astype(np.int64).any()):
        return ""
    if Star.of(machine) is None:
        return "the network is not one of equal ports and equal uplinks"
    known = places(machine)
    travels = np.flatnonzero(size.astype(np.int64) > 0)
    data = np.stack([workload.attributes["data_x"][travels], workload.attributes["data_y"][travels]], axis=1).astype(np.int64)
    if any((x, y) not in known for x, y in np.unique(data, axis=0).tolist()):
        return "data lie where nothing is on the network"
    return ""


def replay(
    machine: Machine, workload: Workload, scheduler: Dispatch, truth: PerformanceModel, seed: int
) -> tuple[Schedule, float]:
    """Run what `unsupported` has no objection to.

    Returns
    -------
    schedule
    wall_s
        Seconds without compiling or loading kernels.

    Raises InputError as the reference does for tasks that nothing may run, and for a run beyond 146 years.
    """
    load()
    begun = time.perf_counter()
    schedule = _replay(machine, workload, scheduler, truth, seed)
    return schedule, time.perf_counter() - begun


def _replay(machine: Machine, workload: Workload, scheduler: Dispatch, truth: PerformanceModel, seed: int) -> Schedule:
    from poolwise.kernels.dispatch import state
    from poolwise.kernels.dispatch.replay import replay as go_on

    scheduler.check(machine, workload.table)  # refuses what nothing may run
    given = arrays(machine, workload, scheduler, truth, seed)
    if go_on(*given) == state.LATE:
        raise InputError("the simulation runs beyond 146 years, which engines cannot count in nanoseconds", field="submit")
    layout, runs, count = UnitLayout.of(machine), given.runs, len(given.runs.job)
    return Schedule(
        machine=machine,
        workload=workload,
        job=runs.job,
        start=runs.start,
        end=runs.end,
        tasks=np.ones(count, dtype=np.int64),
        outcome=(Outcome.FINISHED,) * count,
        offset=np.arange(count + 1),
        owner=layout.owner[runs.unit],
        resource=np.full(count, layout.column),
        amount=np.ones(count, dtype=np.int64),
        rejected={},
        waiting=(),
        passes=int(given.now[state.PASSES]),
        refused={},
    )


def arrays(machine: Machine, workload: Workload, scheduler: Dispatch, truth: PerformanceModel, seed: int) -> Arrays:
    """Lay out a run at its beginning; a kernel that has replayed it has used it up."""
    from poolwise.kernels.dispatch import state

    assert isinstance(scheduler.placement, TieredPolicy)
    shape, tiers = _tiers(scheduler.placement, machine, workload)
    lane = lanes_of(workload.table, LANE)
    n, n_lane, layout = len(workload), int(lane.max()) + 1, UnitLayout.of(machine)
    return Arrays(
        jobs=_jobs(machine, workload, truth, lane, shape, _draws(scheduler.placement, workload, seed)),
        units=_units(machine, layout),
        idle=all_idle(len(layout.owner)),
        ends=no_ends(len(layout.owner)),
        tiers=tiers,
        lanes=state.Lanes(np.full(n_lane, -1), np.full(n_lane, -1), np.full(n, -1), blank(n), blank(n_lane)),
        runs=state.Runs(*(blank(int(workload.tasks.sum())) for _ in range(4))),
        now=blank(state.N_NOW),
    )


@cache
def load() -> None:
    """Load the kernels, compiling them where this has not been done before on this computer; says so in the log."""
    from poolwise.kernels.jit import is_compiled, mark_compiled

    known, begun = is_compiled(FAMILY), time.perf_counter()
    if not known:
        log.warning("compiling the dispatch kernels, once for this version on this computer: a few seconds")
    one = np.ones(1, dtype=np.int64)
    unit = Machine(
        name="one unit",
        owners=("unit",),
        kind=0 * one,
        type=("unit",),
        rack=0 * one,
        position=np.zeros((1, 2), dtype=np.int64),
        home=-one,
        resources=("slots",),
        capacity=one[:, None].copy(),
    )
    _replay(unit, Workload.of(one, one), Dispatch(High()), Ideal(), 0)
    if not known:
        mark_compiled(FAMILY)
        log.warning("kernels compiled in %.0f s", time.perf_counter() - begun)


def _units(machine: Machine, layout: UnitLayout) -> state.Units:
    """Lay out the units."""
    from poolwise.kernels.dispatch import state

    kind = np.zeros(len(layout.owner), dtype=np.int64)
    for k, (low, high) in enumerate(layout.of_type):
        kind[low:high] = k
    x, y = machine.position[layout.owner].T
    return state.Units(read_only(kind), read_only(x), read_only(y), read_only(layout.rank))


def all_idle(n: int) -> state.Idle:
    """Count so many units, all of them idle."""
    from poolwise.kernels.dispatch.state import RADIX, Idle

    n_block = n // RADIX + 1  # one unit more than there are: counts are asked for before the end of the last range
    n_region = (n_block - 1) // RADIX + 1
    regions = np.minimum(np.arange(max(n_region, RADIX)) * RADIX**2, n)
    blocks = np.minimum(np.arange(n_region * RADIX) * RADIX, n)
    units = np.minimum(np.arange(n_block * RADIX), n)
    return Idle(
        regions=regions.astype(np.int32),
        blocks=(blocks.reshape(-1, RADIX) - regions[:n_region, None]).astype(np.int16),
        units=(units.reshape(-1, RADIX) - blocks[:n_block, None]).astype(np.int8),
        total=np.array([n]),
    )


def no_ends(n: int) -> state.Ends:
    """Let nothing run on so many units."""
    from poolwise.kernels.dispatch.state import N_DIGIT, NEVER, RADIX, Ends

    slots = N_DIGIT, RADIX
    return Ends(blank(n), blank(n), np.full(slots, -1), np.full(slots, NEVER), np.full(N_DIGIT, NEVER), blank(1))


def _tiers(policy: TieredPolicy, machine: Machine, workload: Workload) -> tuple[IntArray, state.Tiers]:
    """(n_job,) shape of each job, and the tiers of each shape, asked of the policy."""
    from poolwise.kernels.dispatch import state

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
    machine: Machine, workload: Workload, truth: PerformanceModel, lane: IntArray, shape: IntArray, draws: FloatArray
) -> state.Jobs:
    """Lay out the jobs."""
    from poolwise.kernels.dispatch import state

    parts = truth.models if isinstance(truth, Combined) else (truth,)
    transfer = next((model for model in parts if isinstance(model, Transfer)), None)
    compute = _compute(machine, workload) if any(isinstance(model, Affinity) for model in parts) else None
    if compute is None:
        compute = np.repeat(workload.duration[:, None], len(UnitLayout.of(machine).types), axis=1)
    return state.Jobs(
        submit=read_only(workload.submit),
        tasks=read_only(workload.tasks),
        lane=read_only(lane),
        shape=read_only(shape),
        compute=read_only(compute),
        transfer=read_only(_transfers(machine, workload, transfer)),
        x=read_only(_column(workload, "data_x")),
        y=read_only(_column(workload, "data_y")),
        draw=read_only(draws),
        first=read_only(np.concatenate([[0], np.cumsum(workload.tasks)[:-1]])),
    )


def _compute(machine: Machine, workload: Workload) -> IntArray | None:
    """(n_job, n_type) ns on each type, 0 where it cannot run; None where units do not differ."""
    layout = UnitLayout.of(machine)
    if "operations" not in workload.attributes or not len(rates(machine)):
        return None
    rate = layout.rate[_column(workload, "task_type")]
    operations = workload.attributes["operations"].astype(np.float64)[:, None]
    times = np.where(rate > 0, compute_times(operations, np.where(rate > 0, rate, 1.0)), 0)
    work = workload.duration[:, None]
    far = np.maximum(times, work) >= EXACT
    if far.any():  # as the reference counts them: work + ceil(work * slowdown)
        slow = np.ceil(work * np.where(times == work, 0.0, (times - work - 0.5) / work)).astype(np.int64)
        times = np.where(far & (rate > 0), work + slow, times)
    return times


def _transfers(machine: Machine, workload: Workload, model: Transfer | None) -> IntArray:
    """(n_job, 3) ns to the place of the data, in their rack, and across."""
    times = np.zeros((len(workload), 3), dtype=np.int64)
    size = _column(workload, "data_size")
    if model is None or not size.any():
        return times
    star = Star.of(machine)
    assert star is not None
    if model.local:
        times[:, 0] = -(-size * 1000 // model.local)
    for distance, (bandwidth, latency, links) in ((1, star.near), (2, star.far)):
        if bandwidth:
            times[:, distance] = -(-size * 1000 // bandwidth) + latency + model.switch_ns * (links - 1)
    times[size == 0] = 0
    return times


def _draws(policy: TieredPolicy, workload: Workload, seed: int) -> FloatArray:
    """(n_task,) the draw of each task, (0,) where the tie rule draws nothing."""
    if policy.tie != "random":
        return np.zeros(0)
    row = np.repeat(np.arange(len(workload)), workload.tasks)
    number = np.arange(len(row)) - np.repeat(np.cumsum(workload.tasks) - workload.tasks, workload.tasks)
    return uniform(seed, "dispatch", row, number)


def _column(workload: Workload, name: str) -> IntArray:
    column = workload.attributes.get(name)
    return np.zeros(len(workload), dtype=np.int64) if column is None else column.astype(np.int64)
