"""Conversion of a run on composed devices to the arrays of its kernel."""

from __future__ import annotations

import numpy as np

from poolwise.arrays import FloatArray, IntArray
from poolwise.engines.compiled_engine import RunSpec
from poolwise.engines.kernel_arrays import blank, read_only, zeros_of
from poolwise.errors import PolicyError
from poolwise.interfaces import PerformanceModel, PlacementPolicy
from poolwise.kernels.common.state import record
from poolwise.kernels.compositions import state
from poolwise.model import JobTable, Machine, Queue
from poolwise.performance.nvme_sharing import NvmeSharing
from poolwise.performance.sharing_table import SharingTable
from poolwise.platforms.simulated import Simulation
from poolwise.policies.placement.nvme.layout import DeviceLayout, device_layout
from poolwise.policies.placement.nvme.policies import (
    GIGABYTE,
    NvmeDisaggregationAware,
    NvmeFirstFit,
    NvmeMaximizeComposition,
    NvmeMinimizeFragmentation,
)
from poolwise.quantities import NEVER
from poolwise.schedulers.composition import CompositionScheduler


def composition_arrays(spec: RunSpec) -> state.CompositionState:
    """Build the initial arrays of a run; a replay modifies them. Raises InputError or PolicyError as the order does."""
    scheduler, table, layout = spec.scheduler, spec.workload.table, device_layout(spec.machine)
    assert isinstance(scheduler, CompositionScheduler)
    n, n_device = len(spec.workload), len(layout.devices)
    needs, shape = distinct_needs(table)
    rows = n * (1 + 2 * n_device)
    floats, places = np.zeros(n), [blank(rows) for _ in range(3)]
    return state.CompositionState(
        jobs=_arriving(spec, scheduler, shape),
        shapes=shapes_of(table, needs, n_device, spec.model),
        devices=_devices(spec.machine, layout),
        compositions=zeros_of(
            state.CompositionArrays,
            n_device,
            lead=np.full(n_device, -1),
            bandwidth_left=spec.machine.capacity[layout.devices, layout.bandwidth].copy(),
            storage_left=spec.machine.capacity[layout.devices, layout.storage].copy(),
        ),
        runs=zeros_of(
            state.SharingRuns,
            n,
            work=floats,
            pace=floats.copy(),
            offset=blank(n + 1),
            owner=places[0],
            resource=places[1],
            amount=places[2],
        ),
        cores=spec.machine.capacity[layout.nodes, layout.cores].copy(),
        queue=blank(n),
        refused=blank(2 * len(needs)),
        rules=_rules(scheduler.placement, layout, spec.model),
        now=record(state.CompositionNow),
    )


def distinct_needs(table: JobTable) -> tuple[IntArray, IntArray]:
    """Return the first job of each distinct need, (n_shape,), and the need of each job, (n_job,)."""
    kinds = np.unique(kind_column(table), return_inverse=True)[1]
    columns = [table.request(name) for name in ("cores", "bandwidth", "storage")]
    stacked = np.stack([*columns, table.requested, peak_column(table), kinds.reshape(-1)], axis=1)
    _, first, shape = np.unique(stacked, axis=0, return_index=True, return_inverse=True)
    return first, shape.reshape(-1)


def kind_column(table: JobTable) -> np.ndarray[tuple[int], np.dtype[np.str_]]:
    """Return the kind of each job, (n_job,); "" if the table has no kinds."""
    kinds = table.attributes.get("kind")
    return np.full(len(table), "") if kinds is None else kinds.astype(np.str_)


def peak_column(table: JobTable) -> IntArray:
    """Return the largest bandwidth that each job can use (MB/s), (n_job,)."""
    peak = table.attributes.get("peak_bandwidth")
    return table.request("bandwidth") if peak is None else peak.astype(np.int64)


def tables_of(model: PerformanceModel, kinds: list[str]) -> list[SharingTable | None]:
    """Return the sharing table of each kind; None for kinds without one."""
    return [model.table(kind) if isinstance(model, NvmeSharing) else None for kind in kinds]


def shapes_of(table: JobTable, first: IntArray, n_device: int, model: PerformanceModel) -> state.NeedArrays:
    """Build the arrays of the distinct needs, with the slowdowns that the model gives them."""
    kinds = kind_column(table)[first].tolist()
    tables, names = tables_of(model, kinds), list(dict.fromkeys(kinds))
    most = np.array([0 if sharing is None else sharing.sharers for sharing in tables], dtype=np.int64)
    requested, slowdown = table.requested[first], np.zeros((len(first), n_device + 1, int(most.max(initial=0)) + 1))
    for k, sharing in enumerate(tables):
        if sharing is not None:
            slowdown[k, 1:, 1 : sharing.sharers + 1] = _slowdowns(sharing, n_device, int(requested[k]))
    kind = np.array([-1 if sharing is None else names.index(name) for name, sharing in zip(kinds, tables, strict=True)])
    return state.NeedArrays(
        cores=read_only(table.request("cores")[first]),
        bandwidth=read_only(table.request("bandwidth")[first]),
        storage=read_only(table.request("storage")[first]),
        peak=read_only(peak_column(table)[first]),
        requested=read_only(requested),
        kind=read_only(kind),
        most=read_only(most),
        slowdown=read_only(slowdown),
    )


def _slowdowns(sharing: SharingTable, n_device: int, duration: int) -> FloatArray:
    """Return slowdowns by size of the composition, (n_device, n_sharers), as `nvme_sharing.relative` computes them."""
    rows = np.minimum(np.arange(n_device), len(sharing.seconds) - 1)
    slowdowns: FloatArray = np.array(sharing.seconds, dtype=np.float64)[rows] * 1e9 / duration - 1.0
    return slowdowns


def _arriving(spec: RunSpec, scheduler: CompositionScheduler, shape: IntArray) -> state.ArrivingJobs:
    """Build the arrays of the jobs, with their positions in the queue order."""
    table, n = spec.workload.table, len(spec.workload)
    queue = Queue.of(table, np.arange(n))
    priority = scheduler.order.priority(queue, Simulation(spec.workload, spec.machine, spec.model).snapshot())
    if priority.shape != queue.jobs.shape or bool(np.isnan(priority).any()):
        order = type(scheduler.order).__name__
        raise PolicyError(f"{order} must return {n} priorities that are numbers", by=scheduler.order)
    by_rank = queue.jobs[np.argsort(-priority, kind="stable")]
    rank = np.empty(n, dtype=np.int64)
    rank[by_rank] = np.arange(n)
    due = table.attributes.get("deadline")
    deadline = np.full(n, NEVER) if due is None else due.astype(np.int64)
    return state.ArrivingJobs(*map(read_only, (spec.workload.submit, deadline, shape, rank, by_rank)))


def _devices(machine: Machine, layout: DeviceLayout) -> state.DeviceArrays:
    """Build the arrays of devices, nodes and locations."""
    place = np.array([layout.place[device] for device in layout.devices.tolist()], dtype=np.int64)
    inside = np.array([layout.node_index.get(home, -1) for home in layout.inside], dtype=np.int64)
    lowest = layout.devices[np.unique(place, return_index=True)[1]]
    return state.DeviceArrays(
        place=read_only(place),
        owner=read_only(layout.devices),
        inside=read_only(inside),
        bandwidth=read_only(machine.capacity[lowest, layout.bandwidth]),
        storage=read_only(machine.capacity[lowest, layout.storage]),
        free=np.bincount(place, minlength=len(inside)),
        installed=read_only(machine.capacity[layout.nodes, layout.cores]),
        node_owner=read_only(layout.nodes),
    )


def _rules(placement: PlacementPolicy, layout: DeviceLayout, model: PerformanceModel) -> state.CompositionRules:
    """Return the settings of the placement policy and of the model."""
    maximize, minimize = NvmeMaximizeComposition(), NvmeMinimizeFragmentation()
    policy, share, capacity_alone = state.FIRST_FIT, False, False
    match placement:
        case NvmeFirstFit():
            share = placement.share
        case NvmeMaximizeComposition():
            policy, maximize = state.MAXIMIZE, placement
        case NvmeMinimizeFragmentation():
            policy, minimize = state.MINIMIZE, placement
        case NvmeDisaggregationAware():
            policy, capacity_alone = state.AWARE, placement.capacity_alone
            maximize, minimize = placement.maximize, placement.minimize
    return state.CompositionRules(
        policy=policy,
        share=int(share),
        smallest=int(maximize.smallest_k_meeting_deadline),
        each_parameter=int(maximize.each_parameter),
        fitness_as_printed=int(maximize.fitness_as_printed),
        alpha_as_printed=int(minimize.alpha_as_printed),
        late_maximize=int(maximize.late_shares),
        late_minimize=int(minimize.late_shares),
        capacity_alone=int(capacity_alone),
        changes=int(isinstance(model, NvmeSharing) and not model.fixed_at_start),
        extends=int(maximize.max_extension is not None),
        max_extension=float(maximize.max_extension or 0.0),
        bandwidth_unit=layout.bandwidth_unit,
        storage_unit=layout.storage_unit,
        gigabyte=GIGABYTE,
        bandwidth_installed=max(layout.installed[0], 1),
        storage_installed=max(layout.installed[1], 1),
        cores_column=layout.cores,
        bandwidth_column=layout.bandwidth,
        storage_column=layout.storage,
    )
