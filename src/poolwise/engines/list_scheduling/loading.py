"""Loads the kernels of list scheduling, each when a run needs it: for short queues, for deep ones, and for reservations."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Literal, get_args

import numpy as np

from poolwise.engines import compiled_engine
from poolwise.engines.compiled_engine import Parts
from poolwise.engines.compiling import await_beside, compile_beside
from poolwise.engines.list_scheduling.columns import ListArrays, RunColumns
from poolwise.interfaces import CappedOrder, ListRule, rule_of
from poolwise.model import Machine, Workload
from poolwise.performance.ideal import Ideal
from poolwise.platforms.simulated import Disturbance
from poolwise.policies.backfill.conservative import Conservative
from poolwise.policies.backfill.easy import Easy
from poolwise.schedulers.list import ListScheduler
from poolwise.units import SECOND

FOLDER = "list_scheduling"
"""Folder of the kernels."""

KernelKind = Literal[
    "short queues", "deep queues", "reservations", "kept reservations", "changing capacity", "changing capacity, reservations"
]
"""What a kernel is for: queues that are scanned, queues in a tree, reservations of everyone, such as are kept; and on racks
whose capacity changes, queues in a tree and reservations of everyone."""
KINDS: tuple[KernelKind, ...] = get_args(KernelKind)
RARE: tuple[KernelKind, ...] = ("changing capacity", "changing capacity, reservations")


def kinds_of(rule: ListRule, changing: bool = False) -> tuple[KernelKind, ...]:
    """Kernels that runs under a list scheduler may need, on racks whose capacity may be changing; the first one in any case."""
    backfill = rule_of(rule.backfill)
    if changing:
        everyone = backfill is not None and backfill.reserves == "everyone"
        return ("changing capacity, reservations",) if everyone else ("changing capacity",)
    if backfill is not None and backfill.reserves == "everyone":
        return ("kept reservations",) if backfill.keeps else ("reservations",)
    order = rule.order.order if isinstance(rule.order, CappedOrder) else rule.order
    return ("short queues",) if order.kind == "opaque" else ("short queues", "deep queues")


@cache
def load(kind: KernelKind) -> None:
    """Load a kernel, compiling it where this has not been done before on this computer; says so in the log."""
    await_beside(FOLDER, kind)
    compiled_engine.load(FOLDER, kind, f"list scheduling, {kind}", "ten to twenty seconds", lambda: _smallest(kind))


@cache
def load_resume() -> None:
    """Load the kernel by which replays go on from a state, as `load` does."""
    compiled_engine.load(FOLDER, "resume", "list scheduling, from a state", "a few seconds", _go_on)


def load_all() -> None:
    """Load the kernels of most runs, compiled two at a time."""
    common = [kind for kind in KINDS if kind not in RARE]
    for one, other in zip(common[::2], common[1::2], strict=True):
        compile_beside(FOLDER, other, load)
        load(one)
        load(other)
    load_resume()


def load_rare() -> None:
    """Load the other kernels: a run loads them when it comes to need one."""
    for kind in RARE:
        load(kind)


def _smallest(kind: KernelKind) -> int:
    """Run the kernel on two jobs."""
    from poolwise.kernels.list_scheduling.replay import replay

    return int(replay(*_arguments(kind)))


def _go_on() -> bool:
    """Go on from a state in which nothing runs."""
    from poolwise.kernels.list_scheduling.resume import resume

    arrays, nothing = _arguments("short queues"), np.zeros((0, 1), dtype=np.int64)
    return bool(resume(arrays.jobs, arrays.rules, arrays.racks, arrays.runs, nothing, nothing, arrays.now))


def _arguments(kind: KernelKind) -> ListArrays:
    from poolwise.kernels.list_scheduling.index import plant

    scheduler = ListScheduler(backfill=Conservative(kind == "kept reservations") if "reservations" in kind else Easy())
    second = np.full(2, SECOND, dtype=np.int64)
    two = Parts(Machine.flat(1), Workload.of(second, second), scheduler, Ideal(), Ideal())
    if kind in RARE:
        two = replace(two, disturbances=(Disturbance(0, 0, 0, -1), Disturbance(1, 0, 0, 1)))
    rule = scheduler.rule()
    assert rule is not None
    arrays = RunColumns(two, rule).arrays()
    return arrays._replace(tree=plant(2), heads=plant(2)) if kind == "deep queues" else arrays
