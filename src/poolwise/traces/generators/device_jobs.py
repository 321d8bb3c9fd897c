"""Generator of jobs with one device each, on machines where long-running jobs hold some of the cores at the start.

Source: Amaral et al., DRMaestro, "Trace-driven simulation configuration"; specs of the flow placement, "Simulation".
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from poolwise.arrays import FloatArray, IntArray
from poolwise.model import Workload
from poolwise.performance.device_profiles import read_device_profiles
from poolwise.quantities import SECOND
from poolwise.registry import InputFile, register
from poolwise.traces.generators.generator import Generator, check_setting_range
from poolwise.traces.generators.variates import exponential, normal, whole_below

WARM_UP = "warm-up"


@register("generators", "device_jobs")
@dataclass(frozen=True)
class DeviceJobs(Generator):
    """Poisson arrivals of single-task jobs of uniformly drawn kinds with lognormal local times, after pinned warm-up jobs.

    Columns: requests cores, memory, one device under the name `device`, bandwidth (MB/s over the network if the device is
    remote); attributes kind, goal (ns; 0 for warm-up jobs) and pinned (owner number of a node, -1 for any). Warm-up jobs hold
    only cores: either all cores of the first half of the machines, or half the cores of each machine.

    Parameters
    ----------
    machines
        Number of machines, which must be the first owners of the machine model.
    rate
        Jobs per second.
    warm_up_s
        Runtime of the warm-up jobs in seconds; 0 for none.
    spread
        Let warm-up jobs hold half the cores of every machine instead.
    cores
        Cores (hardware threads) per machine.
    profiles
        Profiles of the kinds of jobs: "catalog:NAME" or a CSV file.
    device
        Type of device that a job requests.
    """

    jobs: int = 512
    seed: int = 0
    machines: int = 16
    rate: float = 16.0
    warm_up_s: float = 700.0
    spread: bool = False
    cores: int = 160
    profiles: InputFile = "catalog:rodinia"
    device: str = "gpu"

    @property
    def nodes(self) -> int:
        """Number of shared nodes."""
        return self.machines

    def generate(self) -> Workload:
        """Draw the jobs."""
        check_setting_range(1, jobs=self.jobs, machines=self.machines, cores=self.cores)
        check_setting_range(1e-9, rate=self.rate)
        check_setting_range(0, warm_up_s=self.warm_up_s)
        profiles = list(read_device_profiles(self.profiles).values())
        job = np.arange(self.jobs)
        pick = whole_below(len(profiles), self.seed, "device_jobs.kind", job)
        gaps = exponential(self.seed, "device_jobs.gap", job) / self.rate
        mean, spread = (np.array([getattr(p, name) for p in profiles])[pick] for name in ("local_s", "spread"))
        seconds = lognormal(mean, spread, normal(self.seed, "device_jobs.time", job))
        warm = self._warm_up()
        n = len(warm)

        def column(values: FloatArray | IntArray, before: int = 0) -> IntArray:
            return np.concatenate([np.full(n, before), np.rint(values)]).astype(np.int64)

        def of(name: str, scale: float = 1.0) -> FloatArray:
            times: FloatArray = np.array([getattr(p, name) for p in profiles], dtype=np.float64)[pick] * scale
            return times

        cores = column(of("cores"))
        cores[:n] = self.cores // 2 if self.spread else self.cores
        held = round(self.warm_up_s * SECOND)
        return Workload.of(
            column(np.cumsum(gaps) * SECOND),
            np.maximum(column(seconds * SECOND, held), 1),
            requested=column(mean * SECOND, held),
            requests={
                "cores": cores,
                "memory": column(of("memory_gib", 1024.0)),
                self.device: column(np.ones(self.jobs)),
                "bandwidth": column(of("link_mb_s")),
            },
            attributes={
                "kind": np.concatenate([np.full(n, WARM_UP), np.array([p.kind for p in profiles])[pick]]),
                "goal": column(of("goal_s", SECOND)),
                "pinned": np.concatenate([warm, np.full(self.jobs, -1)]),
            },
            name=f"{self.jobs} jobs on {self.machines} machines",
        )

    def _warm_up(self) -> IntArray:
        """Return the owner numbers of the machines that warm-up jobs hold."""
        if not self.warm_up_s:
            return np.zeros(0, dtype=np.int64)
        return np.arange(self.machines if self.spread else self.machines // 2)


def lognormal(mean: FloatArray, spread: FloatArray, score: FloatArray) -> FloatArray:
    """Convert normal scores, (n,), to lognormal variates with a mean and a spread (standard deviation / mean)."""
    variance = np.log1p(spread**2)
    values: FloatArray = mean * np.exp(np.sqrt(variance) * score - variance / 2)
    return values
