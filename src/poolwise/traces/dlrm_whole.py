"""What instances of a disaggregated service would ask for if their CPUs and GPUs were not apart."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from poolwise.arrays import BoolArray, FloatArray, IntArray


def whole_instances(
    app: NDArray[np.str_], is_gpu: BoolArray, seconds: FloatArray, amounts: Mapping[str, IntArray], most_cores: int
) -> tuple[dict[str, IntArray], BoolArray]:
    """Give each GPU instance a share of the CPU instances of its application, the same at every moment of its life.

    The share of a resource is what those CPU instances held over time, over the time of all GPU instances of the application:
    so an application holds as much as in the trace, though not at the same moments. A GPU instance with its share has at most
    `most_cores`; CPU instances beyond that, the last ones in the order of the rows, stay by themselves.

    Parameters
    ----------
    app, is_gpu, seconds
        (n_row,) application, role and runtime of each instance.
    amounts
        Resource -> (n_row,) base units, "cores" among them.

    Returns
    -------
    amounts
        The same with the shares, rounded up.
    merged
        (n_row,) CPU instances that are none any more.
    """
    names, number = np.unique(app, return_inverse=True)
    gpu_time = np.bincount(number, seconds * is_gpu, len(names))
    own = np.zeros(len(names), dtype=np.int64)
    np.maximum.at(own, number, amounts["cores"] * is_gpu)
    room = np.maximum(most_cores - own, 0) * gpu_time
    merged = ~is_gpu & (_so_far(number, amounts["cores"] * seconds * ~is_gpu) <= room[number]) & (gpu_time > 0)[number]
    found = {}
    for name, amount in amounts.items():
        held = np.bincount(number, amount * seconds * merged, len(names))
        share = np.divide(held, gpu_time, out=np.zeros(len(names)), where=gpu_time > 0)
        found[name] = np.ceil(amount + np.where(is_gpu, share[number], 0.0)).astype(np.int64)
    return found, merged


def _so_far(group: IntArray, value: FloatArray) -> FloatArray:
    """(n,) sum of the values of a row and of all rows of its group before it."""
    order = np.argsort(group, kind="stable")
    total = np.cumsum(value[order])
    first = np.searchsorted(group[order], group[order])
    found = np.empty_like(total)
    found[order] = total - (total - value[order])[first]
    return found
