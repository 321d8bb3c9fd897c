"""The families of compiled runs, and which of them a run belongs to."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from poolwise.engines.compiled_engine import CompiledEngine, Parts, foreign
from poolwise.engines.dispatch import replay as dispatch
from poolwise.engines.list_scheduling import replay as list_scheduling
from poolwise.engines.list_scheduling.loading import load_all
from poolwise.engines.list_scheduling.sampling import RackSampler
from poolwise.engines.progress import Obstacle
from poolwise.engines.shared_nodes import replay as shared_nodes
from poolwise.engines.shared_nodes import supported
from poolwise.engines.shared_nodes.sampling import SharedSampler
from poolwise.errors import InputError
from poolwise.interfaces import Scheduler
from poolwise.model import Machine, Workload
from poolwise.performance.ideal import Ideal

FAMILIES = (
    CompiledEngine("shared nodes", supported.unsupported, shared_nodes.replay, shared_nodes.load, SharedSampler),
    CompiledEngine("list scheduling", list_scheduling.unsupported, list_scheduling.replay, load_all, RackSampler),
    CompiledEngine("task dispatch", dispatch.unsupported, dispatch.replay, dispatch.load),
)


def family_of(parts: Parts) -> tuple[CompiledEngine | None, Obstacle | None]:
    """Find the family that can replay a run; None and what is in the way where none can."""
    reasons = []
    for family in FAMILIES:
        why = family.unsupported(parts)
        if why is None:
            return family, None
        reasons.append(why)
    unknown = foreign(parts.scheduler)
    return None, next((why for why in reasons if why != unknown), unknown)


def load_kernels(runs: Iterable[tuple[Machine, Scheduler]]) -> None:
    """Load the kernels that some runs may need, known by machine and scheduler alone, before processes share them out."""
    left = list(FAMILIES)
    for machine, scheduler in runs:
        for family in [family for family in left if _may_run(family, machine, scheduler)]:
            family.load()
            left.remove(family)


def _may_run(family: CompiledEngine, machine: Machine, scheduler: Scheduler) -> bool:
    """Whether a family has kernels for one job of 1 ns on a machine under a scheduler."""
    one = np.ones(1, dtype=np.int64)
    try:
        return None is family.unsupported(
            Parts(machine, Workload.of(one, one, requests={"cores": one}), scheduler, Ideal(), Ideal())
        )
    except InputError:
        return False  # the run itself says what is wrong with it
