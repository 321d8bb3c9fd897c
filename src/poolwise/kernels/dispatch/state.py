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
    """Rows of identical tasks, (n_job,), in arrival order.

    Attributes
    ----------
    submit : ns
    tasks : number of tasks
    lane : queue (FIFO) in which they wait
    shape : index of the tiers of units that they may use, rows of `Tiers.tier`
    compute : (n_job, n_type) ns on each type of unit
    transfer : (n_job, 3) ns to transfer the data to their own position, within the rack, to another rack
    x, y : position of the data
    draw : (n_task,) random number in [0, 1) of each task, or (0,) if the policy is not random
    first : first of the row's random numbers
    """

    submit: IntArray
    tasks: IntArray
    lane: IntArray
    shape: IntArray
    compute: IntArray
    transfer: IntArray
    x: IntArray
    y: IntArray
    draw: FloatArray
    first: IntArray


class UnitArrays(NamedTuple):
    """Units, (n_unit,) each; units of one type, rack and position are consecutive.

    Attributes
    ----------
    kind : type
    x, y : position
    rank : rank in the tie rule
    """

    kind: IntArray
    x: IntArray
    y: IntArray
    rank: IntArray


class IdleArrays(NamedTuple):
    """Set of idle units as running counts, see `idle`; sized for one unit more than there are.

    Attributes
    ----------
    regions : (max(RADIX, n_region),) idle units before each region
    blocks : (n_region, RADIX) idle units of a region before each of its blocks
    units : (n_block, RADIX) idle units of a block before each of its units
    total : (1,) idle units
    """

    regions: NDArray[np.int32]
    blocks: NDArray[np.int16]
    units: NDArray[np.int8]
    total: IntArray


class Ends(NamedTuple):
    """Ends of the tasks on busy units, see `ends`; one row of slots per digit of a time.

    Attributes
    ----------
    end : (n_unit,) ns
    next : (n_unit,) next unit in the same slot, -1 for none
    first : (N_DIGIT, RADIX) first unit in each slot, -1 for none
    least : (N_DIGIT, RADIX) least end in each slot, `NEVER` without one
    soonest : (N_DIGIT,) least end in each row, `NEVER` without one
    last : (1,) the last end removed
    """

    end: IntArray
    next: IntArray
    first: IntArray
    least: IntArray
    soonest: IntArray
    last: IntArray


class Tiers(NamedTuple):
    """Tiers tier[s]:tier[s+1] belong to shape s, ranges part[t]:part[t+1] to tier t, each from `low` to `high`.

    Attributes
    ----------
    tier : (n_shape + 1,)
    part : (n_tier + 1,)
    low, high : (n_range,) units
    idle : (n_range,) scratch: idle units in each range
    """

    tier: IntArray
    part: IntArray
    low: IntArray
    high: IntArray
    idle: IntArray


class TaskQueueArrays(NamedTuple):
    """Task queues (FIFO) of rows.

    Attributes
    ----------
    head, tail : (n_lane,) first and last waiting row, -1 for none
    next : (n_job,) next row in the queue, -1 for none
    served : (n_job,) tasks of a row that have started
    closed : (n_lane,) number of the last pass in which no unit was found for its head
    """

    head: IntArray
    tail: IntArray
    next: IntArray
    served: IntArray
    closed: IntArray


class TaskRunArrays(NamedTuple):
    """Runs, (n_task,) each, in the order of their starts: the record.

    Attributes
    ----------
    job, start, end, unit : row of the job, ns, ns, unit
    """

    job: IntArray
    start: IntArray
    end: IntArray
    unit: IntArray


# Rows of `now`, the (N_NOW,) int64 scalars of a replay that change
TIME, NEXT, STARTED, PASSES, N_NOW = range(5)
