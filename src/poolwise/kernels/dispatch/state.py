"""The arrays that kernels share, grouped by what they describe. Names and shapes are the interface of this package."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from poolwise.arrays import FloatArray, IntArray

BITS = 6
"""Bits of a digit of a unit's number, and of a time."""
RADIX, MASK = 2**BITS, 2**BITS - 1
N_DIGIT = -(-63 // BITS)
"""Digits of a time."""
# What `replay` returns
DONE, LATE = range(2)


class TaskArrays(NamedTuple):
    """(n_job,) rows of tasks that are alike, in the order of their arrivals.

    Attributes
    ----------
    submit : ns
    tasks : number of tasks
    lane : FIFO in which they wait
    shape : which tiers of units they may take, rows of `Tiers.tier`
    compute : (n_job, n_type) ns on each type of unit
    transfer : (n_job, 3) ns for the data to their own place, within the rack, to another rack
    x, y : place of the data
    draw : (n_task,) number in [0, 1) of each task, or (0,) where nothing is drawn
    first : first of the row's draws
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
    """(n_unit,) each, the units of one type, of a rack and of a place standing together.

    Attributes
    ----------
    kind : type
    x, y : place
    rank : position in the tie rule
    """

    kind: IntArray
    x: IntArray
    y: IntArray
    rank: IntArray


class IdleArrays(NamedTuple):
    """Which units are idle, in running counts, see `idle`; one unit more than there are.

    Attributes
    ----------
    regions : (RADIX or n_region if that is more,) idle ones before each region
    blocks : (n_region, RADIX) idle ones of a region before each of its blocks
    units : (n_block, RADIX) idle ones of a block before each of its units
    total : (1,) idle ones
    """

    regions: NDArray[np.int32]
    blocks: NDArray[np.int16]
    units: NDArray[np.int8]
    total: IntArray


class Ends(NamedTuple):
    """Ends of the tasks on busy units, see `ends`; a row of slots for each digit of a time.

    Attributes
    ----------
    end : (n_unit,) ns
    next : (n_unit,) next unit in the same slot, -1 for none
    first : (N_DIGIT, RADIX) first unit in each slot, -1 for none
    least : (N_DIGIT, RADIX) least end in each slot, `NEVER` without one
    soonest : (N_DIGIT,) least end in each row, `NEVER` without one
    last : (1,) the last end that was taken out
    """

    end: IntArray
    next: IntArray
    first: IntArray
    least: IntArray
    soonest: IntArray
    last: IntArray


class Tiers(NamedTuple):
    """Tiers tier[s]:tier[s+1] are those of shape s, ranges part[t]:part[t+1] those of tier t, each from `low` to `high`.

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
    """FIFOs of rows.

    Attributes
    ----------
    head, tail : (n_lane,) first and last row that waits, -1 for none
    next : (n_job,) row behind, -1 for none
    served : (n_job,) tasks of a row that have started
    closed : (n_lane,) number of the last pass in which its head found nothing
    """

    head: IntArray
    tail: IntArray
    next: IntArray
    served: IntArray
    closed: IntArray


class TaskRunArrays(NamedTuple):
    """(n_task,) runs in the order of their starts: the record.

    Attributes
    ----------
    job, start, end, unit : row of the job, ns, ns, unit
    """

    job: IntArray
    start: IntArray
    end: IntArray
    unit: IntArray


# Rows of `now`, the (N_NOW,) int64 numbers that change
TIME, NEXT, STARTED, PASSES, N_NOW = range(5)
