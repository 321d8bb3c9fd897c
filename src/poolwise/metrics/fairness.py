"""Which jobs a policy favours and which it discriminates against, compared with first come, first served without backfilling.

b_i = wait of job i there - wait here, with the same memory configuration: positive for jobs that benefit.
Source: Ngubiri and van Vliet 2009, as in Li et al., Fair Memory, section II-C. All sums are in seconds and grow with the number
of jobs: compare them on one population only.
"""

from __future__ import annotations

import math

import numpy as np

from poolwise.arrays import FloatArray
from poolwise.metrics.outcomes import Outcomes
from poolwise.metrics.slowdown import wait_s
from poolwise.metrics.window import check_same_jobs


def waiting_benefit_s(outcomes: Outcomes, baseline: Outcomes) -> FloatArray:
    """(n_job,) b = wait under the baseline - wait here, seconds; NaN for jobs that did not finish in both.

    Raises InputError if the runs are not of the same jobs.
    """
    check_same_jobs(outcomes, baseline)
    return wait_s(baseline) - wait_s(outcomes)


def benefit(b: FloatArray) -> float:
    """B, the sum of the positive b of (n,) jobs, >= 0."""
    return float(b[b > 0].sum())


def discrimination(b: FloatArray) -> float:
    """D, the sum of the |b| of the negative ones, >= 0."""
    return float(np.abs(b[b < 0]).sum())


def marginal_discrimination(b: FloatArray) -> float:
    """MD = D - B."""
    return discrimination(b) - benefit(b)


def extreme_discrimination(b: FloatArray, percent: float) -> float:
    """D_x over the ceil(x % of all n) jobs with the lowest b; those of them that are not discriminated add nothing."""
    return discrimination(np.sort(b)[: _count(len(b), percent)])


def extreme_marginal_discrimination(b: FloatArray, percent: float) -> float:
    """MD_x = D_x - the sum of the positive b over the ceil(x % of all n) jobs with the highest b."""
    most = np.sort(b)[len(b) - _count(len(b), percent) :]
    return extreme_discrimination(b, percent) - benefit(most)


def _count(n: int, percent: float) -> int:
    if not 0 < percent <= 100:
        raise ValueError(f"percent must lie in (0, 100], got {percent}")
    return math.ceil(n * percent / 100)
