"""A simulation case: a deployment, a trace, an affinity table and inter-arrival times, read together."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from poolwise.arrays import FloatArray
from poolwise.model import Machine, Workload
from poolwise.performance.affinity import Affinity
from poolwise.performance.combined import Combined
from poolwise.performance.fetching import Fetching
from poolwise.performance.network_sharing import NetworkSharing
from poolwise.performance.transfer import Transfer
from poolwise.traces.vinesim import affinity as tables
from poolwise.traces.vinesim.arrivals import InterArrival
from poolwise.traces.vinesim.costs import Power, read_power, read_prices
from poolwise.traces.vinesim.deployment import UnitList, read_deployment
from poolwise.traces.vinesim.machine import Bandwidths, machine_of_units
from poolwise.traces.vinesim.tasks import TaskList, read_tasks
from poolwise.traces.vinesim.types import Types
from poolwise.traces.vinesim.workload import workload_of_tasks


@dataclass(frozen=True, eq=False)
class VineSimCase:
    """Inputs of a simulation of tasks on units.

    Attributes
    ----------
    machine, workload : see `machine_of_units` and `workload_of_tasks`
    model : execution times of tasks from affinity and transfers
    estimate : the scheduler's estimate of them, without contention
    """

    machine: Machine
    workload: Workload
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
        types: Types | None = None,
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
            Bandwidths; by default those of the paper, or with `contended` those with uplinks as fast as the ports.
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
        return cls(machine, workload, sharing if contended else uncontended, uncontended)


def load(
    trace: Path,
    deployment: Path,
    affinity: Path,
    inter_arrival: str | float = 0,
    *,
    affinity_kind: tables.AffinityKind = "absolute",
    prices: Path | None = None,
    power: Path | None = None,
    types: Path | None = None,
    network: Bandwidths | None = None,
    contended: bool = False,
    seed: int = 0,
) -> VineSimCase:
    """Read a case from its files; raise InputError with file, line and field."""
    names = Types.read(types) if types is not None else Types()
    return VineSimCase.of(
        read_deployment(deployment, names),
        read_tasks(trace, names),
        tables.read_affinity(affinity, affinity_kind, names),
        inter_arrival,
        prices=None if prices is None else read_prices(prices, names),
        power=None if power is None else read_power(power, names, tables.count_columns(affinity)),
        network=network,
        types=names,
        contended=contended,
        seed=seed,
        name=deployment.stem,
        trace=trace.stem,
    )
