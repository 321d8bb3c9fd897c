"""Generator of rigid jobs after Lublin and Feitelson, for machines without memory.

Source: U. Lublin, D. G. Feitelson, The workload on parallel supercomputers: modeling the characteristics of rigid jobs, J.
Parallel Distrib. Comput. 63(11), 2003, 1105-1122. The authors fitted all constants to the jobs of their three logs together,
batch and interactive, and published them in the program that accompanies the paper.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from poolwise.arrays import BoolArray, FloatArray, IntArray
from poolwise.model import Workload
from poolwise.quantities import SECOND
from poolwise.random import uniform
from poolwise.registry import register
from poolwise.traces.generators.arrivals import BUCKETS, DailyCycle, since_first
from poolwise.traces.generators.generator import MOST_JOBS, check_setting_range
from poolwise.traces.generators.variates import gamma, until_accepted

# Nodes: the share of serial jobs, the share of parallel jobs at powers of two (both of all jobs), and log2 of the nodes of a
# parallel job, uniform in [LOW, MEDIUM] with probability FIRST_STAGE, else in [MEDIUM, HIGH]. HIGH is log2 of the machine;
# MEDIUM is 2.5 below it (4.5 for the authors' 128 nodes; they recommend 1.5 to 3.5).
SERIAL, POWER_OF_TWO = 0.244, 0.576
LOW, MEDIUM_BELOW_HIGH, FIRST_STAGE = 0.8, 2.5, 0.86

# Runtime: its natural logarithm (of seconds) is gamma (shape, scale) distributed in two phases; the share of the first
# phase is SLOPE * nodes + INTERCEPT, clipped to [0, 1]. Runtimes above e^12 s (45 h) are redrawn.
SHORT, LONG = (4.2, 0.94), (312.0, 0.03)
SLOPE, INTERCEPT = -0.0054, 0.78
LOG_LONGEST = 12.0

# Arrivals: the logarithm of the gap is gamma distributed, with the scale of rush hours and their shape times a factor that
# extends it to the whole day; gaps above e^13 s (5 days) are redrawn. The weights of the half hours of the day, starting at
# CYCLE_START, follow the density of another gamma distribution.
GAP = (10.2303 * 1.0225, 0.4871)
LOG_LONGEST_GAP = 13.0
CYCLE = (8.1737, 3.9631)
CYCLE_START = 11


@register("generators", "lublin")
@dataclass(frozen=True)
class Lublin:
    """Rigid jobs of 1990s supercomputers: no memory, strong daily cycle (Lublin, Feitelson 2003).

    The trace begins at midnight with the first job. Times are whole seconds.

    Parameters
    ----------
    jobs
        Number of jobs.
    seed
        Random seed.
    nodes
        Nodes (processors) of the machine, at least 10; the largest job takes all of them.
    load
        Node-seconds submitted divided by node-seconds offered between the first and the last submission, reached by scaling
        the gaps between jobs; the first k of n jobs then keep everything but their submit times. None, the default, keeps the
        published gaps, whatever the load.
    estimate_factor
        Requested time divided by runtime, at least 1.
    """

    jobs: int = 10_000
    seed: int = 0
    nodes: int = 128
    load: float | None = None
    estimate_factor: float = 1.0

    def generate(self) -> Workload:
        """Draw the jobs."""
        check_setting_range(1, MOST_JOBS, jobs=self.jobs)
        check_setting_range(10, nodes=self.nodes)
        check_setting_range(1.0, 1000.0, estimate_factor=self.estimate_factor)
        if self.load is not None:
            check_setting_range(0.001, 1000.0, load=self.load)
        job = np.arange(1, self.jobs + 1, dtype=np.int64)
        nodes = sizes(self.seed, job, self.nodes)
        runtime = runtimes(self.seed, job, nodes)
        last = None if self.load is None else float((nodes * runtime).sum()) / (self.nodes * self.load)
        return Workload.of(
            submit=DailyCycle(cycle_weights()).arrivals(since_first(gaps(self.seed, job)), last) * SECOND,
            duration=runtime * SECOND,
            id=job,
            requested=np.ceil(runtime * self.estimate_factor).astype(np.int64) * SECOND,
            requests={"nodes": nodes},
            name="lublin",
        )


def sizes(seed: int, job: IntArray, machine: int) -> IntArray:
    """Return the nodes of each job, (n,): serial, a power of two, or any number, two-stage uniform in the logarithm."""
    high = math.log2(machine)
    medium = high - MEDIUM_BELOW_HIGH
    kind, stage, place = (uniform(seed, f"lublin.nodes.{part}", job) for part in ("kind", "stage", "place"))
    first = stage < FIRST_STAGE
    exponent = np.where(first, LOW + place * (medium - LOW), medium + place * (high - medium))
    exponent = np.where(kind < SERIAL + POWER_OF_TWO, np.floor(exponent + 0.5), exponent)
    parallel = np.minimum(np.floor(2.0**exponent + 0.5), machine)
    return np.where(kind < SERIAL, 1, parallel).astype(np.int64)


def runtimes(seed: int, job: IntArray, nodes: IntArray) -> IntArray:
    """Return runtimes in whole s, (n,): hyper-gamma distributed in the logarithm, with a mixture that depends on the nodes."""
    share = np.clip(SLOPE * nodes + INTERCEPT, 0.0, 1.0)

    def attempt(rows: IntArray, count: int) -> tuple[FloatArray, BoolArray]:
        short = uniform(seed, "lublin.phase", job[rows], count) < share[rows]
        shape, scale = np.where(short, SHORT[0], LONG[0]), np.where(short, SHORT[1], LONG[1])
        logarithm = gamma(seed, f"lublin.runtime.{count}", job[rows], shape, scale)
        return logarithm, logarithm <= LOG_LONGEST

    return np.floor(np.exp(until_accepted(len(job), attempt))).astype(np.int64)


def gaps(seed: int, job: IntArray) -> FloatArray:
    """Return the gaps between jobs in s of operational time, (n,)."""

    def attempt(rows: IntArray, count: int) -> tuple[FloatArray, BoolArray]:
        logarithm = gamma(seed, f"lublin.gap.{count}", job[rows], *GAP)
        return logarithm, logarithm <= LOG_LONGEST_GAP

    return np.exp(until_accepted(len(job), attempt))


def cycle_weights() -> FloatArray:
    """Return the weights of the half hours of the day, from midnight, (BUCKETS,)."""
    shape, scale = CYCLE
    weights = np.zeros(BUCKETS)
    for k in range(CYCLE_START, CYCLE_START + BUCKETS):
        # Buckets count from 1: number 1 starts at midnight, and those after number 48 are in the early morning.
        weights[(k - 1) % BUCKETS] = gamma_share(shape, (k + 0.5) / scale) - gamma_share(shape, (k - 0.5) / scale)
    return weights


def gamma_share(shape: float, x: float) -> float:
    """Return the share of a gamma distribution of scale 1 below x."""
    from scipy.special import gammainc  # type: ignore[import-untyped]  # no types; imported late because the import is slow

    return float(gammainc(shape, max(x, 0.0)))
