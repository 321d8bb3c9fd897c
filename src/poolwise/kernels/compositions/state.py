"""Arrays of the composition kernel, grouped by subject. Their names and shapes are the interface of this package.

A composition is identified by its lowest device, its lead. Devices and nodes are numbered as in the device layout.
"""

from __future__ import annotations

from typing import NamedTuple

from poolwise.arrays import FloatArray, IntArray

# CompositionRules.policy
FIRST_FIT, MAXIMIZE, MINIMIZE, AWARE = range(4)
# Return values of `replay_compositions`
DONE, LATE = range(2)


class ArrivingJobs(NamedTuple):
    """Jobs, (n_job,), in the order of their submission."""

    submit: IntArray  # ns
    deadline: IntArray  # ns, `NEVER` without one
    shape: IntArray  # index of the job's needs
    rank: IntArray  # position in the queue order
    by_rank: IntArray  # job at each position


class NeedArrays(NamedTuple):
    """Distinct needs of jobs, (n_shape,) each unless stated otherwise."""

    cores: IntArray
    bandwidth: IntArray  # MB/s
    storage: IntArray  # MiB
    peak: IntArray  # MB/s
    requested: IntArray  # ns
    kind: IntArray  # kind of workload, -1 for all kinds without a sharing table
    most: IntArray  # most sharers that the table covers, 0 without a table
    slowdown: FloatArray  # (n_shape, n_device + 1, most sharers + 1) by size of the composition and number of sharers


class DeviceArrays(NamedTuple):
    """Devices, nodes and locations of devices."""

    # (n_device,)
    place: IntArray  # location
    owner: IntArray
    # (n_place,); devices of a location have one size
    inside: IntArray  # node that contains the devices, -1 for pooled ones
    bandwidth: IntArray  # MB/s
    storage: IntArray  # MiB
    free: IntArray  # number of devices in no composition
    # (n_node,)
    installed: IntArray  # cores
    node_owner: IntArray


class CompositionArrays(NamedTuple):
    """Compositions in use, (n_device,) each; all except the last three by lead."""

    node: IntArray
    size: IntArray
    sharers: IntArray
    started: IntArray  # sharers whose start is committed
    kind: IntArray
    bandwidth: IntArray  # MB/s left by the base demands of the sharers
    storage: IntArray  # MiB left
    first: IntArray  # first run of its list of sharers, -1 for none
    lead: IntArray  # lead of each device, -1 for a free one
    bandwidth_left: IntArray  # MB/s of each device that are not reserved
    storage_left: IntArray  # MiB of each device


class SharingRuns(NamedTuple):
    """Runs in the order of their starts, (n_job,) each: the record, and the progress of those still running."""

    job: IntArray
    start: IntArray  # ns
    end: IntArray  # ns
    seen_end: IntArray  # ns, as the pass expects it after the starts that it has decided
    node: IntArray
    lead: IntArray  # -1 without devices
    next: IntArray  # next sharer of the composition, -1 for none
    since: IntArray  # ns, last change of pace
    work: FloatArray  # ns of reference work left at `since`
    pace: FloatArray  # slowdown from `since` on
    active: IntArray  # current runs, unordered, the first `now.running` count
    offset: IntArray  # (n_job + 1,) rows offset[k]:offset[k + 1] are run k's placement
    # (n_row,)
    owner: IntArray
    resource: IntArray
    amount: IntArray


class CompositionRules(NamedTuple):
    """Settings of the placement policy and of the performance model; flags are 0 or 1."""

    policy: int
    share: int
    smallest: int  # compose the fewest devices that meet the deadline
    each_parameter: int
    fitness_as_printed: int
    alpha_as_printed: int
    late_maximize: int  # whether late workloads join a composition under each of the two algorithms
    late_minimize: int
    capacity_alone: int
    changes: int  # whether runs change speed when sharers join or leave
    extends: int  # whether `max_extension` applies
    max_extension: float
    # amounts of the largest device, which normalize room
    bandwidth_unit: float
    storage_unit: float
    gigabyte: float  # MiB
    # of all devices, at least 1
    bandwidth_installed: int
    storage_installed: int
    # columns of the resources
    cores_column: int
    bandwidth_column: int
    storage_column: int


class CompositionNow:
    """Record of the changing scalars of a replay, as int64 fields."""

    time: int
    next: int  # row of the next arrival
    waiting: int
    running: int
    started: int
    committed: int  # runs whose start is committed
    passes: int
    reopened: int  # 1 if a class that was refused may fit now
    # base demand of the runs on devices
    bandwidth: int
    storage: int
    # the chosen placement: node, lead of a composition in use or -1, number of free devices and their location
    node: int
    joined: int
    count: int
    place: int


class CompositionState(NamedTuple):
    """Arrays of a replay."""

    jobs: ArrivingJobs
    shapes: NeedArrays
    devices: DeviceArrays
    compositions: CompositionArrays
    runs: SharingRuns
    cores: IntArray  # (n_node,) free cores
    queue: IntArray  # (n_job,) positions of the waiting jobs, ascending, the first `now.waiting` count
    refused: IntArray  # (2 * n_shape,) 1 for classes that do not fit now: twice the shape, plus 1 for late jobs
    rules: CompositionRules
    now: CompositionNow
