"""Which waiting jobs a round looks at.

Source: Amaral et al., DRMaestro, Algorithm 1.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from poolwise.arrays import BoolArray, IntArray

Admission = Literal["prefix", "filter"]


def admit(demand: IntArray, free: IntArray, rule: Admission) -> BoolArray:
    """Let jobs in, longest waiting first, while they fit what is free in total.

    Parameters
    ----------
    demand
        (n_job, n_resource) of whole jobs, in the order of the queue.
    free
        (n_resource,) sums over the machine.
    rule
        "prefix" stops at the first job that does not fit, so that nothing passes it; "filter" goes on with those behind it.

    Returns
    -------
    (n_job,) jobs let in.
    """
    fits: BoolArray = np.all(np.cumsum(demand, axis=0) <= free, axis=1)
    if rule == "prefix" or bool(fits.all()):
        return np.logical_and.accumulate(fits)
    admitted = np.zeros(len(demand), dtype=np.bool_)
    left = free.copy()
    for k in np.flatnonzero((demand <= free).all(axis=1)).tolist():
        if (demand[k] <= left).all():
            admitted[k] = True
            left -= demand[k]
    return admitted
