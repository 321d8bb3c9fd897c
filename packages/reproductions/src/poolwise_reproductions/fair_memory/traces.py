"""Alternative workloads that vary what the paper leaves open about its traces.

All keep the arrivals, nodes and runtimes of the generated jobs. Those in `SHARES` change how many jobs need more than the 64 GB
of a node, and recalibrate the correlation. The others change only how the memory is distributed among the jobs, or when they
arrive.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache, partial

import numpy as np

from poolwise.arrays import FloatArray
from poolwise.model import Machine, Workload
from poolwise.quantities import SECOND
from poolwise.studies.cells import FunctionSource
from poolwise.traces.generators import generate
from poolwise.traces.generators.memory_jobs import JobDistribution
from poolwise.traces.generators.perlmutter_like import NODE_SECONDS, NODES, RUNTIME_S, PerlmutterLike
from poolwise.traces.generators.variates import Quantiles, normal

HOUR = 3600 * SECOND
MACHINE_NODES = {"perlmutter_like": 1536, "juwels_like": 960}
NODE_MIB = 512 * 1024
"""Memory of a node with 512 GB."""


@dataclass(frozen=True)
class TraceVariant:
    """Difference between a workload and the generated one.

    Attributes
    ----------
    width : correlation of the memory per node with the number of nodes alone, instead of with both nodes and runtime
    burst : correlation of the memory of jobs that arrive within the same `burst_hours`
    share : share of jobs above 64 GB, with the correlation that keeps the weighted mean memory at 140 GB
    daily : amplitude of a daily wave of arrivals
    load : node-seconds submitted divided by node-seconds offered; loads other than 1 change the days of submission
    nodes : factor by which every job gets more nodes, up to those of the machine, and a shorter runtime
    memory : factor of the memory per node of every job, up to the memory of a node
    meets : whether the workload keeps the weighted mean memory and the marginals that the paper prints
    """

    width: float | None = None
    burst: float = 0.0
    burst_hours: int = 12
    share: float | None = None
    daily: float = 0.0
    load: float = 1.0
    nodes: float = 1.0
    memory: float = 1.0
    meets: bool = True

    def workload(self, generator: str, seed: int) -> Workload:
        """Generate the workload of a generator with this variant's changes."""
        if self.share is not None:
            memory, correlation = _memory(self.share), SHARES[self.share]
            distribution = JobDistribution(NODES, RUNTIME_S, memory, correlation, NODE_SECONDS)
            return PerlmutterLike(seed=seed).draw_workload("perlmutter_like", distribution)
        drawn = generate(generator, seed=seed, daily_cycle=self.daily, load=self.load)
        if self.nodes != 1.0:
            drawn = _wider(drawn, self.nodes, MACHINE_NODES[generator])
        if self.memory != 1.0:
            more = np.minimum((drawn.request("memory") * self.memory).astype(np.int64), NODE_MIB)
            drawn = _with(drawn, np.arange(len(more)), {"nodes": drawn.request("nodes"), "memory": more})
        if self.width is not None:
            drawn = _by_width(drawn, seed, self.width)
        return _in_bursts(drawn, seed, self.burst, self.burst_hours) if self.burst else drawn


SHARES = {0.12: 0.5648, 0.36: 0.2595}
"""Share of jobs above 64 GB -> correlation of memory with size that keeps the weighted mean memory at 140 GB."""

TRACES: Mapping[str, TraceVariant] = {
    "12 % of the jobs above 64 GB": TraceVariant(share=0.12),
    "36 % of the jobs above 64 GB": TraceVariant(share=0.36),
    "memory follows the width (0.4)": TraceVariant(width=0.4),
    "memory comes in bursts of 12 h": TraceVariant(burst=0.9),
    "memory follows the width (0.4), in bursts of 12 h": TraceVariant(width=0.4, burst=0.9),
    "arrivals in a daily wave": TraceVariant(daily=1.0),
    "memory follows the width (0.8)": TraceVariant(width=0.8, meets=False),
    "memory follows the width (0.8), in bursts of 12 h": TraceVariant(width=0.8, burst=0.9, meets=False),
}
"""Traces that test the lead of FM at large pools. The last two have a weighted mean memory of about 220 GB, not 140."""

SINGLE: Mapping[str, TraceVariant] = {
    "load 0.85": TraceVariant(load=0.85, meets=False),
    "load 0.9": TraceVariant(load=0.9, meets=False),
    "load 1.1": TraceVariant(load=1.1, meets=False),
    "load 1.4": TraceVariant(load=1.4, meets=False),
    "memory 1.3 times": TraceVariant(memory=1.3, meets=False),
    "jobs on twice the nodes for half the time": TraceVariant(nodes=2.0, meets=False),
    "memory 3 times": TraceVariant(memory=3.0, meets=False),
}
"""Traces that change a single property that the paper does not print, to verify causes; see `changes`."""


@lru_cache(maxsize=8)
def drawn_trace(name: str, generator: str, seed: int) -> FunctionSource:
    """Return the jobs of a trace as the workload of a cell; the object is cached, so that a process draws them once."""
    return FunctionSource(name, {"trace": name, "generator": generator, "seed": seed}, partial(_draw, name, generator, seed))


def _draw(name: str, generator: str, seed: int, machine: Machine) -> Workload:
    return {**TRACES, **SINGLE}[name].workload(generator, seed)


def _memory(share: float) -> Quantiles:
    """Return quantiles of the memory in GB for a different share above 64 GB, shaped like those of the generator."""
    below = 1.0 - share
    return Quantiles(
        {
            0.001: 4, 0.06: 32, 0.06 + 0.44 * (below - 0.06): 42, below: 64,
            below + 0.464 * share: 128, below + 0.75 * share: 256, below + 0.93 * share: 440, 0.9995: 505,
        }
    )  # fmt: skip


def _wider(jobs: Workload, factor: float, most: int) -> Workload:
    """Return the same jobs on more nodes for less time, in whole seconds."""
    nodes = np.minimum(np.rint(jobs.request("nodes") * factor).astype(np.int64), most)
    seconds = np.maximum(np.rint(jobs.duration / SECOND / factor).astype(np.int64), 1)
    return Workload.of(
        submit=jobs.submit,
        duration=seconds * SECOND,
        id=jobs.id,
        requested=seconds * SECOND,
        requests={"nodes": nodes, "memory": jobs.request("memory")},
        name=jobs.name,
    )


def _by_width(jobs: Workload, seed: int, correlation: float) -> Workload:
    """Reassign the same amounts of memory so that wider jobs get more."""
    nodes = jobs.request("nodes").astype(np.float64)
    own = normal(seed, "traces.width", jobs.id)
    score = correlation * _normal_scores(nodes, seed, jobs) + np.sqrt(1 - correlation**2) * own
    memory = np.empty(len(nodes), dtype=np.int64)
    memory[np.argsort(score, kind="stable")] = np.sort(jobs.request("memory"))
    return _with(jobs, np.arange(len(nodes)), {"nodes": jobs.request("nodes"), "memory": memory})


def _in_bursts(jobs: Workload, seed: int, correlation: float, hours: int) -> Workload:
    """Reorder the jobs over the same submit times so that jobs with much memory arrive together."""
    block = (jobs.submit // (hours * HOUR)).astype(np.int64)
    score = correlation * normal(seed, "traces.burst", block) + np.sqrt(1 - correlation**2) * normal(
        seed, "traces.slot", jobs.id
    )
    memory = _normal_scores(jobs.request("memory").astype(np.float64), seed, jobs)
    which = np.empty(len(memory), dtype=np.int64)
    which[np.argsort(score, kind="stable")] = np.argsort(memory, kind="stable")
    return _with(jobs, which, {name: jobs.request(name)[which] for name in ("nodes", "memory")})


def _normal_scores(values: FloatArray, seed: int, jobs: Workload) -> FloatArray:
    """Return the normal scores of the ranks of values, (n,), with ties broken at random."""
    order = np.lexsort((normal(seed, "traces.ties", jobs.id), values))
    scores = np.empty(len(values))
    scores[order] = np.sort(normal(seed, "traces.scores", jobs.id))
    return scores


def _with(jobs: Workload, which: np.ndarray, requests: Mapping[str, np.ndarray]) -> Workload:
    return Workload.of(
        submit=jobs.submit,
        duration=jobs.duration[which],
        id=jobs.id,
        requested=jobs.requested[which],
        requests=requests,
        name=jobs.name,
    )
