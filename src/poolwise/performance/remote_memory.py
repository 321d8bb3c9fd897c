"""Remote-memory model: the slowdown depends on added latency, sensitivity of the job, and fraction of remote memory.

Source: Li et al., Fair Memory, section III-A; runtime = r + ceil(r * (sld_factor * rm_ratio)).
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass, fields
from functools import lru_cache
from typing import Literal

import numpy as np

from poolwise.arrays import BoolArray, FloatArray
from poolwise.errors import InputError
from poolwise.model import JobTable, Kind, Machine, Placement, Run, Snapshot
from poolwise.model.rules import FixedSlowdown, RackSpread
from poolwise.performance.ideal import SimpleModel
from poolwise.random import uniform
from poolwise.registry import register

NEAR_NS, FAR_NS = 180, 280

# Slowdown in percent of the 11 PARSEC kernels that completed, ascending, at 180 and 280 ns of added latency (Figure 5).
NEAR = (
    .103935594, 1.37285957, 1.37771886, 1.83561765, 4.67776163, 4.83442012,
    5.87674881, 13.7825116, 30.6614957, 106.645952, 166.840426,
)  # fmt: skip
FAR = (
    .75210565, 1.96119392, 3.59254798, 5.37873038, 11.20019087, 12.49451142,
    17.857027, 25.00913367, 52.94264714, 127.45616256, 318.95031442,
)  # fmt: skip


@dataclass(frozen=True)
class Latency:
    """Added latency of remote memory, composed of parts in ns (Li et al., section III-A.2, Figure 4).

    A path through one switch passes 4 CXL ports, 2 retimers, 1 switch and 4 hops between port and retimer; every further
    switch adds its own latency and one hop between switches.

    Parameters
    ----------
    port, retimer, switch
        Latency of a CXL port, a retimer and a switch.
    flight, switch_flight
        Propagation delay between a port and a retimer, and between two switches.
    near_switches, far_switches
        Number of switches on the path to the pool of the node's own rack, and of another rack, at least 1.

    Raises InputError for a negative part or a path without a switch.
    """

    port: int = 25
    retimer: int = 20
    switch: int = 20
    flight: int = 5
    switch_flight: int = 30
    near_switches: int = 1
    far_switches: int = 3

    def __post_init__(self) -> None:
        for part in fields(self):
            least = int(part.name.endswith("switches"))
            if getattr(self, part.name) < least:
                problem = f"{part.name} must be at least {least}, got {getattr(self, part.name)}"
                raise InputError(problem, field=f"latency.{part.name}", remedy="correct it, or remove it")

    def ns(self, switches: int) -> int:
        """Return the latency (ns) of a path through `switches` >= 1 switches: by default 180 for one and 280 for three."""
        first = 4 * self.port + 2 * self.retimer + self.switch + 4 * self.flight
        return first + (switches - 1) * (self.switch + self.switch_flight)

    @property
    def near_ns(self) -> int:
        """Latency (ns) of the pool of the node's own rack."""
        return self.ns(self.near_switches)

    @property
    def far_ns(self) -> int:
        """Latency (ns) of the pool of another rack."""
        return self.ns(self.far_switches)


Curve = Literal["quantile", "linear", "quadratic"]


def sld_factor(u: float, latency_ns: float, curve: Curve = "quantile") -> float:
    """Return the slowdown (a fraction) of a job of sensitivity `u` in [0, 1) with its whole memory at `latency_ns`.

    Between the measured latencies the slowdown is piecewise linear through (0, 0), (180, F180(u)), (280, F280(u)). Beyond 280
    ns it is extrapolated with the last slope, and a warning is issued. The curve over u is "quantile": value[floor(11 u)], so
    each job behaves as one measured kernel; "linear": through (0, 0) and (k/11, value); or "quadratic", as in the authors'
    runs: a parabola through the three nearest (k/11, value), k = 1..11, rounded to two digits, which exceeds the measured range
    at both ends.
    """
    near, far = _curve(NEAR, u, curve), _curve(FAR, u, curve)
    if latency_ns == NEAR_NS:
        return near
    if latency_ns == FAR_NS:
        return far
    if latency_ns < NEAR_NS:
        return near * latency_ns / NEAR_NS
    if latency_ns > FAR_NS:
        warnings.warn(f"remote latency {latency_ns} ns is beyond the measured {FAR_NS} ns: extrapolating", stacklevel=2)
    return near + (far - near) * (latency_ns - NEAR_NS) / (FAR_NS - NEAR_NS)


def _curve(points: tuple[float, ...], u: float, curve: Curve) -> float:
    if curve == "quantile":
        return points[int(u * 11)] / 100
    if curve == "linear":
        return float(np.interp(u, np.arange(12) / 11, (0.0, *points))) / 100
    at = min(max(round(11 * u), 2), 10)  # the middle of three points k/11
    t = 11 * u - at
    below, here, above = points[at - 2 : at + 1]
    return round((here + t * (above - below) / 2 + t * t * (above - 2 * here + below) / 2) / 100, 2)


@register("models", "remote_memory")
@dataclass(frozen=True)
class RemoteMemory(SimpleModel):
    """Slowdown proportional to the fraction of a run's memory that is remote, fixed when the run starts.

    On whole nodes, remote memory is the excess over the local memory of the node. On shared nodes, it is the memory that each
    part took from a pool at placement; the pool of the machine has the latency of a pool in another rack.

    Parameters
    ----------
    seed
        Random seed of the sensitivities u. A draw depends only on (seed, job id). The job table's column "u" takes precedence.
    curve
        "quantile" (default), "linear" or "quadratic", see `sld_factor`.
    near_ns, far_ns
        Added latency of memory in the node's own rack and in another rack.
    latency
        The parts of which both latencies consist, instead of the two sums.
    expect
        "own" (each job's own slowdown), "mean" (mean of the curve over u, the same for all jobs) or "none" (0). The last two
        are estimates of a scheduler without knowledge of its jobs.
    spread
        Slowdown of a job on several racks: that of its "worst" rack (default), the "mean" over its memory, or "paper": all
        remote memory has the far latency once any of it is outside the rack's pool. On shared nodes, the job is as slow as its
        "worst" part, or as the "mean" of its parts.

    Examples
    --------
    >>> import poolwise
    >>> machine = poolwise.Machine.of_racks(1, 1, local="8 GiB", pool="8 GiB")
    >>> workload = poolwise.Workload.of("0 s", "1 h", requests={"memory": "12 GiB"})
    >>> run = poolwise.simulate(workload, machine, model=poolwise.RemoteMemory(seed=1), engine="reference")
    >>> run.metrics["makespan_s"] > 3600.0
    True
    """

    seed: int = 0
    curve: Curve = "quantile"
    near_ns: int = NEAR_NS
    far_ns: int = FAR_NS
    expect: Literal["own", "mean", "none"] = "own"
    spread: RackSpread = "worst"
    latency: Latency | None = None

    def __post_init__(self) -> None:
        if self.latency is None:
            return
        stated, built = (self.near_ns, self.far_ns), (self.latency.near_ns, self.latency.far_ns)
        if stated not in ((NEAR_NS, FAR_NS), built):
            problem = f"conflicting latencies: {stated[0]} and {stated[1]} ns, but the parts give {built[0]} and {built[1]} ns"
            raise InputError(problem, field="latency", remedy="give the parts, or near_ns and far_ns")
        object.__setattr__(self, "near_ns", built[0])  # engines and copies read the sums, whichever form was given
        object.__setattr__(self, "far_ns", built[1])

    def check(self, machine: Machine, jobs: JobTable) -> None:
        """Raise InputError for sensitivities outside [0, 1)."""
        if "u" in jobs.attributes:
            sensitivity(jobs, self.seed)

    def slowdown(self, run: Run, snapshot: Snapshot) -> float:
        """Return sld_factor * rm_ratio of the run at its placement, based on the memory that it uses if that is measured."""
        workload, memory = snapshot.table, snapshot.memory_of(run)
        if "nodes" not in snapshot.machine.resources:
            return self._of_parts(run, memory, snapshot)
        if not snapshot.machine.racks.uniform:
            return self._on_mixed_racks(run, memory, snapshot)
        remote = memory - snapshot.machine.local_memory
        if remote <= 0 or self.expect == "none":
            return 0.0
        inside = self._inside(run.placement, remote, snapshot)
        near = self._at(self.near_ns, workload, run.job)
        far = near if inside == 1.0 else self._at(self.far_ns, workload, run.job)
        return self._mixed(near, far, inside) * (remote / memory)

    def _on_mixed_racks(self, run: Run, memory: int, snapshot: Snapshot) -> float:
        """Return the slowdown of a run on nodes of different sizes: that of its slowest nodes, or their mean."""
        counts, layout = snapshot.machine.racks.node_counts(run.placement), snapshot.machine.racks
        remote = {g: max(0, memory - int(layout.local[g])) for g in counts}
        if self.expect == "none" or not any(remote.values()):
            return 0.0
        wanted, borrowed = dict[int, int](), dict[int, int]()
        for g, count in counts.items():
            rack = int(layout.rack[g])
            wanted[rack] = wanted.get(rack, 0) + count * remote[g]
        for _, owner, resource, amount in run.placement.rows():
            if resource == layout.memory_column:
                rack = int(snapshot.machine.rack[owner])
                borrowed[rack] = borrowed.get(rack, 0) + amount
        inside = {rack: min(borrowed.get(rack, 0), amount) / amount for rack, amount in wanted.items() if amount}
        if self.spread == "paper" and min(inside.values()) < 1.0:
            inside = dict.fromkeys(inside, 0.0)
        each = {
            g: self._slowdown_at(remote[g] / memory, inside[int(layout.rack[g])], run, snapshot) if remote[g] else 0.0
            for g in counts
        }
        if self.spread == "mean":
            total = 0.0
            for g, count in counts.items():
                total += count * each[g]  # `sum` would round in another way than the kernel
            return total / sum(counts.values())
        return max(each.values())

    def _slowdown_at(self, share: float, inside: float, run: Run, snapshot: Snapshot) -> float:
        """Return the slowdown for a share of remote memory, of which a fraction `inside` is in the pool of the run's rack."""
        near, far = (self._at(ns, snapshot.table, run.job) for ns in (self.near_ns, self.far_ns))
        return self._mixed(near, far, inside) * share

    def _of_parts(self, run: Run, memory: int, snapshot: Snapshot) -> float:
        """Return the slowdown of a run on shared nodes; each placement row of a pool is the remote memory of one part."""
        placement, machine = run.placement, snapshot.machine
        if self.expect == "none" or "memory" not in machine.resources:
            return 0.0
        pooled = (machine.kind[placement.owner] == Kind.POOL) & (placement.resource == machine.resource("memory"))
        if not pooled.any():
            return 0.0
        far = machine.rack[placement.owner[pooled]] < 0
        if self.spread == "paper":
            far[:] = far.any()
        factors = [self._at(latency_ns, snapshot.table, run.job) for latency_ns in (self.near_ns, self.far_ns)]
        each: list[float] = [
            factors[where] * (lack / memory)
            for where, lack in zip(far.tolist(), placement.amount[pooled].tolist(), strict=True)
        ]
        mean = sum(each) / (int(snapshot.table.nodes[run.job]) * len(run.tasks))
        return float(mean if self.spread == "mean" else max(each))

    def fixed(self, table: JobTable, rows: slice, machine: Machine) -> FixedSlowdown | None:
        """Return the near and far factors of jobs, weighted by their remote fractions unless these depend on the nodes."""
        if min(self.near_ns, self.far_ns) < 0:
            return None
        memory = table.memory[rows]
        if "nodes" not in machine.resources:
            near, far = (self._factor(ns, table, rows, memory > 0) for ns in (self.near_ns, self.far_ns))
            return FixedSlowdown(near, far, np.ones(len(near)), self.spread, per_part=True)
        if not machine.racks.uniform:
            some = memory > machine.local_memory
            near, far = (self._factor(ns, table, rows, some) for ns in (self.near_ns, self.far_ns))
            return FixedSlowdown(near, far, np.ones(len(near)), self.spread, per_part=True)
        remote = np.maximum(memory - machine.local_memory, 0)
        some, share = remote > 0, np.zeros(len(remote))
        np.divide(remote, memory, out=share, where=some)
        near, far = (self._factor(ns, table, rows, some) for ns in (self.near_ns, self.far_ns))
        return FixedSlowdown(near, far, share, self.spread)

    def _factor(self, ns: int, table: JobTable, rows: slice, some: BoolArray) -> FloatArray:
        """Return `sld_factor` of the rows with remote memory, `some` (n,), as (n,); 0 for the others."""
        factor = np.zeros(len(some))
        if self.expect == "none" or not some.any():
            return factor
        if self.expect == "mean":
            factor[some] = mean_factor(ns, self.curve)
            return factor
        u = sensitivity(table, self.seed)[rows]
        if self.curve == "quantile":  # depends on floor(11 u) alone
            steps = np.array([sld_factor((k + 0.5) / 11, ns) for k in range(11)])
            return np.asarray(steps[(u * 11).astype(np.int64)] * some)
        factor[some] = [sld_factor(value, ns, self.curve) for value in u[some].tolist()]
        return factor

    def _mixed(self, near: float, far: float, inside: float) -> float:
        """Return the slowdown if a fraction `inside` of the remote memory is near and the rest far."""
        if inside == 1.0:
            return near
        return far if self.spread == "paper" else inside * near + (1 - inside) * far

    def _at(self, latency_ns: int, table: JobTable, job: int) -> float:
        """Return the slowdown of a job with its whole memory at a latency."""
        if self.expect == "mean":
            return mean_factor(latency_ns, self.curve)
        return sld_factor(float(sensitivity(table, self.seed)[job]), latency_ns, self.curve)

    def _inside(self, placement: Placement, remote: int, snapshot: Snapshot) -> float:
        """Return the fraction of the remote memory in the pool of the node's own rack, for the worst rack or on average."""
        layout, machine = snapshot.machine.racks, snapshot.machine
        nodes: dict[int, int] = {}
        memory: dict[int, int] = {}
        columns = machine.rack[placement.owner].tolist(), placement.resource.tolist(), placement.amount.tolist()
        for rack, resource, amount in zip(*columns, strict=True):
            if resource == layout.node_column:
                nodes[rack] = nodes.get(rack, 0) + amount
            elif resource == layout.memory_column:
                memory[rack] = memory.get(rack, 0) + amount
        own = {rack: min(memory.get(rack, 0), n * remote) for rack, n in nodes.items()}
        if self.spread == "mean":
            return sum(own.values()) / (sum(nodes.values()) * remote)
        return min(own[rack] / (n * remote) for rack, n in nodes.items())


@lru_cache(maxsize=16)
def mean_factor(latency_ns: int, curve: Curve) -> float:
    """Return the mean of `sld_factor` over u."""
    us = (np.arange(1100) + 0.5) / 1100
    return float(np.mean([sld_factor(float(u), latency_ns, curve) for u in us]))


def sensitivity(table: JobTable, seed: int) -> FloatArray:
    """Return u in [0, 1), (n_job,): the table's column "u", else drawn from (seed, job id).

    Raises InputError for values outside [0, 1).
    """

    def make(table: JobTable, rows: slice) -> FloatArray:
        column = table.attributes.get("u")
        u = uniform(seed, "remote_memory", table.id[rows]) if column is None else column[rows].astype(np.float64)
        if len(u) and not (float(u.min()) >= 0.0 and float(u.max()) < 1.0 and math.isfinite(float(u.sum()))):
            raise InputError("sensitivities must be in [0, 1)", field="u", remedy="correct the column, or remove it")
        return u

    return table.derived(("sensitivity", seed), make)
