"""Whole instances of a disaggregated service: GPU instances combined with shares of their application's CPU instances."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from poolwise.arrays import BoolArray, FloatArray, IntArray


def whole_instances(
    app: NDArray[np.str_], is_gpu: BoolArray, seconds: FloatArray, amounts: Mapping[str, IntArray], most_cores: int
) -> tuple[dict[str, IntArray], BoolArray]:
    """Add to each GPU instance a constant share of the CPU instances of its application.

    The share of a resource is the resource-time of the merged CPU instances divided by the time of all GPU instances of the
    application. An application thus uses as much as in the trace, though not at the same moments. A whole instance has at most
    `most_cores`; the CPU instances that exceed this, the last ones in row order, remain separate.

    `app`, `is_gpu` and `seconds` are the application, role and runtime (n_row,); `amounts` maps resources, including "cores",
    to base units. Returns the amounts with the shares added, rounded up, and an (n_row,) mask of the CPU instances that were
    merged.
    """
    names, number = np.unique(app, return_inverse=True)
    gpu_time = np.bincount(number, seconds * is_gpu, len(names))
    own = np.zeros(len(names), dtype=np.int64)
    np.maximum.at(own, number, amounts["cores"] * is_gpu)
    room = np.maximum(most_cores - own, 0) * gpu_time
    merged = ~is_gpu & (_running_sum(number, amounts["cores"] * seconds * ~is_gpu) <= room[number]) & (gpu_time > 0)[number]
    total = {}
    for name, amount in amounts.items():
        held = np.bincount(number, amount * seconds * merged, len(names))
        share = np.divide(held, gpu_time, out=np.zeros(len(names)), where=gpu_time > 0)
        total[name] = np.ceil(amount + np.where(is_gpu, share[number], 0.0)).astype(np.int64)
    return total, merged


def _running_sum(group: IntArray, value: FloatArray) -> FloatArray:
    """Return the sum of the values of each row and the earlier rows of its group, (n,)."""
    order = np.argsort(group, kind="stable")
    total = np.cumsum(value[order])
    first = np.searchsorted(group[order], group[order])
    values = np.empty_like(total)
    values[order] = total - (total - value[order])[first]
    return values
