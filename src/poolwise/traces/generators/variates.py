"""Random variates of the distributions that workload models use, from counter-based random numbers.

Every variate depends only on (seed, stream, job), so a job does not change with the number of jobs. Methods with rejection
also use the number of the attempt.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from statistics import NormalDist

import numpy as np

from poolwise.arrays import BoolArray, FloatArray, IntArray
from poolwise.random import uniform


def exponential(seed: int, stream: str, job: IntArray) -> FloatArray:
    """Return exponential variates of mean 1, (n,), by inversion."""
    return -np.log1p(-uniform(seed, stream, job))


def whole_below(n: int, seed: int, stream: str, job: IntArray) -> IntArray:
    """Return uniform whole numbers below n, (n_job,)."""
    drawn = np.floor(n * uniform(seed, stream, job)).astype(np.int64)
    return np.minimum(drawn, n - 1)


def normal(seed: int, stream: str, job: IntArray, attempt: int = 0) -> FloatArray:
    """Return standard normal variates, (n,) (Box, Muller 1958)."""
    radius = np.sqrt(-2.0 * np.log1p(-uniform(seed, f"{stream}.radius", job, attempt)))
    angle = 2.0 * np.pi * uniform(seed, f"{stream}.angle", job, attempt)
    normals: FloatArray = radius * np.cos(angle)
    return normals


def gamma(seed: int, stream: str, job: IntArray, shape: float | FloatArray, scale: float | FloatArray) -> FloatArray:
    """Return gamma variates > 0 by transforming normals (Marsaglia, Tsang 2000, without the test that only saves time).

    Shape, at least 1, and scale are numbers or (n,); the mean is shape * scale.
    """
    d = np.broadcast_to(np.asarray(shape, dtype=np.float64) - 1.0 / 3.0, job.shape)
    if len(job) and not float(d.min()) >= 2.0 / 3.0:
        raise ValueError("gamma variates require a shape of at least 1")

    def attempt(rows: IntArray, count: int) -> tuple[FloatArray, BoolArray]:
        z = normal(seed, stream, job[rows], count)
        v = (1.0 + z / np.sqrt(9.0 * d[rows])) ** 3
        logarithm = np.log(np.maximum(v, np.finfo(np.float64).tiny))  # finite where v <= 0, which is rejected anyway
        bound = 0.5 * z * z + d[rows] * (1.0 - v + logarithm)
        return d[rows] * v, (v > 0) & (np.log1p(-uniform(seed, f"{stream}.accept", job[rows], count)) < bound)

    return until_accepted(len(job), attempt) * scale


def until_accepted(n: int, attempt: Callable[[IntArray, int], tuple[FloatArray, BoolArray]]) -> FloatArray:
    """Draw n variates and redraw the rejected ones until all are accepted.

    `attempt(rows, count)` returns a value for each of the (k,) rows, and whether it is accepted, at attempt number `count`.
    """
    values = np.empty(n, dtype=np.float64)
    pending, count = np.arange(n), 0
    while len(pending):
        drawn, accepted = attempt(pending, count)
        values[pending[accepted]] = drawn[accepted]
        pending, count = pending[~accepted], count + 1
    return values


class Quantiles:
    """A distribution defined by points of its quantile function: share of the jobs in (0, 1) -> value > 0, both ascending.

    Between two points, the logarithm of the value is linear in the normal score of the share, so two points alone define a
    lognormal distribution; before the first point and after the last one, the value is constant. The argument is a normal score
    rather than a share, because a Gaussian copula correlates scores.
    """

    def __init__(self, points: Mapping[float, float]) -> None:
        self.points = dict(points)
        self._scores = np.array([NormalDist().inv_cdf(share) for share in points])
        self._logarithms = np.log(np.array(list(points.values()), dtype=np.float64))
        if bool((np.diff(self._scores) <= 0).any() or (np.diff(self._logarithms) < 0).any()):
            raise ValueError("the points of a quantile function must have ascending shares and nondecreasing values")

    def at(self, score: FloatArray) -> FloatArray:
        """Return the values at normal scores, (n,) each."""
        values: FloatArray = np.exp(np.interp(score, self._scores, self._logarithms))
        return values
