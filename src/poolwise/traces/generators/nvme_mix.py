"""Generator of workloads on pooled NVMe: kinds in fixed shares, Poisson arrivals, and a deadline for each.

Source: Call et al., section IV-A, Tables I and II, equation 5; specs of the NVMe composition, "Workloads".
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from poolwise.arrays import FloatArray, IntArray
from poolwise.errors import InputError
from poolwise.model import Workload
from poolwise.quantities import SECOND, parse, to_ns
from poolwise.random import uniform
from poolwise.registry import register
from poolwise.traces.generators.arrivals import poisson
from poolwise.traces.generators.generator import Generator, check_setting_range

MixScenario = Literal["high_bandwidth", "high_capacity", "high_compute"]
DAYS_S = 3 * 86400.0


@dataclass(frozen=True)
class WorkloadKind:
    """One kind of workload: seconds at reference speed, requests (MB/s and MiB), and its weight among the kinds of a mix.

    More bandwidth than `peak_bandwidth` (MB/s) does not help.
    """

    name: str
    base_s: float
    cores: int
    bandwidth: int = 0
    storage: int = 0
    peak_bandwidth: int = 0
    share: float = 1.0


BANDWIDTH_BOUND = WorkloadKind("bandwidth_bound", 1600, 6, 1800, parse("43 GB", "memory"), 6000)
CAPACITY_BOUND = WorkloadKind("capacity_bound", 800, 6, 160, parse("600 GB", "memory"), 160)
COMPUTE_BOUND = WorkloadKind("compute_bound", 900, 15)
FIO = WorkloadKind("fio", 900, 2, 2000, 0, 6000)

SHARES: dict[MixScenario, tuple[float, float, float]] = {
    "high_bandwidth": (0.7, 0.1, 0.2),
    "high_capacity": (0.1, 0.7, 0.2),
    "high_compute": (0.2, 0.1, 0.7),
}
"""Scenario -> shares of bandwidth-bound, capacity-bound and compute-bound workloads (Table II)."""


def published_kinds(scenario: MixScenario, fio: float = 0.0) -> tuple[WorkloadKind, ...]:
    """Return the kinds of a published scenario; `fio` is the fraction of the bandwidth-bound share that is FIO, not SMUFIN."""
    bandwidth, capacity, compute = SHARES[scenario]
    kinds = (
        replace(FIO, share=bandwidth * fio),
        replace(BANDWIDTH_BOUND, share=bandwidth * (1 - fio)),
        replace(CAPACITY_BOUND, share=capacity),
        replace(COMPUTE_BOUND, share=compute),
    )
    return tuple(kind for kind in kinds if kind.share > 0)


@register("generators", "nvme_mix")
@dataclass(frozen=True)
class NvmeMix(Generator):
    """1500 workloads of a published scenario, or of user-defined kinds.

    Kind, priority and gaps come from independent streams of the seed, so a different mean gap or deadline factor does not
    affect the other values. Columns: requests cores, bandwidth, storage; attributes kind (text), peak_bandwidth (MB/s),
    deadline (ns), high_priority (0 or 1). Deadline = arrival + factor * base time.

    Parameters
    ----------
    scenario
        Shares of the three published kinds; ignored if `kinds` are given.
    fio
        Fraction of the bandwidth-bound workloads that is FIO (mixes M1 to M3: 1.0, 0.7, 0.5).
    mean_gap_s
        Mean seconds between arrivals; `calibrate` finds the value for a load.
    high_priority, factor, high_priority_factor
        Share of high-priority workloads, and the deadline factors.
    constant_gaps
        Make all gaps equal, as the authors' simulator does.
    correlated
        Derive kind and priority from one draw, so that the first kinds are the urgent ones, as the authors' simulator does.
    """

    scenario: MixScenario = "high_bandwidth"
    kinds: tuple[WorkloadKind, ...] = ()
    fio: float = 0.0
    jobs: int = 1500
    seed: int = 0
    mean_gap_s: float = DAYS_S / 1500
    high_priority: float = 0.2
    factor: float = 4.0
    high_priority_factor: float = 1.2
    constant_gaps: bool = False
    correlated: bool = False

    @property
    def nodes(self) -> int:
        """Five shared nodes, as in Table II."""
        return 5

    def generate(self) -> Workload:
        """Draw the workloads."""
        check_setting_range(0, 1, fio=self.fio, high_priority=self.high_priority)
        check_setting_range(1, jobs=self.jobs)
        check_setting_range(1e-9, mean_gap_s=self.mean_gap_s)
        check_setting_range(0, factor=self.factor, high_priority_factor=self.high_priority_factor)
        kinds = self.kinds or published_kinds(self.scenario, self.fio)
        job = np.arange(self.jobs)
        pick = uniform(self.seed, "nvme_mix.kind", job)
        kind = _chosen(kinds, pick)
        urgent = (pick if self.correlated else uniform(self.seed, "nvme_mix.priority", job)) < self.high_priority
        points = np.arange(self.jobs, dtype=np.float64) if self.constant_gaps else poisson(self.seed, "nvme_mix.gap", job)
        submit = np.rint(points * (self.mean_gap_s * SECOND)).astype(np.int64)
        base = np.array([to_ns(k.base_s) for k in kinds], dtype=np.int64)[kind]
        slack = np.where(urgent, self.high_priority_factor, self.factor) * base
        columns = {name: np.array([getattr(k, name) for k in kinds], dtype=np.int64)[kind] for name in _COLUMNS}
        return Workload.of(
            submit,
            base,
            requests={name: columns[name] for name in ("cores", "bandwidth", "storage")},
            attributes={
                "kind": np.array([k.name for k in kinds])[kind],
                "peak_bandwidth": columns["peak_bandwidth"],
                "deadline": submit + np.rint(slack).astype(np.int64),
                "high_priority": urgent.astype(np.int64),
            },
            name="nvme_mix" if self.kinds else self.scenario,
        )


_COLUMNS = ("cores", "bandwidth", "storage", "peak_bandwidth")


def _chosen(kinds: tuple[WorkloadKind, ...], pick: FloatArray) -> IntArray:
    """Return kinds drawn by their shares from uniform numbers, (n,); raise InputError for invalid shares."""
    shares = np.array([kind.share for kind in kinds])
    if not (np.isfinite(shares).all() and float(shares.min()) >= 0 and float(shares.sum()) > 0):
        raise InputError("shares must be at least 0 and not all 0", field="share", remedy="give each kind a weight")
    bounds = np.cumsum(shares) / shares.sum()
    return np.minimum(np.searchsorted(bounds, pick, side="right"), len(kinds) - 1).astype(np.int64)
