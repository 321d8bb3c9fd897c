"""Admission of waiting jobs to a round of flow scheduling.

Source: Amaral et al., DRMaestro, Algorithm 1.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from poolwise.arrays import BoolArray, IntArray

Admission = Literal["prefix", "filter"]


def admit(demand: IntArray, free: IntArray, rule: Admission) -> BoolArray:
    """Admit jobs, longest waiting first, while they fit the free amounts in total.

    Parameters
    ----------
    demand
        (n_job, n_resource) demand of whole jobs, in queue order.
    free
        (n_resource,) free amounts, summed over the machine.
    rule
        "prefix" stops at the first job that does not fit, so that no job passes it; "filter" continues with later jobs.

    Returns
    -------
    (n_job,) True for admitted jobs.
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
