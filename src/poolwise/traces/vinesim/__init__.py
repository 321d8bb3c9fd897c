"""VineSim's file formats (deployments, traces, affinities, prices, power), and the machine and workload built from them."""

from poolwise.traces.vinesim.arrivals import InterArrival
from poolwise.traces.vinesim.case import VineSimCase
from poolwise.traces.vinesim.format import VineSimFormat
from poolwise.traces.vinesim.tables import (
    Power,
    read_affinity,
    read_power,
    read_prices,
    write_affinity,
    write_power,
)
from poolwise.traces.vinesim.tasks import TaskList, read_tasks
from poolwise.traces.vinesim.types import Types
from poolwise.traces.vinesim.units import Bandwidths, UnitList, machine_of_units, read_deployment
from poolwise.traces.vinesim.workload import workload_of_tasks

__all__ = [
    "Bandwidths",
    "InterArrival",
    "Power",
    "TaskList",
    "Types",
    "UnitList",
    "VineSimCase",
    "VineSimFormat",
    "machine_of_units",
    "read_affinity",
    "read_deployment",
    "read_power",
    "read_prices",
    "read_tasks",
    "workload_of_tasks",
    "write_affinity",
    "write_power",
]
