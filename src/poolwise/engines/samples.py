"""Samplers of variants of one run from an initial state, used by forecasts."""

from __future__ import annotations

from dataclasses import dataclass, replace

from poolwise.arrays import IntArray
from poolwise.engines.compiled_engine import RunSpec, Sampler
from poolwise.engines.kernel_arrays import starts_of
from poolwise.engines.progress import Obstacle
from poolwise.engines.select import find_engine
from poolwise.engines.simulate import simulate
from poolwise.model import Workload
from poolwise.model.exclusive import ExclusiveNodes, exclusive_nodes
from poolwise.quantities import NEVER


@dataclass(frozen=True, eq=False)
class PlainSampler:
    """Replays each variant in the reference engine."""

    spec: RunSpec
    awaited: IntArray
    until: int

    def starts(self, workload: Workload) -> IntArray:
        """Return the start times (ns) of the awaited jobs, (k,), `NEVER` for a job that does not start."""
        spec = self.spec
        result = simulate(
            workload,
            spec.machine,
            spec.scheduler,
            model=spec.model,
            estimate=spec.estimate,
            seed=spec.seed,
            engine="reference",
            initial=spec.initial,
        ).schedule
        starts = starts_of(result.job[::-1], result.start[::-1], self.awaited, len(workload))  # the first start of each
        starts[starts > self.until] = NEVER
        return starts


@dataclass(frozen=True, eq=False)
class _ExclusiveSampler:
    """Replays variants of a workload with exclusive jobs; adds the resource that keeps these apart to each variant."""

    sampler: Sampler
    alone: ExclusiveNodes

    def starts(self, workload: Workload) -> IntArray:
        """Return the start times (ns) of the awaited jobs, (k,), `NEVER` for a job that does not start."""
        return self.sampler.starts(self.alone.like(workload))


def sampler_of(spec: RunSpec, awaited: IntArray, until: int = NEVER) -> tuple[Sampler, Obstacle | None]:
    """Return the fastest sampler for variants of a run, and why it does not use kernels if it does not.

    Parameters
    ----------
    spec
        The run, with an initial state (`RunSpec.initial`).
    awaited
        (k,) rows of the workload whose starts are requested; a replay stops once all of them have started.
    until
        Time (ns) after which no event is replayed.
    """
    alone, sampled_spec = exclusive_nodes(spec.workload, spec.machine, spec.initial), spec
    if alone is not None:
        sampled_spec = replace(spec, workload=alone.workload, machine=alone.machine, initial=alone.initial)
    engine, obstacle = find_engine(sampled_spec)
    if engine is None or engine.sampler is None:
        return PlainSampler(spec, awaited, until), obstacle
    sampler = engine.sampler(sampled_spec, awaited, until)
    return sampler if alone is None else _ExclusiveSampler(sampler, alone), None
