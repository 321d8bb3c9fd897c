"""Poolwise plans, simulates and runs workloads on disaggregated datacenters.

The functions cover what the command line does: `read` or `generate` jobs, `simulate` a schedule, `compare` runs, `run` a study,
`plan` a purchase, `forecast` start times and `place` a batch. `poolwise.policies` has the shipped policies, and
`poolwise.interfaces` what a policy of your own derives from. Names are imported when they are first used.
"""

from __future__ import annotations

import warnings
from importlib import import_module
from typing import TYPE_CHECKING, Any

from poolwise.version import __version__

if TYPE_CHECKING:
    from poolwise import conformance, interfaces, policies
    from poolwise.api import SimulatedRun, list_scheduler, simulate
    from poolwise.api.batches import BatchPlacement, place
    from poolwise.api.forecasts import forecast
    from poolwise.api.simulated_run import RunPlot
    from poolwise.comparison.compare import compare
    from poolwise.comparison.run_comparison import Comparison
    from poolwise.conformance import Check, check
    from poolwise.errors import InputError, PolicyError, PoolwiseError
    from poolwise.explain import Explanation, explain_wait
    from poolwise.files.machine import load_machine
    from poolwise.forecasting.answer import ForecastAnswer
    from poolwise.metrics import METRICS, Measure, Metric, Outcomes
    from poolwise.model import (
        InitialRun,
        Job,
        JobTable,
        Kind,
        Machine,
        MachineBuilder,
        MachineState,
        Placement,
        Queue,
        Refusal,
        Schedule,
        Snapshot,
        Start,
        Workload,
    )
    from poolwise.performance.device_profiles import learn as learn_device_profiles
    from poolwise.performance.device_profiles import read_device_profiles
    from poolwise.performance.ideal import Ideal
    from poolwise.performance.remote_memory import RemoteMemory
    from poolwise.plans.plan import PlanResult, ResolvedPlan, load_plan, plan
    from poolwise.report.notebook import figures, save_figures
    from poolwise.schedulers.list import ListScheduler
    from poolwise.studies import Study, StudyResult, load, run
    from poolwise.traces.generators import generate
    from poolwise.traces.read import read, stretch

_PUBLIC = {
    "poolwise.api.batches": "BatchPlacement place",
    "poolwise.api.forecasts": "forecast",
    "poolwise.api.simulated_run": "RunPlot SimulatedRun",
    "poolwise.api.simulation": "list_scheduler simulate",
    "poolwise.comparison.compare": "compare",
    "poolwise.comparison.run_comparison": "Comparison",
    "poolwise.conformance": "Check check",
    "poolwise.errors": "InputError PolicyError PoolwiseError",
    "poolwise.explain": "Explanation explain_wait",
    "poolwise.files.machine": "load_machine",
    "poolwise.forecasting.answer": "ForecastAnswer",
    "poolwise.metrics": "METRICS Measure Metric Outcomes",
    "poolwise.model": (
        "InitialRun Job JobTable Kind Machine MachineBuilder MachineState Placement Queue Refusal Schedule Snapshot "
        "Start Workload"
    ),
    "poolwise.performance.device_profiles": "learn_device_profiles read_device_profiles",
    "poolwise.performance.ideal": "Ideal",
    "poolwise.performance.remote_memory": "RemoteMemory",
    "poolwise.plans.plan": "PlanResult ResolvedPlan load_plan plan",
    "poolwise.report.notebook": "figures save_figures",
    "poolwise.schedulers.list": "ListScheduler",
    "poolwise.studies": "Study StudyResult load run",
    "poolwise.traces.generators": "generate",
    "poolwise.traces.read": "read stretch",
}
"""Module -> the names that it offers here. They are imported when they are used: the command line starts without NumPy."""
_MODULE_OF = {name: module for module, names in _PUBLIC.items() for name in names.split()}
_MODULES = ("conformance", "interfaces", "policies")
"""Modules that belong to the public interface."""
_NAMED_DIFFERENTLY = {"learn_device_profiles": "learn"}
"""Public name -> its name in its module."""
_DEPRECATED = {"Run": "SimulatedRun", "compare_runs": "compare", "run_plan": "plan"}
"""Former public name -> the name that replaces it. A former name works for one release, with a DeprecationWarning."""

__all__ = [
    "METRICS",
    "BatchPlacement",
    "Check",
    "Comparison",
    "Explanation",
    "ForecastAnswer",
    "Ideal",
    "InitialRun",
    "InputError",
    "Job",
    "JobTable",
    "Kind",
    "ListScheduler",
    "Machine",
    "MachineBuilder",
    "MachineState",
    "Measure",
    "Metric",
    "Outcomes",
    "Placement",
    "PlanResult",
    "PolicyError",
    "PoolwiseError",
    "Queue",
    "Refusal",
    "RemoteMemory",
    "ResolvedPlan",
    "RunPlot",
    "Schedule",
    "SimulatedRun",
    "Snapshot",
    "Start",
    "Study",
    "StudyResult",
    "Workload",
    "__version__",
    "check",
    "compare",
    "conformance",
    "explain_wait",
    "figures",
    "forecast",
    "generate",
    "interfaces",
    "learn_device_profiles",
    "list_scheduler",
    "load",
    "load_machine",
    "load_plan",
    "place",
    "plan",
    "policies",
    "read",
    "read_device_profiles",
    "run",
    "save_figures",
    "simulate",
    "stretch",
]


def __getattr__(name: str) -> Any:
    if name in _DEPRECATED:
        new = _DEPRECATED[name]
        warnings.warn(f"poolwise.{name} is deprecated: use poolwise.{new}", DeprecationWarning, stacklevel=2)
        name = new
    if name in _MODULES:
        return import_module(f"poolwise.{name}")
    if name not in _MODULE_OF:
        raise AttributeError(f"module 'poolwise' has no attribute '{name}'")
    found = getattr(import_module(_MODULE_OF[name]), _NAMED_DIFFERENTLY.get(name, name))
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return __all__
