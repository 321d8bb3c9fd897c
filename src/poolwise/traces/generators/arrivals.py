"""When jobs arrive: a stream of points on an even clock, bent by the hour of the day."""

from __future__ import annotations

import math

import numpy as np

from poolwise.arrays import FloatArray, IntArray
from poolwise.traces.generators.variates import exponential

DAY_S = 86400.0
BUCKETS = 48  # half hours, as in the Lublin-Feitelson model


def poisson(seed: int, stream: str, job: IntArray) -> FloatArray:
    """(n,) times of a Poisson process of rate 1 that begins with the first job, at time 0."""
    return since_first(exponential(seed, stream, job))


def since_first(gaps: FloatArray) -> FloatArray:
    """(n,) times from (n,) gaps before each job; the first one's gap does not count."""
    times: FloatArray = np.cumsum(np.concatenate([np.zeros(min(1, len(gaps))), gaps[1:]]))
    return times


class DailyCycle:
    """Days on which more jobs arrive at some hours than at others.

    An even clock passes fast where jobs are many; a whole day takes as long on either clock, and both begin at midnight.

    Parameters
    ----------
    weights
        (BUCKETS,) > 0, rate of arrivals in each bucket of the day, from midnight, relative to each other.
    """

    def __init__(self, weights: FloatArray) -> None:
        self._time = np.linspace(0.0, DAY_S, len(weights) + 1)
        self._even = np.concatenate([[0.0], np.cumsum(weights)]) * (DAY_S / float(weights.sum()))
        self._even[-1] = DAY_S  # exactly, so that days join without a step

    @classmethod
    def wave(cls, amplitude: float, peak_hour: float) -> DailyCycle:
        """Arrivals at the rate 1 + amplitude * cosine, most of them at an hour of the day; even for amplitude 0."""
        hours = (np.arange(BUCKETS) + 0.5) * (24.0 / BUCKETS)
        return cls(1.0 + amplitude * np.cos((hours - peak_hour) * (2.0 * math.pi / 24.0)))

    def time(self, even: FloatArray) -> FloatArray:
        """(n,) times in s at points (n,) of the even clock, both since midnight of the first day."""
        return _within_days(even, self._even, self._time)

    def even(self, time: FloatArray) -> FloatArray:
        """(n,) points of the even clock at times (n,); undoes `time`."""
        return _within_days(time, self._time, self._even)

    def arrivals(self, even: FloatArray, last: float | None = None) -> IntArray:
        """(n,) whole s at points (n,) of the even clock, stretched so that the last job arrives at `last` s if given."""
        if last is not None and len(even) and even[-1] > 0:
            even = even * (float(self.even(np.array([last]))[0]) / float(even[-1]))
        return np.rint(self.time(even)).astype(np.int64)


def _within_days(values: FloatArray, known: FloatArray, wanted: FloatArray) -> FloatArray:
    days = np.floor(values / DAY_S) * DAY_S
    mapped: FloatArray = days + np.interp(values - days, known, wanted)
    return mapped
