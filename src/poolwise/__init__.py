"""Poolwise: plan, simulate and run workloads on disaggregated datacenters."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from poolwise.version import __version__

if TYPE_CHECKING:
    from poolwise.api import SimulatedRun, list_scheduler, simulate
    from poolwise.comparison.run_comparison import compare_runs
    from poolwise.conformance import check
    from poolwise.metrics import METRICS, Outcomes
    from poolwise.model import Job, Machine, Placement, Queue, Schedule, Snapshot, Workload
    from poolwise.performance.remote_memory import RemoteMemory
    from poolwise.plans.plan import load_plan, run_plan
    from poolwise.report.notebook import figures, save_figures
    from poolwise.schedulers.list import ListScheduler
    from poolwise.studies import load, run
    from poolwise.traces.read import read

# name -> module: imported when first used, so that the command line starts without NumPy
_PUBLIC = {
    "METRICS": "poolwise.metrics",
    "Job": "poolwise.model",
    "ListScheduler": "poolwise.schedulers.list",
    "Machine": "poolwise.model",
    "Outcomes": "poolwise.metrics",
    "Placement": "poolwise.model",
    "Queue": "poolwise.model",
    "RemoteMemory": "poolwise.performance.remote_memory",
    "Schedule": "poolwise.model",
    "SimulatedRun": "poolwise.api",
    "Snapshot": "poolwise.model",
    "Workload": "poolwise.model",
    "check": "poolwise.conformance",
    "compare_runs": "poolwise.comparison.run_comparison",
    "figures": "poolwise.report.notebook",
    "save_figures": "poolwise.report.notebook",
    "run_plan": "poolwise.plans.plan",
    "load_plan": "poolwise.plans.plan",
    "list_scheduler": "poolwise.api",
    "load": "poolwise.studies",
    "read": "poolwise.traces",
    "run": "poolwise.studies",
    "simulate": "poolwise.api",
}
_FORMER = {"Run": "SimulatedRun"}
"""Names that were once public -> what they are called now; `model.Run` is tasks of a job at work."""

__all__ = [
    "METRICS",
    "Job",
    "ListScheduler",
    "Machine",
    "Outcomes",
    "Placement",
    "Queue",
    "RemoteMemory",
    "Schedule",
    "SimulatedRun",
    "Snapshot",
    "Workload",
    "__version__",
    "check",
    "compare_runs",
    "figures",
    "list_scheduler",
    "load",
    "load_plan",
    "read",
    "run",
    "run_plan",
    "save_figures",
    "simulate",
]


def __getattr__(name: str) -> Any:
    name = _FORMER.get(name, name)
    if name in _PUBLIC:
        return getattr(import_module(_PUBLIC[name]), name)
    raise AttributeError(f"module 'poolwise' has no attribute '{name}'")


def __dir__() -> list[str]:
    return __all__
