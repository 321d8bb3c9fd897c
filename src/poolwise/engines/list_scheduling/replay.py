"""The compiled family of list scheduling: rigid jobs on racks with memory pools, with the reference's result.

`unsupported` says what it cannot run; it turns the study into arrays (`columns`), lets the kernels replay them, and turns the
record back into a `Schedule`, byte for byte that of `engines.simulate` with the reference engine.
"""

from __future__ import annotations

import time

from poolwise.arrays import IntArray
from poolwise.engines.compiled_engine import Parts, foreign, interrupted
from poolwise.engines.compiling import SHORT, InterimKernel, compile_beside
from poolwise.engines.list_columns import IN_KERNELS
from poolwise.engines.list_scheduling.capacity_changes import why_not_changing
from poolwise.engines.list_scheduling.columns import ListArrays, RunColumns, Trees
from poolwise.engines.list_scheduling.initial import RackHoldings, continue_racks, unlike
from poolwise.engines.list_scheduling.loading import FOLDER, kinds_of, load
from poolwise.engines.list_scheduling.priority_callback import Asker
from poolwise.engines.progress import Obstacle, Stride, Watch
from poolwise.engines.run_record import larger_columns, longer, schedule_of
from poolwise.errors import InputError
from poolwise.interfaces import ListRule, fixed_slowdown, rule_of
from poolwise.model import Machine, Schedule, Workload
from poolwise.platforms.simulated import too_late


def unsupported(parts: Parts) -> Obstacle | None:
    """Say why there is no kernel for a run; None if there is one.

    The scheduler, its backfill, its placement and the models must state what they do (`interfaces.rule_of`,
    `interfaces.fixed_slowdown`); any queue order will do.
    """
    rule = rule_of(parts.scheduler)
    if rule is None:
        return foreign(parts.scheduler)
    if why := interrupted(parts, changes=True):
        return why
    for name, part in (("backfill", rule.backfill), ("placement", rule.placement)):
        if rule_of(part) is None:
            return Obstacle(
                f"{name} {type(part).__name__} has no kernel", f"one whose class states a rule, as {KNOWN[name]} do, has"
            )
    beside = rule.backfill.own_order
    if beside is not None and beside.kind not in IN_KERNELS:
        return Obstacle(f"order {type(beside).__name__} beside the head has no kernel", "one that keeps what it promises has")
    if why := _no_racks(parts.machine) or _unsuitable(parts.workload):
        return why
    if parts.disturbances and (problem := why_not_changing(parts, rule)):
        return Obstacle(problem, "without changes of capacity it runs in kernels")
    for model in (parts.truth,) if parts.estimate == parts.truth else (parts.truth, parts.estimate):
        if fixed_slowdown(model, parts.workload.table, slice(0, 0), parts.machine) is None:
            unknown = f"performance model {type(model).__name__} has no kernel"
            return Obstacle(unknown, f"one whose class states fixed slowdowns, as {KNOWN['model']} do, has")
    if parts.initial is not None:
        placed = rule_of(rule.placement)
        assert placed is not None
        return unlike(parts.machine, parts.workload, parts.initial, placed.pools)
    return None


KNOWN = {
    "backfill": "none, easy, easy_no_extra, easy_nodes_only and conservative",
    "placement": "racks in both scopes",
    "model": "ideal and remote_memory with latencies of 0 or more",
}
"""What has kernels by itself."""


def _no_racks(machine: Machine) -> Obstacle | None:
    """Say why a machine is not one of racks; None if it is."""
    try:
        layout = machine.racks
    except InputError as problem:
        return Obstacle(problem.message, problem.remedy or "kernels know racks of whole nodes")
    return None if len(layout.nodes) else Obstacle("the machine has no whole nodes", "give it some")


def _unsuitable(workload: Workload) -> Obstacle | None:
    """Say what in the workload the kernels cannot count with; None if nothing."""
    if not len(workload):
        return Obstacle("the workload is empty", "there is nothing to run")
    if float((workload.nodes * workload.tasks).max()) * float(workload.memory.max()) > 2.0**52:
        problem = "a job's memory leaves the range in which float64 counts whole MiB"
        return Obstacle(problem, "correct the rows that ask for more than any machine has")
    return None


def replay(parts: Parts) -> tuple[Schedule, float]:
    """Run what `unsupported` has no objection to; returns the schedule and the seconds without compiling or loading."""
    from poolwise.kernels.list_scheduling import state

    rule = rule_of(parts.scheduler)
    assert rule is not None
    kernel = rack_kernel(rule, len(parts.workload), changing=bool(parts.disturbances))
    begun = time.perf_counter()
    columns = RunColumns(parts, rule)
    arrays = columns.arrays()
    if parts.initial is not None:
        held = RackHoldings.of(parts.machine, parts.initial)
        assert held is not None
        continue_racks(parts.initial, held, parts.workload, arrays)
    if parts.watch is not None:
        parts.watch.begin(None)
    arrays, _ = play_racks(columns, arrays, None, kernel, parts.watch)
    now, runs, changes = arrays.now, arrays.runs, arrays.changes
    started, count, after, lost = int(now[state.STARTED]), int(now[state.REJECTED]), None, None
    if changes is not None:
        after, lost = changes.after[:count], changes.lost[:started]
    rejected = columns.refusals(runs.rejected[:count], after)
    schedule = schedule_of(columns, runs, arrays.queue.where, started, int(now[state.PASSES]), rejected, lost)
    return schedule, time.perf_counter() - begun - kernel.loading_s


def rack_kernel(rule: ListRule, jobs: int, *, changing: bool = False) -> InterimKernel:
    """Return the kernel of a run; where calls of it will wait until it is compiled, all kinds are compiled at once."""
    from poolwise.kernels.list_scheduling.replay import replay

    kinds = kinds_of(rule, changing)
    if jobs > SHORT:
        for kind in kinds[1:]:
            compile_beside(FOLDER, kind, load)
    return InterimKernel(FOLDER, load, replay, jobs)


def play_racks(
    columns: RunColumns, arrays: ListArrays, trees: Trees | None, kernel: InterimKernel, watch: Watch | None = None
) -> tuple[ListArrays, Trees | None]:
    """Let a kernel run until nothing is left to do, and do what it asks for.

    Returns the arrays, some of which may have grown, and the trees, which are laid out when they are first needed.
    """
    from poolwise.kernels.list_scheduling import state
    from poolwise.kernels.list_scheduling.index import lay_out, plant

    first, *deep = kinds_of(columns.scheduler, arrays.changes is not None)
    asker, stride = Asker(columns), Stride(watch)
    arrays.now[state.PAUSE] = stride.next(0.0, 0)
    while (wanted := kernel(deep[0] if deep and arrays.tree is not None else first, arrays)) != state.DONE:
        if wanted == state.ASK:
            asker.answer(arrays.order.key, arrays.queue, arrays.runs, arrays.now)
        elif wanted == state.RENEW:
            asker.renew(arrays.order.key, arrays.queue, arrays.runs, arrays.now)
            arrays.now[state.INDEXED] = 0
            if trees is not None:
                forget(trees)
        elif wanted == state.PAUSED:
            arrays.now[state.PAUSE] = stride.next(_share(arrays.now, len(columns.workload)), int(arrays.now[state.PASSES]))
        elif wanted == state.INSTANTS:
            arrays = arrays._replace(profile=columns.profile(2 * int(arrays.now[state.ROWS])))
            arrays.now[[state.RANKED, state.STANDING]] = 0
        elif wanted == state.LATE:
            raise too_late()
        elif wanted == state.DEEP:
            if trees is None:
                tree = lay_out(arrays.jobs.nodes, arrays.jobs.remote, arrays.jobs.length, arrays.jobs.able)
                trees = tree, plant(len(tree.path))
            arrays = arrays._replace(tree=trees[0], heads=trees[int(arrays.rules.apart)])
        elif wanted == state.SHALLOW:
            arrays = arrays._replace(tree=None, heads=None)
        else:
            larger = larger_columns(arrays.runs, int(arrays.now[state.STARTED]), int(arrays.now[state.ROWS]))
            arrays = _with_more_runs(arrays._replace(runs=arrays.runs._replace(**larger)))
    return arrays, trees


def _with_more_runs(arrays: ListArrays) -> ListArrays:
    """The same arrays; where runs may be lost, with room for as many as the waiting jobs may begin."""
    from poolwise.kernels.list_scheduling.state import STARTED, WAITING

    runs, changes = arrays.runs, arrays.changes
    if changes is None:
        return arrays
    more = int(arrays.now[STARTED] + arrays.now[WAITING]) - len(changes.lost)
    columns = {name: longer(getattr(runs, name), more) for name in ("job", "start", "end", "expected", "offset")}
    return arrays._replace(runs=runs._replace(**columns), changes=changes._replace(lost=longer(changes.lost, more)))


def forget(trees: Trees) -> None:
    """Empty the trees over the waiting jobs."""
    from poolwise.kernels.list_scheduling import state

    for tree in trees:
        tree.node[1, state.FORK], tree.forks[:] = state.EMPTY, 0


def _share(now: IntArray, jobs: int) -> float:
    """Share of the events, arrivals and ends, that are over; a rejected job ends at once."""
    from poolwise.kernels.list_scheduling import state

    return float(now[state.NEXT] + now[state.STARTED] - now[state.RUNNING] + now[state.REJECTED]) / (2 * jobs)
