"""Shipped policies; `from poolwise.policies import FM` imports a class by its name.

Queue orders, backfills, placements, admissions and cost models of flow scheduling are here, and for authors of policies also
the schedulers and performance models. Code inside Poolwise imports each class from its own module instead: schedulers are above
this package, so that their names are found here only by text.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from poolwise.performance.affinity import Affinity as Affinity
    from poolwise.performance.bandwidth_sharing import BandwidthSharing as BandwidthSharing
    from poolwise.performance.combined import Combined as Combined
    from poolwise.performance.cpu_frequency import CpuFrequency as CpuFrequency
    from poolwise.performance.cpu_frequency import ProfiledMemory as ProfiledMemory
    from poolwise.performance.device_network import DeviceNetwork as DeviceNetwork
    from poolwise.performance.fetching import Fetching as Fetching
    from poolwise.performance.ideal import Ideal as Ideal
    from poolwise.performance.memory_profiles import MemoryProfiles as MemoryProfiles
    from poolwise.performance.network_sharing import NetworkSharing as NetworkSharing
    from poolwise.performance.nvme_sharing import NvmeSharing as NvmeSharing
    from poolwise.performance.remote_memory import RemoteMemory as RemoteMemory
    from poolwise.performance.transfer import Transfer as Transfer
    from poolwise.policies.admission.machine_limits import MachineLimits as MachineLimits
    from poolwise.policies.backfill.conservative import Conservative as Conservative
    from poolwise.policies.backfill.easy import Easy as Easy
    from poolwise.policies.backfill.easy import EasyNodesOnly as EasyNodesOnly
    from poolwise.policies.backfill.easy import EasyNoExtra as EasyNoExtra
    from poolwise.policies.backfill.none import NoBackfill as NoBackfill
    from poolwise.policies.backfill.skip import Skip as Skip
    from poolwise.policies.backfill.slurm import SlurmBackfill as SlurmBackfill
    from poolwise.policies.cost.baselines import BestFit as BestFit
    from poolwise.policies.cost.baselines import CpuMem as CpuMem
    from poolwise.policies.cost.baselines import Octopus as Octopus
    from poolwise.policies.cost.baselines import Quincy as Quincy
    from poolwise.policies.cost.model import CostModel as CostModel
    from poolwise.policies.cost.model import Places as Places
    from poolwise.policies.cost.model import TaskClasses as TaskClasses
    from poolwise.policies.cost.model import Waiting as Waiting
    from poolwise.policies.cost.utility import Utility as Utility
    from poolwise.policies.order.affine import Affine as Affine
    from poolwise.policies.order.multifactor.order import Multifactor as Multifactor
    from poolwise.policies.order.priorities import EDF as EDF
    from poolwise.policies.order.priorities import F1 as F1
    from poolwise.policies.order.priorities import FAIR as FAIR
    from poolwise.policies.order.priorities import FCFS as FCFS
    from poolwise.policies.order.priorities import FM as FM
    from poolwise.policies.order.priorities import SJF as SJF
    from poolwise.policies.order.priorities import WFP3 as WFP3
    from poolwise.policies.order.priorities import Capped as Capped
    from poolwise.policies.order.priorities import Classes as Classes
    from poolwise.policies.order.priorities import SmallestArea as SmallestArea
    from poolwise.policies.order.priorities import SmallestMemoryArea as SmallestMemoryArea
    from poolwise.policies.placement.devices.pooled import Pooled as Pooled
    from poolwise.policies.placement.devices.shares import DeviceShares as DeviceShares
    from poolwise.policies.placement.memory.racks import RackPlacement as RackPlacement
    from poolwise.policies.placement.nodes.placement import EmptiestNodes as EmptiestNodes
    from poolwise.policies.placement.nodes.placement import FirstNodes as FirstNodes
    from poolwise.policies.placement.nodes.placement import FullestNodes as FullestNodes
    from poolwise.policies.placement.nodes.placement import PackedNodes as PackedNodes
    from poolwise.policies.placement.nodes.placement import TreeNodes as TreeNodes
    from poolwise.policies.placement.nvme.policies import NvmeDisaggregationAware as NvmeDisaggregationAware
    from poolwise.policies.placement.nvme.policies import NvmeFirstFit as NvmeFirstFit
    from poolwise.policies.placement.nvme.policies import NvmeMaximizeComposition as NvmeMaximizeComposition
    from poolwise.policies.placement.nvme.policies import NvmeMinimizeFragmentation as NvmeMinimizeFragmentation
    from poolwise.policies.placement.units.policies import CloserToData as CloserToData
    from poolwise.policies.placement.units.policies import Delay as Delay
    from poolwise.policies.placement.units.policies import EarliestFinish as EarliestFinish
    from poolwise.policies.placement.units.policies import Flat as Flat
    from poolwise.policies.placement.units.policies import High as High
    from poolwise.policies.placement.units.policies import Pref as Pref

_CLASSES = {
    "performance.affinity": "Affinity",
    "performance.bandwidth_sharing": "BandwidthSharing",
    "performance.combined": "Combined",
    "performance.cpu_frequency": "CpuFrequency ProfiledMemory",
    "performance.device_network": "DeviceNetwork",
    "performance.fetching": "Fetching",
    "performance.ideal": "Ideal",
    "performance.memory_profiles": "MemoryProfiles",
    "performance.network_sharing": "NetworkSharing",
    "performance.nvme_sharing": "NvmeSharing",
    "performance.remote_memory": "RemoteMemory",
    "performance.transfer": "Transfer",
    "policies.admission.machine_limits": "MachineLimits",
    "policies.backfill.conservative": "Conservative",
    "policies.backfill.easy": "Easy EasyNoExtra EasyNodesOnly",
    "policies.backfill.none": "NoBackfill",
    "policies.backfill.skip": "Skip",
    "policies.backfill.slurm": "SlurmBackfill",
    "policies.cost.baselines": "BestFit CpuMem Octopus Quincy",
    "policies.cost.model": "CostModel Places TaskClasses Waiting",
    "policies.cost.utility": "Utility",
    "policies.order.affine": "Affine",
    "policies.order.multifactor.order": "Multifactor",
    "policies.order.priorities": "EDF F1 FAIR FCFS FM SJF WFP3 Capped Classes SmallestArea SmallestMemoryArea",
    "policies.placement.devices.pooled": "Pooled",
    "policies.placement.devices.shares": "DeviceShares",
    "policies.placement.memory.racks": "RackPlacement",
    "policies.placement.nodes.placement": "EmptiestNodes FirstNodes FullestNodes PackedNodes TreeNodes",
    "policies.placement.nvme.policies": (
        "NvmeDisaggregationAware NvmeFirstFit NvmeMaximizeComposition NvmeMinimizeFragmentation"
    ),
    "policies.placement.units.policies": "CloserToData Delay EarliestFinish Flat High Pref",
    "schedulers.batch": "BatchScheduler",
    "schedulers.composition": "CompositionScheduler",
    "schedulers.dispatch": "Dispatch",
    "schedulers.flow.scheduler": "Firmament FlowScheduler",
    "schedulers.greedy": "LeastAllocated LocalFirstRandom",
    "schedulers.keep_tolerance": "KeepTolerance",
    "schedulers.list": "ListScheduler",
    "schedulers.list_flow": "ListFlow",
    "schedulers.usage_based": "UsageBased",
}
"""Module, without the package's name -> its classes that are offered here; each is imported when it is first used."""
_MODULE_OF = {name: f"poolwise.{module}" for module, names in _CLASSES.items() for name in names.split()}


__all__ = [*_MODULE_OF]


def __getattr__(name: str) -> Any:
    if name not in _MODULE_OF:
        raise AttributeError(f"module 'poolwise.policies' has no attribute '{name}'")
    found = getattr(import_module(_MODULE_OF[name]), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return __all__
