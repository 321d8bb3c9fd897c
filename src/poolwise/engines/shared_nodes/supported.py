"""What kernels of list scheduling on shared nodes cannot run, and why."""

from __future__ import annotations

import numpy as np

from poolwise.engines.compiled_engine import Parts, foreign, interrupted
from poolwise.engines.list_columns import IN_KERNELS, stretched
from poolwise.engines.progress import UNLIKE, Obstacle
from poolwise.engines.shared_nodes.columns import PLACEMENTS, SharedColumns
from poolwise.engines.shared_nodes.initial import NodeHoldings
from poolwise.engines.shared_nodes.outages import node_changes
from poolwise.engines.shared_nodes.windows import MOST_GROUPS, window_groups
from poolwise.errors import InputError
from poolwise.interfaces import ListRule, PerformanceModel, fixed_slowdown, rule_of
from poolwise.model import Workload
from poolwise.model.eligibility import has_tiers
from poolwise.policies.admission.machine_limits import barred
from poolwise.policies.placement.nodes.layout import NodeLayout, node_layout

_MOST_DEVICES = 62  # of a type in a node: a bit each
_MOST_KINDS = 2**23  # of jobs, with all sets of groups that may be shut to them: a gigabyte


def unsupported(parts: Parts) -> Obstacle | None:
    """Say why there is no kernel for a run; None if there is one.

    A subclass of a placement is not taken for it: it may do something else. Any queue order will do, and any backfill,
    scheduler and model that states what it does. Raises InputError for jobs that name unknown sets of nodes.
    """
    scheduler = rule_of(parts.scheduler)
    if scheduler is None or type(scheduler.placement) not in PLACEMENTS:
        return foreign(parts.scheduler)
    if obstacle := interrupted(parts, follows=True):
        return obstacle
    why = _why(parts, scheduler)
    if why:
        return Obstacle(why, "jobs of one task have one, but for conservative backfilling beside devices or pools")
    if has_tiers(parts.machine) and (scheduler.order.kind != "static" or scheduler.warm_up):
        return Obstacle("jobs are of different tiers", "in a static order and without a warm-up it runs in kernels")
    if parts.disturbances and (why := _unlike_outages(parts) or _not_beside("nodes fail", parts, scheduler)):
        return Obstacle(why, "without disturbances it runs in kernels")
    if parts.machine.windows and (
        why := _unlike_windows(parts, scheduler) or _not_beside("windows are kept free", parts, scheduler)
    ):
        return Obstacle(why, "without windows it runs in kernels")
    if parts.initial is not None and NodeHoldings.of(SharedColumns(parts, scheduler).arrays(False), parts.initial) is None:
        return UNLIKE
    return None


def _why(parts: Parts, scheduler: ListRule) -> str:
    """Say why there is no kernel for jobs on shared nodes; empty if there is one."""
    rule = rule_of(scheduler.backfill)
    if rule is None or not rule.counts_pools:
        return f"backfill {scheduler.backfill!r} has no kernel on shared nodes"
    if scheduler.backfill.own_order is not None:
        return "an order of its own for backfilling has no kernel on shared nodes"
    if rule.keeps:
        return "reservations that are kept have no kernel on shared nodes"
    for model in (parts.truth, parts.estimate):
        if not _known(model, parts):
            return f"performance model {type(model).__name__} has no kernel on shared nodes"
    try:
        layout = node_layout(parts.machine)
    except InputError as problem:
        return problem.message
    return _unsuitable_machine(layout, rule.reserves == "everyone") or _unsuitable(parts.workload, layout)


def _unlike_outages(parts: Parts) -> str:
    """Say what happens to a machine other than nodes that fail and are repaired; empty if nothing."""
    if node_changes(parts.machine, node_layout(parts.machine).nodes, parts.disturbances) is None:
        return "capacity changes during the run, other than by nodes that fail and are repaired"
    if len(barred(parts.machine, parts.workload.table)):
        return "nodes fail, and a job is beyond limits"
    return "nodes fail on a machine with windows" if parts.machine.windows else ""


def _unlike_windows(parts: Parts, scheduler: ListRule) -> str:
    """Say what keeps kernels from planning around a machine's windows; empty if nothing."""
    layout, requested = node_layout(parts.machine), parts.workload.requested
    groups, _ = window_groups(parts.machine, layout.nodes)
    if len(groups) > MOST_GROUPS:
        return f"windows are of more than {MOST_GROUPS} groups of nodes"
    if len(parts.workload) << len(groups) > _MOST_KINDS:
        return f"windows are of {len(groups)} groups of nodes, for more than {_MOST_KINDS >> len(groups):,} jobs"
    home = parts.machine.home
    if any(bool((window.owners & (home >= 0) & ~window.owners[home]).any()) for window in parts.machine.windows):
        return "windows are of devices without their nodes"
    if bool((layout.pool >= 0).any()):
        return "windows are kept free on nodes with memory pools"
    rule = rule_of(scheduler.backfill)
    if rule is None or rule.reserves == "everyone":
        return "windows are kept free under conservative backfilling"
    if bool((stretched(requested, np.zeros(len(requested))) != requested).any()):
        return "windows are kept free, and float64 does not hold a time that is requested"
    return ""


def _not_beside(what: str, parts: Parts, scheduler: ListRule) -> str:
    """Say what kernels cannot do on nodes that fail or beside windows; empty if nothing."""
    if scheduler.order.kind not in IN_KERNELS:
        return f"{what}, and order {type(scheduler.order).__name__} is asked at each pass"
    if scheduler.warm_up or parts.pass_per_event or parts.initial is not None:
        return f"{what} beside a warm-up, a pass after each event, or a state that the run goes on from"
    return ""


def _known(model: PerformanceModel, parts: Parts) -> bool:
    """Whether the kernels can count with a model: it slows down parts by what they lack, or nothing at all."""
    found = fixed_slowdown(model, parts.workload.table, slice(None), parts.machine)
    return found is not None and (found.per_part or not (found.near.any() or found.far.any()))


def _unsuitable_machine(layout: NodeLayout, conservative: bool) -> str:
    """Say what of a machine the kernels cannot count with; empty if nothing."""
    if conservative and (layout.inside or bool((layout.pool >= 0).any())):
        return "conservative backfilling on nodes with devices or memory pools has no kernel"
    if max((owners.shape[1] for owners in layout.inside.values()), default=0) > _MOST_DEVICES:
        return f"a node has more than {_MOST_DEVICES} devices of a type"
    return ""


def _unsuitable(workload: Workload, layout: NodeLayout) -> str:
    """Say what in the workload the kernels cannot count with; empty if nothing."""
    if not len(workload):
        return "the workload is empty"
    if int(workload.tasks.max()) > 1:
        return "a job has several tasks"
    if int(workload.request("cores").min()) < 1:
        return "a job asks for no cores"
    for name in workload.requests:
        if name not in layout.known and bool(workload.request(name).any()):
            return f"the nodes have no {name}"  # as the reference engine says
    return ""
