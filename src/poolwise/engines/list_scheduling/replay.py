"""Compiled engine of list scheduling: rigid jobs on racks with memory pools, with the result of the reference engine.

`unsupported` lists what the engine cannot run. The engine converts the run to arrays (`columns`), replays them in the kernel,
and converts the record to a `Schedule` that equals that of the reference engine byte for byte.
"""

from __future__ import annotations

import math
import time

from poolwise.engines.compiled_engine import RunSpec, no_engine_for, unsupported_by_all
from poolwise.engines.compiling import SHORT, InterimKernel, compile_in_background
from poolwise.engines.list_columns import IN_KERNELS, has_several_heads
from poolwise.engines.list_replay import run_to_end
from poolwise.engines.list_scheduling.capacity_changes import why_unsupported
from poolwise.engines.list_scheduling.columns import ListArrays, RunColumns, Trees
from poolwise.engines.list_scheduling.initial import RackHoldings, resume_racks, why_not_initial
from poolwise.engines.list_scheduling.loading import FOLDER, kinds_of, load_kernels
from poolwise.engines.list_scheduling.mixed_nodes import is_mixed
from poolwise.engines.progress import Obstacle, ProgressListener
from poolwise.engines.recalculations import Recalculations
from poolwise.engines.run_record import longer, schedule_of, with_more_rows, with_more_runs
from poolwise.errors import InputError
from poolwise.interfaces import ListRule, PerformanceModel
from poolwise.interfaces.performance import fixed_slowdown
from poolwise.interfaces.user_class import rule_of
from poolwise.kernels.common.index import empty_tree, lay_out
from poolwise.kernels.common.state import DEEP, EMPTY, FORK, INSTANTS, RENEW_KEYS, SHALLOW
from poolwise.model import Machine, Schedule, Workload
from poolwise.model.rules import PassTimes, RackRule


def unsupported(spec: RunSpec, mixed: bool = False) -> Obstacle | None:
    """Return why the kernels of identical or mixed nodes do not support a run; None if they do.

    The scheduler, its backfill, its placement and the models must state their rules (`rule_of`,
    `fixed_slowdown`); any queue order is supported.
    """
    rule = rule_of(spec.scheduler)
    if rule is None:
        return no_engine_for(spec.scheduler)
    if why := unsupported_by_all(spec, changes=True, restricted=True):
        return why
    for name, part, stated in (
        ("backfill", rule.backfill, rule_of(rule.backfill) is not None),
        ("placement", rule.placement, isinstance(rule_of(rule.placement), RackRule)),
    ):
        if not stated:
            return Obstacle(
                f"{name} {type(part).__name__} has no kernel", f"supported: classes that state a rule, such as {KNOWN[name]}"
            )
    backfill = rule_of(rule.backfill)
    if spec.disturbances and backfill is not None and has_several_heads(backfill, spec.machine, spec.workload.table):
        what = "jobs of several partitions have several heads, and the capacity changes during the run"
        return Obstacle(what, 'use a backfill with heads = "machine"')
    if backfill is not None and backfill.times is not None and backfill.times.busy_nodes:
        return Obstacle("no kernel supports reservations on nodes in use for whole nodes", "run it on shared nodes")
    if backfill is not None and backfill.times is not None and (limit := _unsupported_limit(backfill.times)) is not None:
        return limit
    if mixed and backfill is not None and backfill.times is not None:
        what = "no kernel supports backfilling at intervals on mixed nodes"
        return Obstacle(what, "supported: nodes of one size without node sets")
    backfill_order = rule.backfill.backfill_order
    if backfill_order is not None and backfill_order.kind not in IN_KERNELS:
        return Obstacle(
            f"backfill order {type(backfill_order).__name__} has no kernel", "supported: orders of a kind other than opaque"
        )
    if why := _unsupported_machine(spec.machine) or _unsupported_workload(spec.workload):
        return why
    if is_mixed(spec.machine, spec.workload.table) != mixed:
        return no_engine_for(spec.scheduler)  # the other kernels may support it
    if spec.disturbances and (problem := why_unsupported(spec, rule)):
        return Obstacle(problem, "supported without changes of capacity")
    for model in (spec.model,) if spec.estimate == spec.model else (spec.model, spec.estimate):
        if not _is_supported_model(model, spec):
            unknown = f"performance model {type(model).__name__} has no kernel"
            return Obstacle(unknown, f"supported: classes that state fixed slowdowns, such as {KNOWN['model']}")
    if spec.initial is not None:
        placed = rule_of(rule.placement)
        assert isinstance(placed, RackRule)
        return why_not_initial(spec.workload, spec.machine, spec.initial, placed.pools)
    return None


KNOWN = {
    "backfill": "none, easy, easy_no_extra, easy_nodes_only, conservative and slurm",
    "placement": "racks in both scopes",
    "model": "ideal and remote_memory with latencies of 0 or more",
}
"""Built-in policies and models that kernels support."""


def _unsupported_limit(times: PassTimes) -> Obstacle | None:
    """Return the unsupported limit on the jobs that a backfill pass tests or reserves nodes for; None if there is none."""
    if times.groups:
        what = f"a limit on the jobs of a {' and '.join(times.groups[0][0])} that a backfill pass tests"
        names = "bf_max_job_user, bf_max_job_part and bf_max_job_assoc"
    elif times.least_priority > -math.inf:
        what, names = "a minimum priority of jobs with reservations", "bf_min_prio_reserve"
    elif times.reserved_jobs:
        what, names = "a limit on reservations per partition", "bf_job_part_count_reserve"
    else:
        return None
    return Obstacle(f"{what} has no kernel on whole nodes", f"supported on shared nodes, and without {names}")


def _unsupported_machine(machine: Machine) -> Obstacle | None:
    """Return why a machine does not consist of racks of whole nodes; None if it does."""
    try:
        layout = machine.racks
    except InputError as problem:
        return Obstacle(problem.message, problem.remedy or "supported: racks of whole nodes")
    if not len(layout.nodes):
        return Obstacle("the machine has no whole nodes", "add whole nodes")
    return None


def _is_supported_model(model: PerformanceModel, spec: RunSpec) -> bool:
    """Return whether the kernels support a model; on nodes of different sizes, only slowdowns per part, or none."""
    table, machine = spec.workload.table, spec.machine
    slowdown = fixed_slowdown(model, table, slice(0, 0), machine)
    if slowdown is None or slowdown.per_part or machine.racks.uniform:
        return slowdown is not None
    slowdown = fixed_slowdown(model, table, slice(None), machine)
    return slowdown is not None and not (slowdown.near.any() or slowdown.far.any())


def _unsupported_workload(workload: Workload) -> Obstacle | None:
    """Return the feature of the workload that the kernels do not support; None if there is none."""
    if not len(workload):
        return Obstacle("the workload is empty", "add jobs")
    if float((workload.nodes * workload.tasks).max()) * float(workload.memory.max()) > 2.0**52:
        problem = "a job's total memory exceeds the range of whole MiB in float64"
        return Obstacle(problem, "correct the rows that request more than any machine has")
    return None


def replay(spec: RunSpec) -> tuple[Schedule, float]:
    """Replay a supported run; return the schedule, and the elapsed seconds without compiling and loading."""
    rule = rule_of(spec.scheduler)
    assert rule is not None
    kernel = rack_kernel(spec, rule)
    begun = time.perf_counter()
    columns = RunColumns(spec, rule)
    arrays = columns.arrays()
    if spec.initial is not None:
        held = RackHoldings.of(spec.machine, spec.initial)
        assert held is not None
        resume_racks(spec.initial, held, spec.workload, arrays.state)
    if spec.watch is not None:
        spec.watch.begin(None)
    arrays, _ = replay_racks(columns, arrays, None, kernel, spec.watch)
    state, changes, after, lost = arrays.state, arrays.changes, None, None
    rejected = state.runs.rejected[: state.now.rejected]
    if changes is not None and arrays.changing:
        after, lost = changes.rejected_after[: len(rejected)], changes.lost
    schedule = schedule_of(columns, state, columns.refusals(rejected, after), lost)
    return schedule, time.perf_counter() - begun - kernel.loading_s


def rack_kernel(spec: RunSpec, rule: ListRule, *, waits: bool = False) -> InterimKernel:
    """Return the kernel of a run; if calls wait for compilation, start compiling all kinds of kernels that the run may need.

    Calls wait if `waits` is true, or if the run has many jobs.
    """
    from poolwise.kernels.list_scheduling.replay import replay

    jobs = SHORT + 1 if waits else len(spec.workload)
    kinds = kinds_of(rule, spec.machine, spec.workload.table, bool(spec.disturbances))
    if jobs > SHORT:
        for kind in kinds[1:]:
            compile_in_background(FOLDER, kind, load_kernels)
    return InterimKernel(FOLDER, load_kernels, replay, jobs)


def replay_racks(
    columns: RunColumns, arrays: ListArrays, trees: Trees | None, kernel: InterimKernel, watch: ProgressListener | None = None
) -> tuple[ListArrays, Trees | None]:
    """Call a kernel until the replay ends, and handle its requests.

    Returns the arrays, some of which may have grown, and the trees, which are created when first needed.
    """
    first, *deep = kinds_of(columns.scheduler, columns.machine, columns.workload.table, arrays.changing)

    def call(arrays: ListArrays) -> int:
        return kernel(deep[0] if deep and arrays.tree is not None else first, arrays)

    def serve(request: int, arrays: ListArrays, recalculations: Recalculations) -> ListArrays:
        nonlocal trees
        state = arrays.state
        if request == RENEW_KEYS:
            recalculations.recalculate(state)
            state.now.first = -1
            if arrays.intervals is not None:
                arrays.intervals.status.current = 0
            state.now.indexed = 0
            if trees is not None:
                clear_trees(trees)
            return arrays
        if request == INSTANTS:
            if arrays.intervals is not None:
                arrays.intervals.status.holds_until = 0
                more = columns.segments(2 * int(state.now.rows))
                return arrays._replace(intervals=arrays.intervals._replace(segments=more))
            state.now.ranked = state.now.profile_valid = 0
            return arrays._replace(profile=columns.profile(2 * int(state.now.rows)))
        if request == DEEP:
            if trees is None:
                demands = state.jobs.nodes, state.jobs.remote, state.jobs.length
                trees = lay_out(*demands, state.jobs.able), empty_tree(*demands)
            return arrays.with_trees(trees[0], trees[int(state.rules.separate_order)])
        if request == SHALLOW:
            return arrays.without_trees()
        return _with_more_runs(arrays)

    return run_to_end(columns, arrays, call, serve, watch), trees


def _with_more_runs(arrays: ListArrays) -> ListArrays:
    """Return the arrays with more rows and, if runs may be lost, with space for the runs that the waiting jobs may start."""
    runs, now, changes = arrays.state.runs, arrays.state.now, arrays.changes
    runs = with_more_rows(runs, int(now.started), int(now.rows))
    if changes is not None and arrays.changing:
        more = int(now.started + now.waiting) - len(changes.lost)
        runs, changes = with_more_runs(runs, more), changes._replace(lost=longer(changes.lost, more))
    return arrays.with_state(runs=runs)._replace(changes=changes)


def clear_trees(trees: Trees) -> None:
    """Remove all jobs from the trees."""
    for tree in trees:
        tree.node[1, FORK], tree.forks[:] = EMPTY, 0
