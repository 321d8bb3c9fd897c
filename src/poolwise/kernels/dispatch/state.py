"""Arrays shared by the kernels, grouped by subject. Their names and shapes are the interface of this package."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from poolwise.arrays import FloatArray, IntArray

BITS = 6
"""Bits per digit of a unit's number, and of a time."""
RADIX, MASK = 2**BITS, 2**BITS - 1
N_DIGIT = -(-63 // BITS)
"""Digits of a time."""
# Return values of `replay`
DONE, LATE = range(2)


class TaskArrays(NamedTuple):
    """Rows of identical tasks, (n_job,), in arrival order."""

    submit: IntArray  # ns
    tasks: IntArray  # number of tasks
    lane: IntArray  # queue (FIFO) in which they wait
    shape: IntArray  # index of the tiers of units that they may use, rows of `Tiers.tier`
    compute: IntArray  # (n_job, n_type) ns on each type of unit
    transfer: IntArray  # (n_job, 3) ns to transfer the data to their own position, within the rack, to another rack
    # position of the data
    x: IntArray
    y: IntArray
    draw: FloatArray  # (n_task,) random number in [0, 1) of each task, or (0,) if the policy is not random
    first: IntArray  # first of the row's random numbers


class UnitArrays(NamedTuple):
    """Units, (n_unit,) each; units of one type, rack and position are consecutive."""

    kind: IntArray  # type
    # position
    x: IntArray
    y: IntArray
    rank: IntArray  # rank in the tie rule


class IdleArrays(NamedTuple):
    """Set of idle units as running counts, see `idle`; sized for one unit more than there are."""

    regions: NDArray[np.int32]  # (max(RADIX, n_region),) idle units before each region
    blocks: NDArray[np.int16]  # (n_region, RADIX) idle units of a region before each of its blocks
    units: NDArray[np.int8]  # (n_block, RADIX) idle units of a block before each of its units
    total: IntArray  # (1,) idle units


class Ends(NamedTuple):
    """Ends of the tasks on busy units, see `ends`; one row of slots per digit of a time."""

    end: IntArray  # (n_unit,) ns
    next: IntArray  # (n_unit,) next unit in the same slot, -1 for none
    first: IntArray  # (N_DIGIT, RADIX) first unit in each slot, -1 for none
    least: IntArray  # (N_DIGIT, RADIX) least end in each slot, `NEVER` without one
    soonest: IntArray  # (N_DIGIT,) least end in each row, `NEVER` without one
    last: IntArray  # (1,) the last end removed


class Tiers(NamedTuple):
    """Tiers tier[s]:tier[s+1] belong to shape s, ranges part[t]:part[t+1] to tier t, each from `low` to `high`."""

    tier: IntArray  # (n_shape + 1,)
    part: IntArray  # (n_tier + 1,)
    # (n_range,) units
    low: IntArray
    high: IntArray
    idle: IntArray  # (n_range,) scratch: idle units in each range


class TaskQueueArrays(NamedTuple):
    """Task queues (FIFO) of rows."""

    # (n_lane,) first and last waiting row, -1 for none
    head: IntArray
    tail: IntArray
    next: IntArray  # (n_job,) next row in the queue, -1 for none
    served: IntArray  # (n_job,) tasks of a row that have started
    closed: IntArray  # (n_lane,) number of the last pass in which no unit was found for its head


class TaskRunArrays(NamedTuple):
    """Runs, (n_task,) each, in the order of their starts: the record."""

    # row of the job, ns, ns, unit
    job: IntArray
    start: IntArray
    end: IntArray
    unit: IntArray


class GraphArrays(NamedTuple):
    """Rows that wait for other rows: the number of unfinished predecessors and tasks of each row, and its successors."""

    # (n_job,) each
    missing: IntArray  # rows that it waits for and that have not finished, plus one until it is submitted
    left: IntArray  # tasks that have not finished
    rank: IntArray  # position by id
    row: IntArray  # row at each position by id
    turn: IntArray  # number in the order in which rows joined their queues
    ready: IntArray  # heap of the positions of the rows that become ready at this instant
    # rows successor[offset[k]:offset[k + 1]] wait for row k
    offset: IntArray  # (n_job + 1,)
    successor: IntArray  # (n_edge,)
    job: IntArray  # (n_unit,) row of the task on each busy unit
    counts: IntArray  # (2,) rows in `ready`, and rows that have joined


class DispatchNow:
    """Record of the changing scalars of a replay, as int64 fields."""

    time: int
    next: int  # row of the next arrival
    started: int  # runs so far
    passes: int


class DispatchState(NamedTuple):
    """Arrays of a replay."""

    jobs: TaskArrays
    units: UnitArrays
    idle: IdleArrays
    ends: Ends
    tiers: Tiers
    lanes: TaskQueueArrays
    runs: TaskRunArrays
    now: DispatchNow
