"""Arrays of the limits on the jobs of a group that a backfill pass tests."""

from __future__ import annotations

import numpy as np

from poolwise.arrays import IntArray
from poolwise.engines.kernel_arrays import blank
from poolwise.kernels.shared_nodes.interval_state import GroupArrays
from poolwise.model import JobTable
from poolwise.model.rules import PassTimes


def group_arrays(times: PassTimes, table: JobTable) -> GroupArrays:
    """Return the limits that apply to the jobs of a table; limits by attributes that the table lacks do not apply."""
    columns, n = table.attributes, len(table.submit)
    limits = [(attributes, most) for attributes, most in times.groups if all(name in columns for name in attributes)]
    of = np.zeros((len(limits), n), dtype=np.int64)
    for k, (attributes, _) in enumerate(limits):
        of[k] = _numbers(np.stack([_numbers(columns[name]) for name in attributes], axis=1))
    partition = _numbers(columns["partition"]) if "partition" in columns else np.zeros(n, dtype=np.int64)
    return GroupArrays(
        most=np.array([most for _, most in limits], dtype=np.int64),
        of=of,
        tested=blank(len(limits), int(of.max(initial=-1)) + 1),
        partition=partition,
        reserved=blank(int(partition.max(initial=-1)) + 1),
    )


def _numbers(values: np.ndarray) -> IntArray:
    """Assign numbers to values, or to rows of numbers, so that equal ones get equal numbers."""
    axis = 0 if values.ndim > 1 else None
    return np.unique(values, axis=axis, return_inverse=True)[1].reshape(-1).astype(np.int64)
