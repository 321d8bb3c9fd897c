"""Compiled engine of list scheduling on composed devices, with the result of the reference engine.

`unsupported_composition` lists what the engine cannot run. The engine converts the run to arrays (`columns`), replays them in
the kernel, and converts the record to a `Schedule` that equals that of the reference engine byte for byte.
"""

from __future__ import annotations

import time
from functools import cache

import numpy as np

from poolwise.arrays import BoolArray, IntArray
from poolwise.engines import compiled_engine
from poolwise.engines.compiled_engine import RunSpec, no_engine_for, unsupported_by_all
from poolwise.engines.compositions.columns import composition_arrays, distinct_needs, kind_column, shapes_of, tables_of
from poolwise.engines.progress import Obstacle
from poolwise.errors import InputError
from poolwise.interfaces import PlacementPolicy
from poolwise.kernels.compositions.state import LATE
from poolwise.model import JobTable, Machine, MachineBuilder, Outcome, Schedule, Workload
from poolwise.performance.ideal import Ideal
from poolwise.performance.nvme_sharing import NvmeSharing
from poolwise.platforms.simulated import beyond_horizon
from poolwise.policies.order.priorities import EDF, FCFS
from poolwise.policies.placement.nvme.layout import DeviceLayout, device_layout
from poolwise.policies.placement.nvme.policies import (
    NvmeDisaggregationAware,
    NvmeFirstFit,
    NvmeMaximizeComposition,
    NvmeMinimizeFragmentation,
)
from poolwise.schedulers.composition import CompositionScheduler

FOLDER = "compositions"
"""Folder of the kernel package."""
EXACT = 2**51
"""Bound on requested times (ns) below which float64 represents every time of a run exactly."""


def unsupported_composition(spec: RunSpec) -> Obstacle | None:
    """Return why the kernel does not support a run; None if it does.

    Subclasses of the scheduler, of a placement or of a model are not supported, because they may behave differently.
    """
    if type(spec.scheduler) is not CompositionScheduler or not _has_devices(spec.machine):
        return no_engine_for(spec.scheduler)
    if obstacle := unsupported_by_all(spec):
        return obstacle
    why = _unsupported_settings(spec, spec.scheduler) or _unsupported_jobs(spec)
    how = "supported: the nvme_ placements on devices of one size per location, orders edf and fcfs, model nvme_sharing"
    return Obstacle(why, how) if why else None


def _has_devices(machine: Machine) -> bool:
    """Return whether a machine has shared nodes and devices; if it has no shared nodes, the reference engine reports that."""
    try:
        return len(device_layout(machine).devices) > 0
    except InputError:
        return False


def _unsupported_settings(spec: RunSpec, scheduler: CompositionScheduler) -> str:
    """Return why the kernel does not support the scheduler, the model or the machine; empty if it does."""
    if spec.pass_per_event:
        return "pass_per_event is set"
    if spec.initial is not None:
        return "the run starts from an initial state"
    if type(scheduler.order) not in (EDF, FCFS):
        return f"order {type(scheduler.order).__name__} has no kernel on composed devices"
    if why := _unsupported_placement(scheduler.placement):
        return why
    if type(spec.model) not in (NvmeSharing, Ideal):
        return f"performance model {type(spec.model).__name__} has no kernel on composed devices"
    if spec.estimate is not spec.model:
        return "the scheduler's estimates differ from the model"
    return _unsupported_machine(device_layout(spec.machine))


def _unsupported_placement(placement: PlacementPolicy) -> str:
    """Return why the kernel does not support a placement; empty if it does."""
    parts: list[PlacementPolicy] = [placement]
    if isinstance(placement, NvmeDisaggregationAware):
        if placement.count_waiting:
            return "count_waiting is set"
        parts += [placement.maximize, placement.minimize]
    kinds = (NvmeDisaggregationAware, NvmeFirstFit, NvmeMaximizeComposition, NvmeMinimizeFragmentation)
    other = next((type(part).__name__ for part in parts if type(part) not in kinds), "")
    return f"placement {other} has no kernel on composed devices" if other else ""


def _unsupported_machine(layout: DeviceLayout) -> str:
    """Return why the kernel does not support the devices of a machine; empty if it does."""
    if any(fabric >= 0 for fabric in layout.fabric):
        return "a fabric limits the bandwidth of devices"
    sizes = layout.machine.capacity[layout.devices][:, [layout.bandwidth, layout.storage]].tolist()
    places = [layout.place[device] for device in layout.devices.tolist()]
    if len({(place, *size) for place, size in zip(places, sizes, strict=True)}) > len(layout.inside):
        return "the devices of a location differ in size"
    if any(home >= 0 and home not in layout.node_index for home in layout.inside):
        return "a device is inside a node without cores"
    return ""


def _unsupported_jobs(spec: RunSpec) -> str:
    """Return why the kernel does not support the jobs; empty if it does."""
    workload, table, layout = spec.workload, spec.workload.table, device_layout(spec.machine)
    if not len(workload):
        return "the workload is empty"
    if bool((workload.tasks > 1).any()):
        return "a job has several tasks"
    if not np.array_equal(workload.duration, workload.requested):
        return "run times differ from the requested times"
    if not 0 < int(workload.requested.min()) <= int(workload.requested.max()) < EXACT:
        return "requested times must be above 0 and below 26 days"
    tables = tables_of(spec.model, np.unique(kind_column(table)).tolist())
    if any(sharing is not None and sharing.partners for sharing in tables):
        return "kinds of workloads share compositions with partners"
    first, _ = distinct_needs(table)
    if not bool(_fits(table, first, spec.machine, layout, spec.scheduler).all()):
        return "a job does not fit on the empty machine"
    slowdown = shapes_of(table, first, len(layout.devices), spec.model).slowdown
    return "" if bool(((slowdown > -1) & np.isfinite(slowdown)).all()) else "the model gives an invalid slowdown"


def _fits(table: JobTable, first: IntArray, machine: Machine, layout: DeviceLayout, scheduler: object) -> BoolArray:
    """Return whether each need fits on the empty machine, (n_shape,)."""
    assert isinstance(scheduler, CompositionScheduler)
    cores, bandwidth, storage = (table.request(name)[first] for name in ("cores", "bandwidth", "storage"))
    installed = machine.capacity[layout.nodes, layout.cores]
    on_devices: BoolArray = np.zeros(len(first), dtype=np.bool_)
    for place, home in enumerate(layout.inside):
        devices = [device for device in layout.devices.tolist() if layout.place[device] == place]
        count = 1 if isinstance(scheduler.placement, NvmeFirstFit) else len(devices)
        sizes = machine.capacity[devices[:count]]
        room = installed.max() if home < 0 else machine.capacity[home, layout.cores]
        wide, large = sizes[:, layout.bandwidth].sum() >= bandwidth, sizes[:, layout.storage].sum() >= storage
        on_devices |= wide & large & (room >= cores)
    fits: BoolArray = (installed.max() >= cores) & (on_devices | ((bandwidth == 0) & (storage == 0)))
    return fits


def replay_composition(spec: RunSpec) -> tuple[Schedule, float]:
    """Replay a supported run; return the schedule, and the elapsed seconds without compiling and loading.

    Raises InputError for a run beyond 290 years, as the reference engine does.
    """
    load_compositions()
    begun = time.perf_counter()
    schedule = _replay(spec)
    return schedule, time.perf_counter() - begun


def _replay(spec: RunSpec) -> Schedule:
    from poolwise.kernels.compositions.replay import replay_compositions

    built = composition_arrays(spec)
    if replay_compositions(built) == LATE:
        raise beyond_horizon()
    runs, started = built.runs, int(built.now.started)
    rows = int(runs.offset[started])
    return Schedule(
        machine=spec.machine,
        workload=spec.workload,
        job=runs.job[:started],
        start=runs.start[:started],
        end=runs.end[:started],
        tasks=np.ones(started, dtype=np.int64),
        outcome=(Outcome.FINISHED,) * started,
        offset=runs.offset[: started + 1],
        owner=runs.owner[:rows].copy(),
        resource=runs.resource[:rows].copy(),
        amount=runs.amount[:rows].copy(),
        rejected={},
        waiting=tuple(np.sort(built.jobs.by_rank[built.queue[: int(built.now.waiting)]]).tolist()),
        passes=int(built.now.passes),
        refused={},
    )


@cache
def load_compositions() -> None:
    """Load the kernel; if it is not cached on this computer, compile it and log that."""
    compiled_engine.load(FOLDER, "all", "composed devices", 6.0, lambda: _replay(_minimal_run()))


def load_for_composition(spec: RunSpec) -> None:
    """Load the kernel of a run."""
    load_compositions()


def _minimal_run() -> RunSpec:
    """Return a run of one job, which reaches all steps of the kernel."""
    build = MachineBuilder("one device", ("cores", "bandwidth", "storage"))
    build.node("node", cores=1)
    build.device("device", bandwidth=1, storage=1)
    ones, model = np.ones(1, dtype=np.int64), Ideal()
    jobs = Workload.of(ones, ones, requests={"cores": ones, "bandwidth": ones})
    return RunSpec(jobs, Machine.of(build), CompositionScheduler(FCFS()), model, model)
