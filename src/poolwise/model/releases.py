"""Free amounts of a machine after each expected release, in order of time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np

from poolwise.arrays import IntArray
from poolwise.model.run import Run
from poolwise.model.run_table import RunTable

WIDE = 1024
"""Number of cells above which rows are added up one by one, because `np.cumsum` down the columns takes three times as long."""


def free_after_releases(
    table: RunTable,
    run_ends: IntArray,
    slots: IntArray,
    imagined: Sequence[Run],
    window_ends: Sequence[int],
    free: IntArray,
    block: int,
) -> Iterator[tuple[IntArray, IntArray]]:
    """Iterate over the free amounts after each expected release, and after the ends of windows, in order of time.

    Parameters
    ----------
    table
        The running runs.
    run_ends, slots
        (k,) expected ends (ns) of runs in the table, ascending, and their slots.
    imagined
        Runs that end too but are not in the table.
    window_ends
        Ends (ns) of windows, which release nothing.
    free
        (n_owner, n_resource) free amounts before the first release.
    block
        Number of releases that are computed at a time.

    Yields
    ------
    ends : (k,) distinct times, ascending
    free : (k, n_owner, n_resource) free amounts from each of these times on, if nothing else starts
    """
    shape = free.shape
    imagined_ends = np.array([run.expected_end for run in imagined], dtype=np.int64)
    ends = np.concatenate([run_ends, imagined_ends, np.array(window_ends, dtype=np.int64)])
    n_run = len(run_ends) + len(imagined_ends)
    order = np.argsort(ends, kind="stable")
    block = max(16, min(block, 4_000_000 // max(1, table.n_cell)))
    carry = free.reshape(-1)
    for low in range(0, len(order), block):
        part = order[low : low + block]
        of_table = part < len(slots)
        if of_table.all():
            delta = table.released(slots[part])
        else:
            delta = np.zeros((len(part), table.n_cell), dtype=np.int64)
            delta[of_table] = table.released(slots[part[of_table]])
        for row in np.flatnonzero(~of_table & (part < n_run)).tolist():
            placement = imagined[int(part[row]) - len(slots)].placement
            np.add.at(delta[row], placement.owner * shape[1] + placement.resource, placement.amount)
        sums = _added_up(delta, carry)
        carry = sums[-1].copy()
        times = ends[part]
        following = ends[order[low + block]] if low + block < len(order) else -1
        last = np.append(times[1:] != times[:-1], following != times[-1])  # all releases of one instant together
        if last.any():
            yield times[last], (sums if last.all() else sums[last]).reshape(-1, *shape)


def _added_up(delta: IntArray, carry: IntArray) -> IntArray:
    """Add up `carry` (n_cell,) and the rows of `delta` in place; return the running sums, (k, n_cell)."""
    delta[0] += carry
    if delta.shape[1] < WIDE:
        return np.cumsum(delta, axis=0, out=delta)
    for before, row in pairwise(delta):
        row += before
    return delta
