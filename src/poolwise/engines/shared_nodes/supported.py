"""Runs that the kernels of list scheduling on shared nodes do not support, and why."""

from __future__ import annotations

import math

import numpy as np

from poolwise.engines.compiled_engine import RunSpec, limit_of_use, no_engine_for, unsupported_by_all
from poolwise.engines.list_columns import IN_KERNELS, has_several_heads, stretched
from poolwise.engines.progress import MISMATCH, Obstacle
from poolwise.engines.shared_nodes.columns import SharedColumns
from poolwise.engines.shared_nodes.initial import NodeHoldings
from poolwise.engines.shared_nodes.outages import node_changes
from poolwise.engines.shared_nodes.windows import MAX_GROUPS, window_groups
from poolwise.errors import InputError
from poolwise.interfaces import ListRule
from poolwise.interfaces.performance import fixed_slowdown
from poolwise.interfaces.user_class import rule_of
from poolwise.model import Workload
from poolwise.model.eligibility import has_tiers, partition_owners
from poolwise.model.rules import NodeRule
from poolwise.policies.admission.machine_limits import barred
from poolwise.policies.placement.nodes.gpu_weights import GPU
from poolwise.policies.placement.nodes.layout import NodeLayout, node_layout

_MAX_DEVICES = 62  # of a type in a node, since they are bits of an int64
MAX_HEADS = 64
"""Maximum number of node sets of partitions, each of which may have a head."""
_MAX_KINDS = 2**23  # of jobs, including all sets of closed groups: a gigabyte


def unsupported(spec: RunSpec) -> Obstacle | None:
    """Return why the kernels do not support a run; None if they do.

    Any queue order is supported, and any backfill, placement, scheduler and model that states its rule.

    Raises InputError for jobs that name unknown sets of nodes.
    """
    scheduler = rule_of(spec.scheduler)
    if scheduler is None or not isinstance(rule_of(scheduler.placement), NodeRule):
        return no_engine_for(spec.scheduler)
    if obstacle := unsupported_by_all(spec, follows=True, counts=True):
        return obstacle
    try:
        layout = node_layout(spec.machine)
    except InputError as problem:
        return Obstacle(problem.message, problem.remedy or "the reference engine runs it")
    for obstacle in (
        _backfill_obstacle(spec, scheduler, layout),
        _model_obstacle(spec),
        _workload_obstacle(spec.workload, layout),
        _placement_obstacle(spec.workload, scheduler, layout),
    ):
        if obstacle is not None:
            return obstacle
    if has_tiers(spec.machine) and scheduler.order.kind in ("linear", "cubic", "affine"):
        return Obstacle(
            "partitions have different priority tiers", "supported with an order that is static or called at each pass"
        )
    if (limit := limit_of_use(spec)) is not None and (why := _unsupported_limits(spec, scheduler)):
        return Obstacle(f"{limit.why}, and {why}", limit.remedy)
    if why := _unsupported_heads(spec, scheduler):
        return Obstacle(f"jobs of several partitions have several heads, and {why}", 'use a backfill with heads = "machine"')
    if spec.disturbances and (why := _unsupported_outages(spec) or _unsupported_with("nodes fail", spec, scheduler)):
        return Obstacle(why, "supported without disturbances")
    if spec.machine.windows and (
        why := _unsupported_windows(spec, scheduler) or _unsupported_with("the machine has reserved windows", spec, scheduler)
    ):
        return Obstacle(why, "supported without windows")
    if spec.initial is not None and NodeHoldings.of(SharedColumns(spec, scheduler).arrays(False).state, spec.initial) is None:
        return MISMATCH
    return None


def _backfill_obstacle(spec: RunSpec, scheduler: ListRule, layout: NodeLayout) -> Obstacle | None:
    """Return why the kernels do not support a backfill, at all or on some nodes; None if they do."""
    rule, pools = rule_of(scheduler.backfill), bool((layout.pool >= 0).any())
    if rule is None or not rule.counts_pools:
        return Obstacle(
            f"backfill {scheduler.backfill!r} has no kernel on shared nodes",
            "supported: none, easy, easy_no_extra, conservative and slurm",
        )
    if scheduler.backfill.backfill_order is not None:
        return Obstacle("an order of the backfill has no kernel on shared nodes", "supported without one")
    if rule.keeps:
        return Obstacle("held reservations have no kernel on shared nodes", "supported with keep_reservations = false")
    if rule.times is not None and rule.times.least_priority > -math.inf and has_tiers(spec.machine):
        return Obstacle(
            "a minimum priority of jobs with reservations, and partitions of different priority tiers",
            "supported without bf_min_prio_reserve, or with partitions of one tier",
        )
    if rule.times is not None and pools:
        return Obstacle(
            "backfilling at intervals on nodes with memory pools has no kernel",
            "supported without memory pools, and with pools under easy",
        )
    if rule.reserves == "all" and (layout.inside or pools):
        return Obstacle(
            "conservative backfilling on nodes with devices or memory pools has no kernel",
            "supported: easy, and slurm with devices",
        )
    if max((owners.shape[1] for owners in layout.inside.values()), default=0) > _MAX_DEVICES:
        return Obstacle(
            f"a node has more than {_MAX_DEVICES} devices of a type", f"supported with up to {_MAX_DEVICES} devices of a type"
        )
    return None


def _model_obstacle(spec: RunSpec) -> Obstacle | None:
    """Return why the kernels do not support the performance models; None if they do.

    They support models that slow down parts by the memory that they borrow, or nothing at all.
    """
    for model in (spec.model, spec.estimate):
        slowdown = fixed_slowdown(model, spec.workload.table, slice(None), spec.machine)
        if slowdown is None or not (slowdown.per_part or not (slowdown.near.any() or slowdown.far.any())):
            return Obstacle(
                f"performance model {type(model).__name__} has no kernel on shared nodes",
                "supported: models whose slowdown follows from the memory that a job borrows",
            )
    return None


def _workload_obstacle(workload: Workload, layout: NodeLayout) -> Obstacle | None:
    """Return the feature of the workload that the kernels do not support; None if there is none."""
    if not len(workload):
        return Obstacle("the workload is empty", "supported with jobs")
    if int(workload.tasks.max()) > 1:
        return Obstacle("a job has several tasks", "supported: jobs of one task")
    if int(workload.request("cores").min()) < 1:
        return Obstacle("a job requests no cores", "supported if every job requests cores")
    for name in workload.requests:
        if name not in layout.known and bool(workload.request(name).any()):
            return Obstacle(f"the nodes have no {name}", f"add {name} to the nodes")  # the message of the reference engine
    return None


def _placement_obstacle(workload: Workload, scheduler: ListRule, layout: NodeLayout) -> Obstacle | None:
    """Return why the kernels do not support a placement on some nodes, with a backfill or for some jobs; None if they do."""
    rule, placed, name = rule_of(scheduler.backfill), rule_of(scheduler.placement), f"placement {scheduler.placement!r}"
    assert isinstance(placed, NodeRule)
    times = None if rule is None else rule.times
    if layout.weight.any() and placed.prefers not in ("first", "consecutive"):
        return Obstacle(f"{name} on nodes of different weights has no kernel", "supported: first_fit and topology_none")
    if placed.prefers in ("tree", "consecutive") and bool((layout.pool >= 0).any()):
        return Obstacle(
            f"{name} on nodes with memory pools has no kernel", "supported: first_fit, best_fit, worst_fit and packed"
        )
    if times is not None and times.busy_nodes and placed.prefers in ("packed", "tree"):
        return Obstacle(f"{name} with reservations on nodes in use has no kernel", "supported without bf_busy_nodes")
    if times is not None and placed.weighs_gpus and bool(workload.request(GPU).any()):
        return Obstacle(f"{name} with jobs that request GPUs has no kernel", "supported with gpu_weights = false")
    return None


def _unsupported_heads(spec: RunSpec, scheduler: ListRule) -> str:
    """Return the feature that the kernels do not support together with several heads.

    The result is empty if there is no such feature, or only one head.
    """
    rule = rule_of(scheduler.backfill)
    if rule is None or not has_several_heads(rule, spec.machine, spec.workload.table):
        return ""
    if why := _unsupported_with_heads(spec):
        return why
    if len(partition_owners(spec.machine, spec.workload.table)) > MAX_HEADS:
        return f"there are more than {MAX_HEADS} sets of nodes"
    return ""


def _unsupported_limits(spec: RunSpec, scheduler: ListRule) -> str:
    """Return why the kernels cannot apply limits of concurrent use; empty if they can."""
    rule = rule_of(scheduler.backfill)
    if rule is None or rule.reserves == "all":
        return "every job has a reservation"
    if scheduler.warm_up and spec.pass_per_event:
        return "the run has a warm-up and pass_per_event"
    return "" if rule.times is not None else _unsupported_with_heads(spec)


def _unsupported_with_heads(spec: RunSpec) -> str:
    """Return the feature that the kernel of several heads and limits of use does not support; empty if there is none."""
    if bool((node_layout(spec.machine).pool >= 0).any()):
        return "nodes borrow memory from pools"
    return "nodes fail" if spec.disturbances else ""


def _unsupported_outages(spec: RunSpec) -> str:
    """Return the changes of capacity that are not outages supported by the kernels; empty if there are none."""
    if node_changes(spec.machine, node_layout(spec.machine).nodes, spec.disturbances) is None:
        return "capacity changes during the run, not only by failures and repairs of nodes"
    if len(barred(spec.machine, spec.workload.table)):
        return "nodes fail, and a job exceeds limits"
    return "nodes fail on a machine with reserved windows" if spec.machine.windows else ""


def _unsupported_windows(spec: RunSpec, scheduler: ListRule) -> str:
    """Return why the kernels cannot plan around the windows of a machine; empty if they can."""
    layout, requested = node_layout(spec.machine), spec.workload.requested
    groups, _ = window_groups(spec.machine, layout.nodes)
    if len(groups) > MAX_GROUPS:
        return f"reserved windows have more than {MAX_GROUPS} groups of nodes"
    if len(spec.workload) << len(groups) > _MAX_KINDS:
        return f"reserved windows have {len(groups)} groups of nodes, with more than {_MAX_KINDS >> len(groups):,} jobs"
    home = spec.machine.home
    if any(bool((window.owners & (home >= 0) & ~window.owners[home]).any()) for window in spec.machine.windows):
        return "a reserved window contains devices without their nodes"
    if bool((layout.pool >= 0).any()):
        return "reserved windows on nodes with memory pools"
    rule = rule_of(scheduler.backfill)
    if rule is None or rule.reserves == "all":
        return "reserved windows under conservative backfilling"
    if bool((stretched(requested, np.zeros(len(requested))) != requested).any()):
        return "reserved windows with a requested time that float64 cannot represent"
    return ""


def _unsupported_with(what: str, spec: RunSpec, scheduler: ListRule) -> str:
    """Return the feature that the kernels do not support in combination with outages or windows; empty if there is none."""
    rule = rule_of(scheduler.backfill)
    at_intervals = rule is not None and rule.times is not None
    if at_intervals and spec.disturbances:
        return f"{what} under backfilling at intervals"
    several = rule is not None and has_several_heads(rule, spec.machine, spec.workload.table)
    in_tree = not (at_intervals or several or limit_of_use(spec) is not None)
    if in_tree and scheduler.order.kind not in IN_KERNELS:
        return f"{what}, and order {type(scheduler.order).__name__} is called at each pass"
    if spec.disturbances and scheduler.warm_up:
        return f"{what}, with a warm-up"
    if spec.pass_per_event:
        return f"{what}, with pass_per_event"
    return f"{what}, with an initial state" if spec.initial is not None and in_tree else ""
