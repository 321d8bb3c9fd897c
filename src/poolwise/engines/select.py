"""Choice of the compiled engine for a run."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

import numpy as np

from poolwise.engines.compiled_engine import CompiledEngine, RunSpec, no_engine_for
from poolwise.engines.compositions import replay as compositions
from poolwise.engines.dispatch import replay as dispatch
from poolwise.engines.list_sampling import RackSampler, SharedSampler
from poolwise.engines.list_scheduling import replay as list_scheduling
from poolwise.engines.list_scheduling.loading import load_for
from poolwise.engines.progress import Obstacle
from poolwise.engines.shared_nodes import replay as shared_nodes
from poolwise.engines.shared_nodes import supported
from poolwise.errors import InputError
from poolwise.interfaces import Scheduler
from poolwise.model import Machine, Workload
from poolwise.performance.ideal import Ideal

ENGINES = (
    CompiledEngine("shared nodes", supported.unsupported, shared_nodes.replay, shared_nodes.load_for, SharedSampler),
    CompiledEngine("list scheduling", list_scheduling.unsupported, list_scheduling.replay, load_for, RackSampler),
    CompiledEngine(
        "list scheduling on mixed nodes",
        partial(list_scheduling.unsupported, mixed=True),
        list_scheduling.replay,
        load_for,
        RackSampler,
    ),
    CompiledEngine("task dispatch", dispatch.unsupported, dispatch.replay, dispatch.load_for),
    CompiledEngine(
        "composed devices",
        compositions.unsupported_composition,
        compositions.replay_composition,
        compositions.load_for_composition,
    ),
)


def find_engine(spec: RunSpec) -> tuple[CompiledEngine | None, Obstacle | None]:
    """Return the compiled engine that supports a run, or None and the obstacle."""
    reasons = []
    for engine in ENGINES:
        why = engine.unsupported(spec)
        if why is None:
            return engine, None
        reasons.append(why)
    unknown = no_engine_for(spec.scheduler)
    return None, next((why for why in reasons if why != unknown), unknown)


def load_kernels(runs: Iterable[tuple[Machine, Scheduler]]) -> None:
    """Load the kernels that runs may need, given their machines and schedulers, before worker processes start."""
    ones = np.ones(1, dtype=np.int64)
    for machine, scheduler in runs:
        spec = RunSpec(Workload.of(ones, ones, requests={"cores": ones}), machine, scheduler, Ideal(), Ideal())
        for engine in ENGINES:
            if _may_run(engine, spec):
                engine.load(spec)


def _may_run(engine: CompiledEngine, spec: RunSpec) -> bool:
    """Return whether an engine supports a run; True for invalid input, which the run itself reports."""
    try:
        return engine.unsupported(spec) is None
    except InputError:
        return False
