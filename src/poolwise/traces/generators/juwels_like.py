"""Generator of jobs like those of the JUWELS Booster, from distributions that are mostly assumed."""

from __future__ import annotations

from dataclasses import dataclass

from poolwise.model import Workload
from poolwise.registry import register
from poolwise.traces.generators.memory_jobs import JobDistribution, MemoryJobs
from poolwise.traces.generators.variates import Quantiles

# share of jobs -> value. Assumed, with the mean of 18,000 node-seconds.
NODES = Quantiles(
    {0.50: 1, 0.66: 2, 0.80: 4, 0.90: 8, 0.95: 16, 0.98: 32, 0.993: 64, 0.9985: 128, 0.9997: 256, 0.99995: 384}
)  # fmt: skip

# Known: jobs shorter than 10 minutes exist. Assumed: they are 42 % of the jobs, and the others run for up to 24 h.
RUNTIME_S = Quantiles(
    {
        0.001: 5, 0.10: 30, 0.35: 400, 0.50: 900, 0.66: 2000, 0.80: 4500, 0.90: 9600, 0.97: 25200, 0.993: 72000,
        0.997: 86400, 0.9999: 86430,
    }
)  # fmt: skip

# Known: most jobs use less than 32 GB. Assumed: 62 % below 32 GB, 13 % in [32, 64), 25 % above, up to the 512 GB of a node.
MEMORY_GB = Quantiles({0.001: 0.5, 0.30: 8, 0.62: 32, 0.75: 64, 0.86: 128, 0.94: 256, 0.98: 400, 0.9995: 505})

# Fitted by benchmarks/calibrate_generators.py to means over the distributions, not over a single seed.
NODE_SECONDS = 18_000.0
CORRELATION = 0.327


@register("generators", "juwels_like")
@dataclass(frozen=True)
class JuwelsLike(MemoryJobs):
    """Three days of 13,844 jobs on 960 nodes with 512 GB each, load 1 (calibrated to the Fair Memory paper's second trace).

    Known and matched: jobs, nodes, days, load, the presence of jobs under 10 minutes, the most frequent memory, a mean of
    18,000 node-seconds per job, and a node-time-weighted mean memory of about 125 GB per node. Assumed: all distributions
    beyond these, Poisson arrivals, and equal dependence of memory on a job's nodes and its runtime.

    Source: Li et al., sections III-B, III-C, Figures 6 and 11; specs of the memory pools, "Workloads".

    Parameters
    ----------
    jobs, nodes, seed, load, exact_load, daily_cycle, estimate_factor, correlation
        See `MemoryJobs`.
    """

    jobs: int = 13_844
    nodes: int = 960

    def generate(self) -> Workload:
        """Draw the jobs."""
        return self.draw_workload("juwels_like", JobDistribution(NODES, RUNTIME_S, MEMORY_GB, CORRELATION, NODE_SECONDS))
