"""Benefit and discrimination: job waits compared with first come, first served (FCFS) without backfilling.

b_i = wait of job i under the baseline - wait under the policy, with the same memory configuration: positive for jobs that
benefit. Source: Ngubiri and van Vliet 2009, as in Li et al., Fair Memory, section II-C. All sums are in seconds and grow with
the number of jobs, so compare them only over the same population.
"""

from __future__ import annotations

import math

import numpy as np

from poolwise.arrays import FloatArray
from poolwise.metrics.outcomes import Outcomes
from poolwise.metrics.slowdown import wait_s
from poolwise.metrics.window import check_same_jobs


def waiting_benefit_s(outcomes: Outcomes, baseline: Outcomes) -> FloatArray:
    """Return b = baseline wait - wait, (n_job,) seconds; NaN for jobs that did not finish in both runs.

    Raises InputError if the runs do not have the same jobs.
    """
    check_same_jobs(outcomes, baseline)
    return wait_s(baseline) - wait_s(outcomes)


def benefit(b: FloatArray) -> float:
    """Return B, the sum of the positive b of (n,) jobs, >= 0."""
    return float(b[b > 0].sum())


def discrimination(b: FloatArray) -> float:
    """Return D, the sum of |b| over the jobs with negative b, >= 0."""
    return float(np.abs(b[b < 0]).sum())


def marginal_discrimination(b: FloatArray) -> float:
    """Return MD = D - B."""
    return discrimination(b) - benefit(b)


def extreme_discrimination(b: FloatArray, percent: float) -> float:
    """Return D_x over the ceil(x % of n) jobs with the lowest b; jobs with b >= 0 among them contribute nothing."""
    return discrimination(np.sort(b)[: _count(len(b), percent)])


def extreme_marginal_discrimination(b: FloatArray, percent: float) -> float:
    """Return MD_x = D_x - the sum of the positive b over the ceil(x % of n) jobs with the highest b."""
    highest = np.sort(b)[len(b) - _count(len(b), percent) :]
    return extreme_discrimination(b, percent) - benefit(highest)


def _count(n: int, percent: float) -> int:
    if not 0 < percent <= 100:
        raise ValueError(f"percent must be in (0, 100], got {percent}")
    return math.ceil(n * percent / 100)
