"""Loading of the list scheduling kernels, each of them only when a run needs it."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np

from poolwise.engines import compiled_engine
from poolwise.engines.compiled_engine import RunSpec
from poolwise.engines.compiling import wait_for_background
from poolwise.engines.list_columns import has_several_heads
from poolwise.engines.list_scheduling.columns import ListArrays, RunColumns
from poolwise.engines.list_scheduling.mixed_nodes import is_mixed
from poolwise.interfaces import BackfillPolicy, CappedOrder, ListRule
from poolwise.interfaces.user_class import rule_of
from poolwise.kernels.common.index import empty_tree
from poolwise.model import JobTable, Machine, Workload
from poolwise.performance.ideal import Ideal
from poolwise.policies.backfill.conservative import Conservative
from poolwise.policies.backfill.easy import Easy
from poolwise.policies.backfill.slurm import SlurmBackfill
from poolwise.quantities import SECOND
from poolwise.schedulers.list import ListScheduler

FOLDER = "list_scheduling"
"""Folder of the kernel package."""
COMPILE_S = 6.0
"""Seconds to compile one kernel on the reference computer."""

MIXED = ", mixed nodes"
"""Suffix of kinds for nodes that differ, or on which only some jobs may run."""
COMMON = "short queues", "deep queues", "reservations", "kept reservations"
INTERVALS = "backfill at intervals"
HEADS = "heads of partitions" + MIXED
KINDS = *COMMON, *(kind + MIXED for kind in COMMON), INTERVALS, HEADS
"""Kinds of kernels: queues that are scanned, queues in a tree, conservative reservations, held reservations, backfilling at
intervals; all except the last also on mixed nodes; and queues with a head for each of several partitions."""


def kinds_of(rule: ListRule, machine: Machine, table: JobTable, changing: bool = False) -> tuple[str, ...]:
    """Return the kinds of kernels that runs under a list scheduler may need; they always need the first one.

    On racks whose capacity changes, queues are trees from the beginning.
    """
    backfill, order = rule_of(rule.backfill), rule.order.order if isinstance(rule.order, CappedOrder) else rule.order
    mixed = is_mixed(machine, table)
    if backfill is not None and has_several_heads(backfill, machine, table):
        return (HEADS,)
    everyone = backfill is not None and backfill.reserves == "all"
    kinds = COMMON[:1] if order.kind == "opaque" else COMMON[:2]
    if backfill is not None and backfill.times is not None:
        kinds = (INTERVALS,)
    elif everyone:
        kinds = COMMON[3:] if backfill is not None and backfill.keeps else COMMON[2:3]
    elif changing:
        kinds = COMMON[1:2]
    return tuple(kind + MIXED * mixed for kind in kinds)


@cache
def load_kernels(kind: str) -> None:
    """Load a kernel; if it is not cached on this computer, compile it and log that."""
    wait_for_background(FOLDER, kind)
    compiled_engine.load(FOLDER, kind, f"list scheduling, {kind}", COMPILE_S, lambda: _smallest(kind))


@cache
def load_resume(mixed: bool = False) -> None:
    """Load the kernel that restores initial runs, as `load_kernels` does."""
    kind = MIXED * mixed
    compiled_engine.load(
        FOLDER, f"resume{kind}", f"list scheduling, from a state{kind}", COMPILE_S / 4, lambda: _resume_empty(kind)
    )


def load_for(spec: RunSpec) -> None:
    """Load the kernels that may be needed by runs with the machine and scheduler of a supported run."""
    rule = rule_of(spec.scheduler)
    assert rule is not None
    mixed = is_mixed(spec.machine, spec.workload.table)
    for kind in kinds_of(rule, spec.machine, spec.workload.table, bool(spec.disturbances)):
        load_kernels(kind)
    backfill = rule_of(rule.backfill)
    if len(spec.machine.partitions) > 1 and backfill is not None and backfill.heads == "partition":
        load_kernels(HEADS)
    if spec.initial is not None:
        load_resume(mixed)


def load_all(mixed: bool = False) -> None:
    """Load all kernels for identical or mixed nodes; loaded in one process, they share the functions that Numba compiled."""
    for kind in KINDS:
        if kind.endswith(MIXED) == mixed:
            load_kernels(kind)
    load_resume(mixed)


def _smallest(kind: str) -> int:
    """Run the kernel on two jobs."""
    from poolwise.kernels.list_scheduling.replay import replay

    return int(replay(*_arguments(kind)))


def _resume_empty(kind: str) -> bool:
    """Resume from a state without runs."""
    from poolwise.kernels.list_scheduling.resume import resume

    arrays, nothing = _arguments(COMMON[0] + kind), np.zeros((0, 1), dtype=np.int64)
    return bool(resume(arrays.state, nothing, nothing))


def _arguments(kind: str) -> ListArrays:
    backfill: BackfillPolicy = Conservative(kind.startswith("kept")) if "reservations" in kind else Easy()
    scheduler = ListScheduler(backfill=SlurmBackfill() if kind == INTERVALS else backfill)
    second = np.full(2, SECOND, dtype=np.int64)
    machine = Machine.flat(1)
    if kind.endswith(MIXED):
        machine = replace(machine, node_sets={"all": np.ones(machine.n_owner, dtype=np.bool_)})
    two = RunSpec(Workload.of(second, second), machine, scheduler, Ideal(), Ideal())
    if kind == HEADS:
        machine = Machine.of_racks(2, 1, local=1)
        machine = replace(machine, node_sets={"first": np.arange(machine.n_owner) == 0})
        load = replace(two.workload, attributes={"partition": np.array(["", "first"])})
        two = replace(two, workload=load, machine=machine)
    rule = scheduler.rule()
    assert rule is not None
    arrays = RunColumns(two, rule).arrays()
    jobs = arrays.state.jobs
    tree = empty_tree(jobs.nodes, jobs.remote, jobs.length)
    return arrays.with_trees(tree, tree) if kind.startswith("deep queues") else arrays
