"""Loading of the list scheduling kernels, each when a run needs it."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Literal, get_args

import numpy as np

from poolwise.engines import compiled_engine
from poolwise.engines.compiled_engine import RunSpec
from poolwise.engines.compiling import compile_in_background, wait_for_background
from poolwise.engines.list_scheduling.columns import ListArrays, RunColumns
from poolwise.interfaces import CappedOrder, ListRule, rule_of
from poolwise.kernels.common.index import empty_tree
from poolwise.model import Machine, Workload
from poolwise.performance.ideal import Ideal
from poolwise.platforms.simulated import Disturbance
from poolwise.policies.backfill.conservative import Conservative
from poolwise.policies.backfill.easy import Easy
from poolwise.schedulers.list import ListScheduler
from poolwise.units import SECOND

FOLDER = "list_scheduling"
"""Folder of the kernel package."""

KernelKind = Literal[
    "short queues", "deep queues", "reservations", "kept reservations", "changing capacity", "changing capacity, reservations"
]
"""Kinds of kernels: queues that are scanned, queues in a tree, conservative reservations, held reservations; and, on racks
whose capacity changes, queues in a tree and conservative reservations."""
KINDS: tuple[KernelKind, ...] = get_args(KernelKind)
RARE: tuple[KernelKind, ...] = ("changing capacity", "changing capacity, reservations")


def kinds_of(rule: ListRule, changing: bool = False) -> tuple[KernelKind, ...]:
    """Return the kinds of kernels that runs under a list scheduler may need; they always need the first one."""
    backfill = rule_of(rule.backfill)
    if changing:
        everyone = backfill is not None and backfill.reserves == "all"
        return ("changing capacity, reservations",) if everyone else ("changing capacity",)
    if backfill is not None and backfill.reserves == "all":
        return ("kept reservations",) if backfill.keeps else ("reservations",)
    order = rule.order.order if isinstance(rule.order, CappedOrder) else rule.order
    return ("short queues",) if order.kind == "opaque" else ("short queues", "deep queues")


@cache
def load_kernels(kind: KernelKind) -> None:
    """Load a kernel, compiling it if it is not cached on this computer; log that it compiles."""
    wait_for_background(FOLDER, kind)
    compiled_engine.load(FOLDER, kind, f"list scheduling, {kind}", "ten to twenty seconds", lambda: _smallest(kind))


@cache
def load_resume() -> None:
    """Load the kernel that restores initial runs, as `load_kernels` does."""
    compiled_engine.load(FOLDER, "resume", "list scheduling, from a state", "a few seconds", _resume_empty)


def load_all() -> None:
    """Load the kernels of most runs, compiling two at a time."""
    common = [kind for kind in KINDS if kind not in RARE]
    for one, other in zip(common[::2], common[1::2], strict=True):
        compile_in_background(FOLDER, other, load_kernels)
        load_kernels(one)
        load_kernels(other)
    load_resume()


def load_rare() -> None:
    """Load the other kernels: a run loads them when it needs one."""
    for kind in RARE:
        load_kernels(kind)


def _smallest(kind: KernelKind) -> int:
    """Run the kernel on two jobs."""
    from poolwise.kernels.list_scheduling.replay import replay

    return int(replay(*_arguments(kind)))


def _resume_empty() -> bool:
    """Resume from a state without runs."""
    from poolwise.kernels.list_scheduling.resume import resume

    arrays, nothing = _arguments("short queues"), np.zeros((0, 1), dtype=np.int64)
    return bool(resume(arrays.state, nothing, nothing))


def _arguments(kind: KernelKind) -> ListArrays:
    scheduler = ListScheduler(backfill=Conservative(kind == "kept reservations") if "reservations" in kind else Easy())
    second = np.full(2, SECOND, dtype=np.int64)
    two = RunSpec(Machine.flat(1), Workload.of(second, second), scheduler, Ideal(), Ideal())
    if kind in RARE:
        two = replace(two, disturbances=(Disturbance(0, 0, 0, -1), Disturbance(1, 0, 0, 1)))
    rule = scheduler.rule()
    assert rule is not None
    arrays = RunColumns(two, rule).arrays()
    jobs = arrays.state.jobs
    tree = empty_tree(jobs.nodes, jobs.remote, jobs.length)
    return arrays._replace(tree=tree, heads=tree) if kind == "deep queues" else arrays
