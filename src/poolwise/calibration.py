"""How much load a workload is: the mean cores in use on an ideal machine, and the gap between arrivals that gives a target.

The ideal machine has all cores in one node and takes base times (Call et al., section IV-B; specs of the NVMe composition,
"Load and measurement"). Equation 6 is printed upside down; the load is demand over capacity.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from poolwise.arrays import BoolArray, FloatArray
from poolwise.engines import simulate
from poolwise.metrics.devices import mean_load
from poolwise.metrics.window import Window
from poolwise.model import Machine, MachineBuilder, Schedule, Workload
from poolwise.policies.backfill.none import NoBackfill
from poolwise.policies.order.priorities import FCFS
from poolwise.policies.placement.nvme.first_fit import NvmeFirstFit
from poolwise.schedulers.composition import CompositionScheduler
from poolwise.schedulers.list import ListScheduler
from poolwise.traces.generators.nvme_mix import NvmeMix

OPENING_LOAD = 0.7
"""Measurement begins when the ideal load first reaches this."""
TOLERANCE = 0.005
FARTHEST = 1000.0
"""The search stops at gaps this many times shorter or longer than the work asks for."""
_RESOURCES = ("cores", "bandwidth", "storage")


@dataclass(frozen=True)
class IdealLoad:
    """Load of a workload on the ideal machine.

    Attributes
    ----------
    load : cores of the running workloads / cores, averaged over the window
    window : from the moment the load first reaches 0.7 to the last arrival; the whole run if it never does
    opened : whether the load reaches 0.7
    """

    load: float
    window: Window
    opened: bool

    def population(self, workload: Workload) -> BoolArray:
        """(n_job,) jobs that arrive in the window."""
        inside: BoolArray = (workload.submit >= self.window.begin) & (workload.submit <= self.window.end)
        return inside


def ideal_load(workload: Workload, machine: Machine, *, all_resources: bool = False) -> IdealLoad:
    """Run a workload on the ideal counterpart of a machine.

    Parameters
    ----------
    all_resources
        Bandwidth and capacity limit it too, whatever fits may start, and the window opens when any of the three loads
        reaches 0.7: what the authors' simulator does. By default cores alone count, first come first served.
    """
    ideal = _ideal_machine(machine, all_resources)
    bare = workload if all_resources else replace(workload, requests={"cores": workload.request("cores")})
    placement = NvmeFirstFit(share=True)
    any_that_fits, in_order = CompositionScheduler(FCFS(), placement), ListScheduler(FCFS(), NoBackfill(), placement)
    schedule = simulate(ideal, bare, any_that_fits if all_resources else in_order).schedule
    opening = min(_reaches(schedule, name) for name in (_RESOURCES if all_resources else ("cores",)))
    last = int(workload.submit.max())
    opened = opening < last
    window = Window(int(opening) if opened else int(workload.submit.min()), last)
    return IdealLoad(mean_load(schedule, "cores", window), window, opened)


def _ideal_machine(machine: Machine, all_resources: bool) -> Machine:
    """All cores in one node; with `all_resources` all devices in one."""
    total = [int(machine.capacity[:, machine.resource(n)].sum()) if n in machine.resources else 0 for n in _RESOURCES]
    build = MachineBuilder(f"ideal node for {machine.name}", _RESOURCES)
    build.node("node", cores=total[0])
    if all_resources:
        build.device("device", bandwidth=total[1], storage=total[2])
    return Machine.of(build)


def _reaches(schedule: Schedule, resource: str) -> float:
    """Ns at which the load of a resource first reaches the opening load, infinite if never."""
    total = int(schedule.machine.capacity[:, schedule.machine.resource(resource)].sum())
    demand = schedule.workload.request(resource)[schedule.job]
    times = np.concatenate([schedule.start, schedule.end])
    change = np.concatenate([demand, -demand])
    order = np.lexsort((change, times))  # what ends at an instant is given back before anything starts
    level: FloatArray = np.cumsum(change[order]) / max(total, 1)
    there = np.flatnonzero(level >= OPENING_LOAD)
    return float(times[order][there[0]]) if len(there) else float("inf")


@dataclass(frozen=True)
class Calibration:
    """A mix whose ideal load is near a target, and how near.

    `reached` says whether it is within the tolerance; if it is not, this is the nearest one found.
    """

    mix: NvmeMix
    target: float
    ideal: IdealLoad
    runs: int

    @property
    def reached(self) -> bool:
        """Whether the target was reached."""
        return abs(self.ideal.load - self.target) <= TOLERANCE


def calibrate(mix: NvmeMix, machine: Machine, target: float, *, all_resources: bool = False, most: int = 40) -> Calibration:
    """Scale the gaps of a mix by one factor until its ideal load is the target.

    The gaps are a fixed set of draws of the seed, so only the clock is stretched. The load falls as gaps grow, not quite
    steadily (the window moves): bracketed, then bisected with a guess by the straight line between the ends.

    Parameters
    ----------
    target
        Mean ideal load, in (0, 1).
    most
        Ideal runs to spend.
    """
    tried: dict[float, IdealLoad] = {}

    def miss(gap: float) -> float:
        workload = replace(mix, mean_gap_s=gap).generate()
        tried[gap] = ideal_load(workload, machine, all_resources=all_resources)
        return tried[gap].load - target

    cores = int(machine.capacity[:, machine.resource("cores")].sum())
    workload = mix.generate()
    work_s = float((workload.request("cores") * (workload.duration / 1e9)).sum())
    _bisect(miss, work_s / (len(workload) * cores * target), most)
    gap = min(tried, key=lambda g: (abs(tried[g].load - target), g))
    return Calibration(replace(mix, mean_gap_s=gap), target, tried[gap], len(tried))


def _bisect(miss: Callable[[float], float], guess: float, most: int) -> None:
    """Look for a root of a falling function near a guess until it is within the tolerance or `most` calls are spent."""
    value, runs, step = miss(guess), 1, 1.06
    low, high = [guess, value], [guess, value]  # too little gap (load above), too much (load below)
    while abs(value) > TOLERANCE / 2 and runs < most and guess / FARTHEST < low[0] and high[0] < guess * FARTHEST:
        if low[1] <= 0:
            low = [low[0] / step, miss(low[0] / step)]
            value, step = low[1], step * 1.2
        elif high[1] >= 0:
            high = [high[0] * step, miss(high[0] * step)]
            value, step = high[1], step * 1.2
        else:
            line = low[1] / (low[1] - high[1])
            middle = low[0] + (high[0] - low[0]) * min(max(line, 0.1), 0.9)
            if high[0] - low[0] < 1e-9 * high[0]:
                return
            value = miss(middle)
            if value > 0:
                low = [middle, value]
            else:
                high = [middle, value]
        runs += 1
