"""Rigid jobs with memory per node drawn from published distributions: base of the generators that imitate a machine."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from poolwise.arrays import FloatArray, IntArray
from poolwise.model import Workload
from poolwise.quantities import SECOND
from poolwise.traces.generators.arrivals import DailyCycle, poisson
from poolwise.traces.generators.generator import MOST_JOBS, check_setting_range
from poolwise.traces.generators.variates import Quantiles, normal

MIB_PER_GB = 1024  # the paper counts 1 GB = 1024 MB
PEAK_HOUR = 14.0  # busiest hour of the optional daily cycle


@dataclass(frozen=True)
class JobDistribution:
    """Distribution of the jobs of a machine: quantiles of nodes, runtime and memory per node (GB of 1024 MiB).

    Nodes, rounded up to whole ones, and runtime are independent. The normal score of the memory is rho * (sum of their scores /
    sqrt 2) plus an independent part, so that rho in [0, 1], `correlation`, is the correlation of memory with the size of a job
    (a Gaussian copula). `node_seconds` is the mean of nodes x runtime under these quantiles, used to set the load.
    """

    nodes: Quantiles
    runtime_s: Quantiles
    memory_gb: Quantiles
    correlation: float
    node_seconds: float

    def draw(self, seed: int, stream: str, job: IntArray) -> tuple[IntArray, IntArray, IntArray]:
        """Return nodes, runtime in s and memory per node in MiB, each (n,), of the jobs with (n,) ids."""
        wide, long, own = (normal(seed, f"{stream}.{column}", job) for column in ("nodes", "runtime", "memory"))
        rho = self.correlation
        score = rho * (wide + long) / math.sqrt(2.0) + math.sqrt(1.0 - rho * rho) * own
        runtime = np.rint(self.runtime_s.at(long)).astype(np.int64)
        return whole(self.nodes.at(wide)), runtime, whole(self.memory_gb.at(score) * MIB_PER_GB)


def whole(values: FloatArray) -> IntArray:
    """Round values up, (n,), ignoring the floating-point error of a logarithm and its inverse."""
    return np.ceil(values * (1.0 - 1e-12)).astype(np.int64)


@dataclass(frozen=True)
class MemoryJobs:
    """Common settings of the generators that imitate a machine.

    Submit times and runtimes are whole seconds, as in the logs of batch systems.

    Parameters
    ----------
    jobs
        Number of jobs.
    seed
        Random seed.
    nodes
        Nodes of the machine to load. Larger jobs are reduced to its size and counted as repaired.
    load
        Node-seconds submitted divided by node-seconds offered, on average over seeds.
    exact_load
        Stretch submit times so that this workload meets the load exactly between its first and last submission. The first k of
        n jobs then keep everything but their submit times.
    daily_cycle
        Amplitude in [0, 1] of a cosine that modulates a Poisson process over the day; the process starts at midnight and is
        busiest at 14 h. 0, the default, is a plain Poisson process, because the paper shows no arrivals.
    estimate_factor
        Requested time divided by runtime, at least 1; 1 is the paper's assumption.
    correlation
        Correlation in [0, 1] of a job's memory per node with its size; replaces the calibrated one.
    """

    jobs: int
    nodes: int
    seed: int = 0
    load: float = 1.0
    exact_load: bool = False
    daily_cycle: float = 0.0
    estimate_factor: float = 1.0
    correlation: float | None = None

    def draw_workload(self, name: str, distribution: JobDistribution) -> Workload:
        """Draw the workload from a distribution; raise InputError for settings out of range."""
        self._check()
        if self.correlation is not None:
            distribution = replace(distribution, correlation=self.correlation)
        job = np.arange(1, self.jobs + 1, dtype=np.int64)
        wanted, runtime, memory = distribution.draw(self.seed, name, job)
        nodes = np.minimum(wanted, self.nodes)
        cut = int((wanted > self.nodes).sum())
        return Workload.of(
            submit=self._submit(name, job, distribution.node_seconds, float((nodes * runtime).sum())) * SECOND,
            duration=runtime * SECOND,
            id=job,
            requested=np.ceil(runtime * self.estimate_factor).astype(np.int64) * SECOND,
            requests={"nodes": nodes, "memory": memory},
            repaired={f"wider than {self.nodes} nodes, limited to that number": cut} if cut else {},
            name=name,
        )

    def _check(self) -> None:
        check_setting_range(1, MOST_JOBS, jobs=self.jobs)
        check_setting_range(1, nodes=self.nodes)
        check_setting_range(0.001, 1000.0, load=self.load)
        check_setting_range(0.0, 1.0, daily_cycle=self.daily_cycle)
        check_setting_range(1.0, 1000.0, estimate_factor=self.estimate_factor)
        if self.correlation is not None:
            check_setting_range(0.0, 1.0, correlation=self.correlation)

    def _submit(self, name: str, job: IntArray, mean_work: float, work: float) -> IntArray:
        """Return the submit times in s, (n,); `mean_work` of a job and `work` of all jobs are in node-seconds."""
        operational = poisson(self.seed, f"{name}.arrivals", job) * (mean_work / (self.nodes * self.load))
        last = work / (self.nodes * self.load) if self.exact_load else None
        return DailyCycle.wave(self.daily_cycle, PEAK_HOUR).arrivals(operational, last)
