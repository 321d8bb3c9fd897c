"""Shipped policies, one algorithm per file; `from poolwise.policies import FM` imports a class by its name.

Queue orders, backfills, placements, admissions and cost models of flow scheduling are here, and for authors of policies also
the schedulers and performance models. Code inside Poolwise imports each class from its own module instead: schedulers are above
this package, so that their names are found here only by text.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from poolwise.performance.affinity import Affinity
    from poolwise.performance.bandwidth_sharing import BandwidthSharing
    from poolwise.performance.combined import Combined
    from poolwise.performance.cpu_frequency import CpuFrequency, ProfiledMemory
    from poolwise.performance.device_network import DeviceNetwork
    from poolwise.performance.fetching import Fetching
    from poolwise.performance.ideal import Ideal
    from poolwise.performance.memory_profiles import MemoryProfiles
    from poolwise.performance.network_sharing import NetworkSharing
    from poolwise.performance.nvme_sharing import NvmeSharing
    from poolwise.performance.remote_memory import RemoteMemory
    from poolwise.performance.transfer import Transfer
    from poolwise.policies.admission.machine_limits import MachineLimits
    from poolwise.policies.backfill.conservative import Conservative
    from poolwise.policies.backfill.easy import Easy, EasyNoExtra
    from poolwise.policies.backfill.easy_nodes_only import EasyNodesOnly
    from poolwise.policies.backfill.none import NoBackfill
    from poolwise.policies.backfill.skip import Skip
    from poolwise.policies.backfill.slurm import SlurmBackfill
    from poolwise.policies.cost.best_fit import BestFit
    from poolwise.policies.cost.cpu_mem import CpuMem
    from poolwise.policies.cost.model import CostModel, Places, TaskClasses, Waiting
    from poolwise.policies.cost.octopus import Octopus
    from poolwise.policies.cost.quincy import Quincy
    from poolwise.policies.cost.utility import Utility
    from poolwise.policies.order.affine import Affine
    from poolwise.policies.order.areas import SmallestArea, SmallestMemoryArea
    from poolwise.policies.order.capped import Capped
    from poolwise.policies.order.classes import Classes
    from poolwise.policies.order.edf import EDF
    from poolwise.policies.order.multifactor.order import Multifactor
    from poolwise.policies.order.priorities import F1, FAIR, FCFS, FM, SJF, WFP3
    from poolwise.policies.placement.devices.pooled import Pooled
    from poolwise.policies.placement.devices.shares import DeviceShares
    from poolwise.policies.placement.memory.racks import RackPlacement
    from poolwise.policies.placement.nodes.placement import EmptiestNodes, FirstNodes, FullestNodes, PackedNodes, TreeNodes
    from poolwise.policies.placement.nvme.disaggregation_aware import NvmeDisaggregationAware
    from poolwise.policies.placement.nvme.first_fit import NvmeFirstFit
    from poolwise.policies.placement.nvme.maximize_composition import NvmeMaximizeComposition
    from poolwise.policies.placement.nvme.minimize_fragmentation import NvmeMinimizeFragmentation
    from poolwise.policies.placement.units.closer_to_data import CloserToData
    from poolwise.policies.placement.units.delay import Delay
    from poolwise.policies.placement.units.earliest_finish import EarliestFinish
    from poolwise.policies.placement.units.flat import Flat
    from poolwise.policies.placement.units.high import High
    from poolwise.policies.placement.units.pref import Pref

_CLASSES = {
    "performance.affinity": ("Affinity",),
    "performance.bandwidth_sharing": ("BandwidthSharing",),
    "performance.combined": ("Combined",),
    "performance.cpu_frequency": ("CpuFrequency", "ProfiledMemory"),
    "performance.device_network": ("DeviceNetwork",),
    "performance.fetching": ("Fetching",),
    "performance.ideal": ("Ideal",),
    "performance.memory_profiles": ("MemoryProfiles",),
    "performance.network_sharing": ("NetworkSharing",),
    "performance.nvme_sharing": ("NvmeSharing",),
    "performance.remote_memory": ("RemoteMemory",),
    "performance.transfer": ("Transfer",),
    "policies.admission.machine_limits": ("MachineLimits",),
    "policies.backfill.conservative": ("Conservative",),
    "policies.backfill.easy": ("Easy", "EasyNoExtra"),
    "policies.backfill.easy_nodes_only": ("EasyNodesOnly",),
    "policies.backfill.none": ("NoBackfill",),
    "policies.backfill.skip": ("Skip",),
    "policies.backfill.slurm": ("SlurmBackfill",),
    "policies.cost.best_fit": ("BestFit",),
    "policies.cost.cpu_mem": ("CpuMem",),
    "policies.cost.model": ("CostModel", "Places", "TaskClasses", "Waiting"),
    "policies.cost.octopus": ("Octopus",),
    "policies.cost.quincy": ("Quincy",),
    "policies.cost.utility": ("Utility",),
    "policies.order.affine": ("Affine",),
    "policies.order.areas": ("SmallestArea", "SmallestMemoryArea"),
    "policies.order.capped": ("Capped",),
    "policies.order.classes": ("Classes",),
    "policies.order.edf": ("EDF",),
    "policies.order.multifactor.order": ("Multifactor",),
    "policies.order.priorities": ("F1", "FAIR", "FCFS", "FM", "SJF", "WFP3"),
    "policies.placement.devices.pooled": ("Pooled",),
    "policies.placement.devices.shares": ("DeviceShares",),
    "policies.placement.memory.racks": ("RackPlacement",),
    "policies.placement.nodes.placement": ("EmptiestNodes", "FirstNodes", "FullestNodes", "PackedNodes", "TreeNodes"),
    "policies.placement.nvme.disaggregation_aware": ("NvmeDisaggregationAware",),
    "policies.placement.nvme.first_fit": ("NvmeFirstFit",),
    "policies.placement.nvme.maximize_composition": ("NvmeMaximizeComposition",),
    "policies.placement.nvme.minimize_fragmentation": ("NvmeMinimizeFragmentation",),
    "policies.placement.units.closer_to_data": ("CloserToData",),
    "policies.placement.units.delay": ("Delay",),
    "policies.placement.units.earliest_finish": ("EarliestFinish",),
    "policies.placement.units.flat": ("Flat",),
    "policies.placement.units.high": ("High",),
    "policies.placement.units.pref": ("Pref",),
    "schedulers.batch": ("BatchScheduler",),
    "schedulers.composition": ("CompositionScheduler",),
    "schedulers.dispatch": ("Dispatch",),
    "schedulers.flow.scheduler": ("Firmament", "FlowScheduler"),
    "schedulers.greedy": ("LeastAllocated", "LocalFirstRandom"),
    "schedulers.keep_tolerance": ("KeepTolerance",),
    "schedulers.list": ("ListScheduler",),
    "schedulers.list_flow": ("ListFlow",),
    "schedulers.usage_based": ("UsageBased",),
}
"""Module, without the package's name -> its classes that are offered here; each is imported when it is first used."""
_MODULE_OF = {name: f"poolwise.{module}" for module, names in _CLASSES.items() for name in names}


__all__ = [
    "EDF",
    "F1",
    "FAIR",
    "FCFS",
    "FM",
    "SJF",
    "WFP3",
    "Affine",
    "Affinity",
    "BandwidthSharing",
    "BatchScheduler",
    "BestFit",
    "Capped",
    "Classes",
    "CloserToData",
    "Combined",
    "CompositionScheduler",
    "Conservative",
    "CostModel",
    "CpuFrequency",
    "CpuMem",
    "Delay",
    "DeviceNetwork",
    "DeviceShares",
    "Dispatch",
    "EarliestFinish",
    "Easy",
    "EasyNoExtra",
    "EasyNodesOnly",
    "EmptiestNodes",
    "Fetching",
    "Firmament",
    "FirstNodes",
    "Flat",
    "FlowScheduler",
    "FullestNodes",
    "High",
    "Ideal",
    "KeepTolerance",
    "LeastAllocated",
    "ListFlow",
    "ListScheduler",
    "LocalFirstRandom",
    "MachineLimits",
    "MemoryProfiles",
    "Multifactor",
    "NetworkSharing",
    "NoBackfill",
    "NvmeDisaggregationAware",
    "NvmeFirstFit",
    "NvmeMaximizeComposition",
    "NvmeMinimizeFragmentation",
    "NvmeSharing",
    "Octopus",
    "PackedNodes",
    "Places",
    "Pooled",
    "Pref",
    "ProfiledMemory",
    "Quincy",
    "RackPlacement",
    "RemoteMemory",
    "Skip",
    "SlurmBackfill",
    "SmallestArea",
    "SmallestMemoryArea",
    "TaskClasses",
    "Transfer",
    "TreeNodes",
    "UsageBased",
    "Utility",
    "Waiting",
]


def __getattr__(name: str) -> Any:
    if name not in _MODULE_OF:
        raise AttributeError(f"module 'poolwise.policies' has no attribute '{name}'")
    found = getattr(import_module(_MODULE_OF[name]), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return __all__
