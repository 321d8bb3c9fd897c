"""Confidence intervals for comparisons between policies."""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from numpy.typing import ArrayLike

from poolwise.arrays import FloatArray
from poolwise.random import uniform


@dataclass(frozen=True)
class Interval:
    """A mean and an interval that covers the true mean with probability `level`, under the assumptions of its function.

    `n` is the number of values; with fewer than two the bounds are NaN.
    """

    mean: float
    low: float
    high: float
    level: float
    n: int


def mean_interval(values: ArrayLike, level: float = 0.95) -> Interval:
    """Return Student's t interval of the mean of (n,) independent values, one per seed or replication: mean +- t s / sqrt(n).

    It covers variation between seeds (memory sensitivity of jobs, generated workloads), but not another trace or machine, or
    model errors. Values within one run are not independent: use `paired_block_bootstrap` for those. The interval is exact for
    normally distributed values; means over long runs are nearly normal.
    """
    _check_level(level)
    sample = np.asarray(values, dtype=np.float64)
    n = len(sample)
    mean = float(sample.mean()) if n else math.nan
    if n < 2:
        return Interval(mean, math.nan, math.nan, level, n)
    half = student_t(level, n - 1) * float(sample.std(ddof=1)) / math.sqrt(n)
    return Interval(mean, mean - half, mean + half, level, n)


def paired_block_bootstrap(
    difference: ArrayLike, blocks: int = 30, draws: int = 2000, seed: int = 0, level: float = 0.95
) -> Interval:
    """Return an interval of the mean of (n,) per-job differences between two runs on the same jobs, in submission order.

    A circular block bootstrap (Politis and Romano 1992): jobs that are submitted close together wait in the same queue, so
    their differences are correlated; resampling whole blocks of ceil(n / blocks) jobs preserves this. The interval covers the
    choice of load periods in the trace: it states whether the difference would persist on more of the same trace. It does
    not cover another machine or user population, model errors, a trend through the trace, or correlation over more than about
    one block: a machine that is congested from beginning to end is one observation, whatever the number of jobs.

    The bounds are percentiles of the sample means, with tails widened for the small number of blocks as in a t interval
    (Hesterberg 2015, tail probability Phi(-sqrt(k / (k - 1)) * t)).
    """
    _check_level(level)
    if blocks < 2 or draws < 1:
        raise ValueError(f"blocks must be at least 2 and draws at least 1, got {blocks} and {draws}")
    series = np.asarray(difference, dtype=np.float64)
    n = len(series)
    mean = float(series.mean()) if n else math.nan
    if n < 2:
        return Interval(mean, math.nan, math.nan, level, n)
    length = -(-n // blocks)
    count = -(-n // length)
    # Bootstrap deviations from the mean: their sums are small, so differences of the running sum stay accurate.
    means = mean + _resampled_means(series - mean, length, count, draws, seed)
    tail = NormalDist().cdf(-math.sqrt(count / (count - 1)) * student_t(level, count - 1))
    low, high = np.quantile(means, [tail, 1.0 - tail]).tolist()
    return Interval(mean, low, high, level, n)


def _resampled_means(series: FloatArray, length: int, count: int, draws: int, seed: int) -> FloatArray:
    """Return the means of n values, (draws,): `count` blocks of the circular series, the last one cut to reach exactly n."""
    n = len(series)
    running = np.concatenate([[0.0], np.cumsum(np.concatenate([series, series[:length]]))])
    starts = (uniform(seed, "block_bootstrap", np.arange(draws)[:, None], np.arange(count)[None, :]) * n).astype(np.int64)
    lengths = np.full(count, length, dtype=np.int64)
    lengths[-1] = n - length * (count - 1)
    means: FloatArray = (running[starts + lengths] - running[starts]).sum(axis=1) / n
    return means


def student_t(level: float, freedom: int) -> float:
    """Return the two-sided quantile t of Student's distribution with `freedom` degrees of freedom: P(|T| <= t) = level."""
    from scipy.special import stdtrit  # type: ignore[import-untyped]  # SciPy has no types; a late import, since it is slow

    return -float(stdtrit(freedom, (1.0 - level) / 2))


def _check_level(level: float) -> None:
    if not 0.0 < level < 1.0:
        raise ValueError(f"level must be between 0 and 1, got {level}")
