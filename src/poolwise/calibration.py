"""Load of NVMe workloads: mean share of cores in use on an ideal machine, and the arrival gap that gives a target load.

The ideal machine has all cores in one node, and runs take their base times (Call et al., section IV-B; specs of the NVMe
composition, "Load and measurement"). Equation 6 is printed upside down; the load is demand over capacity.
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
from poolwise.policies.placement.nodes.placement import FirstNodes
from poolwise.policies.placement.nvme.policies import NvmeFirstFit
from poolwise.schedulers.composition import CompositionScheduler
from poolwise.schedulers.list import ListScheduler
from poolwise.traces.generators.nvme_mix import NvmeMix

OPENING_LOAD = 0.7
"""Load that opens the measurement window when the ideal load first reaches it."""
TOLERANCE = 0.005
FARTHEST = 1000.0
"""Largest ratio of a gap to the initial guess, or of the guess to a gap, at which the search stops."""
_RESOURCES = ("cores", "bandwidth", "storage")


@dataclass(frozen=True)
class IdealLoad:
    """The load of a workload on the ideal machine.

    Attributes
    ----------
    load : cores of the running jobs divided by all cores, mean over the window
    window : from the time at which the load first reaches 0.7 to the last arrival; all arrivals if the load never reaches it
    opened : whether the load reaches 0.7
    """

    load: float
    window: Window
    opened: bool

    def population(self, workload: Workload) -> BoolArray:
        """Return a mask of the jobs, (n_job,), that arrive in the window."""
        inside: BoolArray = (workload.submit >= self.window.begin) & (workload.submit <= self.window.end)
        return inside


def ideal_load(workload: Workload, machine: Machine, *, all_resources: bool = False) -> IdealLoad:
    """Measure the load of a workload on the ideal counterpart of a machine.

    Parameters
    ----------
    workload, machine
        The workload, and the machine whose resources are pooled in the ideal machine.
    all_resources
        Also limit bandwidth and storage capacity, start any job that fits, and open the window when any of the three loads
        reaches 0.7, as the authors' simulator does. By default, only cores count, and jobs start in order of arrival.
    """
    ideal = _ideal_machine(machine, all_resources)
    bare = workload if all_resources else replace(workload, requests={"cores": workload.request("cores")})
    any_that_fits = CompositionScheduler(FCFS(), NvmeFirstFit(share=True))
    in_order = ListScheduler(FCFS(), NoBackfill(), FirstNodes())
    schedule = simulate(bare, ideal, any_that_fits if all_resources else in_order).schedule
    opening = min(_reaches(schedule, name) for name in (_RESOURCES if all_resources else ("cores",)))
    last = int(workload.submit.max())
    opened = opening < last
    window = Window(int(opening) if opened else int(workload.submit.min()), last)
    return IdealLoad(mean_load(schedule, "cores", window), window, opened)


def _ideal_machine(machine: Machine, all_resources: bool) -> Machine:
    """Return a machine with all cores in one node and, with `all_resources`, all devices in one device."""
    total = [int(machine.capacity[:, machine.resource(n)].sum()) if n in machine.resources else 0 for n in _RESOURCES]
    build = MachineBuilder(f"ideal node for {machine.name}", _RESOURCES)
    build.node("node", cores=total[0])
    if all_resources:
        build.device("device", bandwidth=total[1], storage=total[2])
    return Machine.of(build)


def _reaches(schedule: Schedule, resource: str) -> float:
    """Return the time (ns) at which the load of a resource first reaches the opening load; infinity if it never does."""
    total = int(schedule.machine.capacity[:, schedule.machine.resource(resource)].sum())
    demand = schedule.workload.request(resource)[schedule.job]
    times = np.concatenate([schedule.start, schedule.end])
    change = np.concatenate([demand, -demand])
    order = np.lexsort((change, times))  # releases of an instant come before its starts
    level: FloatArray = np.cumsum(change[order]) / max(total, 1)
    reached = np.flatnonzero(level >= OPENING_LOAD)
    return float(times[order][reached[0]]) if len(reached) else float("inf")


@dataclass(frozen=True)
class Calibration:
    """A mix whose ideal load is close to a target, or the closest mix found if the target was not reached.

    Attributes
    ----------
    mix : the mix with the calibrated gap
    target : target load
    ideal : load of the mix
    runs : number of ideal runs
    """

    mix: NvmeMix
    target: float
    ideal: IdealLoad
    runs: int

    @property
    def reached(self) -> bool:
        """True if the load is within the tolerance of the target."""
        return abs(self.ideal.load - self.target) <= TOLERANCE


def calibrate(mix: NvmeMix, machine: Machine, target: float, *, all_resources: bool = False, most: int = 40) -> Calibration:
    """Scale the gaps of a mix by one factor until its ideal load is the target.

    The random draws of the gaps are fixed by the seed, so only their scale changes. The load falls as gaps grow, almost
    monotonically (the window moves). The search brackets the target, then bisects; its guesses are on the line between the ends
    of the bracket.

    Parameters
    ----------
    mix, machine
        The mix, and the machine whose ideal counterpart runs it.
    target
        Mean ideal load, in (0, 1).
    all_resources
        As in `ideal_load`.
    most
        Maximum number of ideal runs.
    """
    loads: dict[float, IdealLoad] = {}

    def miss(gap: float) -> float:
        workload = replace(mix, mean_gap_s=gap).generate()
        loads[gap] = ideal_load(workload, machine, all_resources=all_resources)
        return loads[gap].load - target

    cores = int(machine.capacity[:, machine.resource("cores")].sum())
    workload = mix.generate()
    work_s = float((workload.request("cores") * (workload.duration / 1e9)).sum())
    _bisect(miss, work_s / (len(workload) * cores * target), most)
    gap = min(loads, key=lambda g: (abs(loads[g].load - target), g))
    return Calibration(replace(mix, mean_gap_s=gap), target, loads[gap], len(loads))


def _bisect(miss: Callable[[float], float], guess: float, most: int) -> None:
    """Search for a root of a decreasing function near a guess, until it is within the tolerance or after `most` calls."""
    value, runs, step = miss(guess), 1, 1.06
    low, high = [guess, value], [guess, value]  # gap and value: gap too small (load above the target), gap too large
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
