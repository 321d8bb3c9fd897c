"""Confidence intervals for statements about policies."""

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
    """A mean and the interval that covers the true one with probability `level`, as far as the maker's assumptions hold.

    `n` is the number of values; with fewer than two the bounds are NaN.
    """

    mean: float
    low: float
    high: float
    level: float
    n: int


def mean_interval(values: ArrayLike, level: float = 0.95) -> Interval:
    """Student's t interval of the mean of (n,) independent values, one a seed or replication: mean +- t * s / sqrt(n).

    It covers what varies from seed to seed (the jobs' sensitivities, a generated workload), not another trace, machine or
    error of the model. Values within one run are not independent: for those, `paired_block_bootstrap`. Exact for normal
    values; means of long runs are nearly so.
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
    """Interval of the mean of a per-job difference between two runs on the same jobs, by a circular block bootstrap.

    Jobs near each other in submission wait in the same queue, so their differences are correlated; resampling whole
    stretches of jobs keeps that. The interval covers which stretches of load happened to be in the trace: it says whether
    the difference would persist on more of the same trace. It does not cover another machine or user population, errors
    of the model, a trend through the trace, or correlation over more than about a block (n / blocks jobs): a machine that is
    congested from beginning to end is one observation, whatever the number of jobs.

    Parameters
    ----------
    difference
        (n,) in submission order.
    blocks
        Number of blocks the series makes; their length is ceil(n / blocks) jobs.
    draws
        Bootstrap samples.
    seed
        Of the samples: same input and seed, same interval.

    Returns
    -------
    The bounds are percentiles of the samples' means, at tails widened for the small number of blocks as a t interval with
    one degree of freedom less than blocks would be.

    Notes
    -----
    Circular blocks: Politis and Romano 1992. Expanded percentiles: Hesterberg 2015, tail probability
    Phi(-sqrt(k / (k - 1)) * t).
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
    # Deviations from the mean: their sums are small, so that the differences of a running sum stay exact enough.
    means = mean + _resampled_means(series - mean, length, count, draws, seed)
    tail = NormalDist().cdf(-math.sqrt(count / (count - 1)) * student_t(level, count - 1))
    low, high = np.quantile(means, [tail, 1.0 - tail]).tolist()
    return Interval(mean, low, high, level, n)


def _resampled_means(series: FloatArray, length: int, count: int, draws: int, seed: int) -> FloatArray:
    """(draws,) means of n values made of `count` blocks of the circle, the last one cut so that n are reached."""
    n = len(series)
    running = np.concatenate([[0.0], np.cumsum(np.concatenate([series, series[:length]]))])
    starts = (uniform(seed, "block_bootstrap", np.arange(draws)[:, None], np.arange(count)[None, :]) * n).astype(np.int64)
    lengths = np.full(count, length, dtype=np.int64)
    lengths[-1] = n - length * (count - 1)
    means: FloatArray = (running[starts + lengths] - running[starts]).sum(axis=1) / n
    return means


def student_t(level: float, freedom: int) -> float:
    """Two-sided quantile t of Student's distribution: P(|T| <= t) = level."""
    from scipy.special import stdtrit  # type: ignore[import-untyped]  # no types; imported late, since it takes long

    return -float(stdtrit(freedom, (1.0 - level) / 2))


def _check_level(level: float) -> None:
    if not 0.0 < level < 1.0:
        raise ValueError(f"level must lie between 0 and 1, got {level}")
