"""A simulation case: a deployment, a trace, an affinity table and inter-arrival times, read together."""

from __future__ import annotations

from dataclasses import dataclass

from poolwise.arrays import FloatArray
from poolwise.model import Machine, Workload
from poolwise.performance.affinity import Affinity
from poolwise.performance.combined import Combined
from poolwise.performance.fetching import Fetching
from poolwise.performance.network_sharing import NetworkSharing
from poolwise.performance.transfer import Transfer
from poolwise.traces.vinesim.arrivals import InterArrival
from poolwise.traces.vinesim.tables import Power
from poolwise.traces.vinesim.tasks import TaskList
from poolwise.traces.vinesim.types import STANDARD, Types
from poolwise.traces.vinesim.units import Bandwidths, UnitList, machine_of_units
from poolwise.traces.vinesim.workload import workload_of_tasks


@dataclass(frozen=True, eq=False)
class VineSimCase:
    """Inputs of a simulation of tasks on units.

    Attributes
    ----------
    workload, machine : see `workload_of_tasks` and `machine_of_units`
    model : execution times of tasks from affinity and transfers
    estimate : the scheduler's estimate of them, without contention
    """

    workload: Workload
    machine: Machine
    model: Combined
    estimate: Combined

    @classmethod
    def of(
        cls,
        deployment: UnitList,
        tasks: TaskList,
        affinity: FloatArray,
        inter_arrival: str | float | InterArrival = 0,
        *,
        prices: FloatArray | None = None,
        power: Power | None = None,
        network: Bandwidths | None = None,
        types: Types = STANDARD,
        contended: bool = False,
        seed: int = 0,
        name: str = "deployment",
        trace: str = "trace",
    ) -> VineSimCase:
        """Build a case from its parts.

        Parameters
        ----------
        inter_arrival
            As in `InterArrival.parse`.
        network
            Bandwidths; by default those of the paper or, with `contended`, a network whose uplinks are as fast as the ports.
        contended
            Share the links among transfers, max-min fairly, instead of giving each transfer the full bandwidth.
        seed
            Random seed of the arrivals.

        Raises InputError for invalid inter-arrival times and for parts that do not match.
        """
        network = network if network is not None else Bandwidths(uplink=Bandwidths.port) if contended else Bandwidths()
        gaps = inter_arrival if isinstance(inter_arrival, InterArrival) else InterArrival.parse(inter_arrival)
        machine = machine_of_units(
            deployment, affinity, tasks.places, prices=prices, power=power, types=types, network=network, name=name
        )
        workload = workload_of_tasks(tasks, machine, gaps.times(int(tasks.first_of_job.sum()), seed), trace)
        uncontended = Combined((Affinity(), Transfer()))
        sharing = Combined((Affinity(), NetworkSharing(), Fetching()))
        return cls(workload, machine, sharing if contended else uncontended, uncontended)
