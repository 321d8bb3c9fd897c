"""Generator of jobs like those on Perlmutter's CPU nodes, from published statistics about them."""

from __future__ import annotations

from dataclasses import dataclass

from poolwise.model import Workload
from poolwise.registry import register
from poolwise.traces.generators.memory_jobs import JobDistribution, MemoryJobs
from poolwise.traces.generators.variates import Quantiles

# share of jobs -> value. Known: 54 % one node, 24 % two, 90 % at most 8, the largest of 13,930 jobs about 526. The points
# in between are assumed; a mean of 28,600 node-seconds determines how steeply they rise.
NODES = Quantiles(
    {0.54: 1, 0.78: 2, 0.90: 8, 0.95: 16, 0.98: 34, 0.992: 68, 0.998: 136, 0.9995: 264, 0.99995: 526}
)  # fmt: skip

# Known: 10 min to 12 h, clustered at 2, 4, 8 and 12 h (time limits: jobs are stopped within half a minute after them).
# The shares of the clusters (10, 6, 2.8 and 1.9 %) and the points between them are assumed.
RUNTIME_S = Quantiles(
    {
        0.001: 600, 0.25: 1290, 0.50: 3560, 0.64: 6250, 0.68: 7200, 0.78: 7230, 0.85: 12000, 0.865: 14400, 0.925: 14430,
        0.95: 28800, 0.978: 28830, 0.981: 43200, 0.9999: 43230,
    }
)  # fmt: skip

# Known: most jobs in [32, 64) GB, a tail to 505 GB. Assumed: 6 % below, 66 % within, 28 % above.
MEMORY_GB = Quantiles({0.001: 4, 0.06: 32, 0.35: 42, 0.72: 64, 0.85: 128, 0.93: 256, 0.98: 440, 0.9995: 505})

# Known: the quantiles of a measured month from 5 to 99 %. The two outermost points are assumed.
HUNGRY_MEMORY_GB = Quantiles(
    {0.001: 8, 0.05: 32, 0.25: 45, 0.50: 77, 0.75: 169, 0.90: 441, 0.99: 495, 0.9995: 505}
)  # fmt: skip

# Fitted by benchmarks/calibrate_generators.py to means over the distributions, not over a single seed.
NODE_SECONDS = 28_600.0
CORRELATION = 0.342
HUNGRY_CORRELATION = 0.0


@register("generators", "perlmutter_like")
@dataclass(frozen=True)
class PerlmutterLike(MemoryJobs):
    """Three days of 13,930 jobs on 1536 nodes with 512 GB each, load 1 (calibrated to the Fair Memory paper's first trace).

    Known and matched: jobs, nodes, days, load, nodes per job, range and clusters of runtimes, the most frequent memory and its
    maximum, a mean of 28,600 node-seconds per job, and a node-time-weighted mean memory of about 140 GB per node. Assumed: all
    points in between, independence of nodes and runtime, Poisson arrivals, and equal dependence of memory on a job's nodes and
    its runtime.

    The paper's Figure 12 (88 % of jobs slowed down by less than 5 %) is matched if 36 % of the jobs exceed 64 GB; with the
    28 % of `MEMORY_GB`, the share is 91 %.

    Source: Li et al., sections III-B, III-C, Figures 6 and 11; specs of the memory pools, "Workloads".

    Parameters
    ----------
    hungry
        Memory per node as in a measured month: quantiles 5/25/50/75/90/99 % of 32/45/77/169/441/495 GB. Its unweighted mean
        already equals the target node-time-weighted mean, so memory does not depend on size here.
    jobs, nodes, seed, load, exact_load, daily_cycle, estimate_factor, correlation
        See `MemoryJobs`.
    """

    jobs: int = 13_930
    nodes: int = 1536
    hungry: bool = False

    def generate(self) -> Workload:
        """Draw the jobs."""
        memory, correlation = (HUNGRY_MEMORY_GB, HUNGRY_CORRELATION) if self.hungry else (MEMORY_GB, CORRELATION)
        return self.draw_workload("perlmutter_like", JobDistribution(NODES, RUNTIME_S, memory, correlation, NODE_SECONDS))
