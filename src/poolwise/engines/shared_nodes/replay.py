"""Compiled engine of list scheduling on shared nodes, with the result of the reference engine.

The module `supported` lists what the engine cannot run. The engine converts the run to arrays (`columns`), replays them in the
kernel, and converts the record to a `Schedule` that equals that of the reference engine byte for byte.
"""

from __future__ import annotations

import time
from dataclasses import replace
from functools import cache
from typing import Literal, get_args

import numpy as np

from poolwise.engines import compiled_engine
from poolwise.engines.compiled_engine import RunSpec
from poolwise.engines.compiling import InterimKernel, Kernel, wait_for_background
from poolwise.engines.list_replay import run_to_end
from poolwise.engines.progress import ProgressListener
from poolwise.engines.recalculations import Recalculations
from poolwise.engines.run_record import longer, schedule_of, with_more_rows, with_more_runs
from poolwise.engines.shared_nodes.arrays import SharedArrays, with_steps
from poolwise.engines.shared_nodes.columns import SharedColumns
from poolwise.engines.shared_nodes.initial import NodeHoldings, resume_nodes, take_counters
from poolwise.engines.shared_nodes.refusals import refusals
from poolwise.interfaces import BackfillPolicy, ListRule
from poolwise.interfaces.user_class import rule_of
from poolwise.kernels.common.state import INSTANTS, RANK, RENEW_KEYS
from poolwise.kernels.shared_nodes.state import PartArrays
from poolwise.model import Initial, Kind, Machine, ReservedWindow, Schedule, Workload
from poolwise.performance.ideal import Ideal
from poolwise.policies.admission.machine_limits import limits_use
from poolwise.policies.backfill.conservative import Conservative
from poolwise.policies.backfill.easy import Easy
from poolwise.policies.backfill.slurm import SlurmBackfill
from poolwise.policies.placement.nodes.placement import FirstNodes
from poolwise.quantities import SECOND
from poolwise.schedulers.list import ListScheduler

FOLDER = "shared_nodes"
"""Folder of the kernel package."""
COMPILE_S = 10.0
"""Seconds to compile one kernel on the reference computer."""


def replay(spec: RunSpec) -> tuple[Schedule, float]:
    """Replay a supported run; return the schedule, and the elapsed seconds without compiling and loading."""
    rule = rule_of(spec.scheduler)
    assert rule is not None
    kernel = node_kernel(spec)
    begun = time.perf_counter()
    schedule = _replay(spec, rule, kernel)
    return schedule, time.perf_counter() - begun - kernel.loading_s


def node_kernel(spec: RunSpec) -> InterimKernel:
    """Return the kernel of a run; the kernel that restores initial runs is loaded immediately if it is needed."""
    from poolwise.kernels.shared_nodes.replay import replay

    if spec.initial is not None:
        load_kind("from a state")
    return InterimKernel(FOLDER, load_kind, replay, len(spec.workload))


def _replay(spec: RunSpec, rule: ListRule, kernel: Kernel) -> Schedule:
    columns = SharedColumns(spec, rule)
    arrays = columns.arrays(spec.pass_per_event)
    if spec.initial is not None:
        held = NodeHoldings.of(arrays.state, spec.initial)
        assert held is not None
        resume_nodes(spec.initial, held, spec.workload, arrays.state)
        take_counters(arrays.state, arrays.counters)
    if spec.watch is not None:
        spec.watch.begin(None)
    arrays = replay_nodes(columns, arrays, kernel, spec.watch)
    state = arrays.state
    rejected = refusals(columns, state.runs, state.now, spec.pass_per_event)
    return schedule_of(columns, state, rejected, arrays.outages.lost if arrays.outages is not None and arrays.failing else None)


def replay_nodes(
    columns: SharedColumns, arrays: SharedArrays, kernel: Kernel, watch: ProgressListener | None = None
) -> SharedArrays:
    """Call a kernel until the replay ends, and handle its requests; return the arrays, some of which may have grown."""
    kind = _kind_of(columns.scheduler, arrays.windows is not None, arrays.heads is not None)

    def serve(request: int, arrays: SharedArrays, recalculations: Recalculations) -> SharedArrays:
        if request == RENEW_KEYS:
            recalculations.recalculate(arrays.state)
            return arrays
        if request == RANK:
            assert arrays.intervals is not None
            recalculations.rank(arrays.intervals.formula)
            return arrays
        if request == INSTANTS and arrays.intervals is not None:
            arrays.intervals.status.version = -1
            more = columns.segments(2 * int(arrays.state.now.rows), len(arrays.state.nodes.owner))
            return arrays._replace(intervals=arrays.intervals._replace(segments=more))
        if request == INSTANTS:
            assert arrays.profile is not None
            return arrays._replace(profile=with_steps(arrays.profile, 2 * int(arrays.state.now.rows)))
        return _with_more_runs(arrays)

    return run_to_end(columns, arrays, lambda arrays: kernel(kind, arrays), serve, watch)


def _with_more_runs(arrays: SharedArrays) -> SharedArrays:
    """Return the arrays with more rows and, if runs may be lost, with space for the runs and parts that may start."""
    state, rules, now, outages = arrays.state, arrays.state.rules, arrays.state.now, arrays.outages
    runs = with_more_rows(state.runs, int(now.started), int(now.rows))
    if outages is None or not arrays.failing:
        return arrays.with_state(runs=runs)
    waiting, parts = int(now.waiting), state.parts
    more = max(0, int(now.started) + waiting - len(outages.lost))
    more_parts = int(parts.first[now.started]) + min(waiting * rules.parts, rules.cores) - len(parts.node)
    return arrays.with_state(
        runs=with_more_runs(runs, more),
        parts=PartArrays(longer(parts.first, more), longer(parts.node, more_parts), longer(parts.borrow, more_parts)),
        at_shadow=state.at_shadow._replace(ends=longer(state.at_shadow.ends, more)),
    )._replace(outages=outages._replace(lost=longer(outages.lost, more)))


SharedKind = Literal[
    "queues",
    "reservations",
    "backfill at intervals",
    "heads of partitions",
    "windows",
    "from a state",
]
"""Kinds of kernels: queues with at most one reservation, conservative reservations, backfilling at intervals, queues with a
head for each of several partitions or with limits of concurrent use, queues with windows, and replays from a state. In the
first two, nodes may fail."""

RARE: tuple[SharedKind, ...] = ("backfill at intervals", "heads of partitions", "windows")


def _kind_of(scheduler: ListRule, windows: bool, heads: bool) -> SharedKind:
    """Return the kind of kernel that a run under a list scheduler needs, given whether it has windows or several heads."""
    rule = rule_of(scheduler.backfill)
    reserves = rule is not None and rule.reserves == "all"
    if rule is not None and rule.times is not None:
        return "backfill at intervals"
    if heads:
        return "heads of partitions"
    if windows:
        return "windows"
    return "reservations" if reserves else "queues"


def load_for(spec: RunSpec) -> None:
    """Load the kernels that may be needed by runs with the machine and scheduler of a supported run."""
    rule = rule_of(spec.scheduler)
    assert rule is not None
    load_kind(_kind_of(rule, bool(spec.machine.windows), False))
    backfill = rule_of(rule.backfill)
    several = len(spec.machine.partitions) > 1 and backfill is not None and backfill.heads == "partition"
    if several or (limits_use(spec.machine) and backfill is not None and backfill.times is None):
        load_kind("heads of partitions")
    if spec.initial is not None:
        load_kind("from a state")


def load() -> None:
    """Load the kernels that most runs need; compile those not cached on this computer, and log that."""
    for kind in get_args(SharedKind):
        if kind not in RARE:
            load_kind(kind)


def load_rare() -> None:
    """Load the other kernels, as `load` does. A run loads one of them only when it needs it."""
    for kind in RARE:
        load_kind(kind)


@cache
def load_kind(kind: str) -> None:
    """Load a kernel; if it is not cached on this computer, compile it and log that."""
    wait_for_background(FOLDER, kind)
    backfill: BackfillPolicy = Conservative() if "reservations" in kind else Easy()
    if kind == "backfill at intervals":
        backfill = SlurmBackfill()
    scheduler = ListScheduler(backfill=backfill, placement=FirstNodes())
    second, ones = np.full(2, SECOND, dtype=np.int64), np.ones(2, dtype=np.int64)
    two = RunSpec(Workload.of(second, second, requests={"cores": ones}), _nodes(1), scheduler, Ideal(), Ideal())
    if kind == "heads of partitions":
        two = replace(two, workload=replace(two.workload, attributes={"partition": np.array(["", "first"])}))
        two = replace(two, machine=replace(_nodes(2), node_sets={"first": np.array([True, False])}))
    if kind == "from a state":
        two = replace(two, initial=Initial(0, []))
    if kind == "windows":
        window = ReservedWindow("upkeep", SECOND, 2 * SECOND, np.ones(1, dtype=np.bool_))
        two = replace(two, machine=replace(two.machine, windows=(window,)))
    rule = scheduler.rule()
    assert rule is not None
    compiled_engine.load(FOLDER, kind, f"shared nodes, {kind}", COMPILE_S, lambda: _replay(two, rule, _compiled))


def _compiled(_: str, arrays: tuple[object, ...]) -> int:
    """Call the machine code of a kernel of any kind."""
    from poolwise.kernels.shared_nodes.replay import replay

    return int(replay(*arrays))  # type: ignore[arg-type]  # `arrays` are `SharedArrays`


def _nodes(count: int) -> Machine:
    ones = np.ones(count, dtype=np.int64)
    names = tuple(f"node{k}" for k in range(count))
    return Machine(
        "nodes",
        names,
        ones * Kind.NODE,
        ("node",) * count,
        ones * 0,
        np.zeros((count, 2), np.int64),
        -ones,
        ("cores",),
        ones[:, None],
    )
