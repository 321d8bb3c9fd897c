"""Arrival processes of jobs, with an optional daily cycle."""

from __future__ import annotations

import math

import numpy as np

from poolwise.arrays import FloatArray, IntArray
from poolwise.traces.generators.variates import exponential

DAY_S = 86400.0
BUCKETS = 48  # half hours, as in the Lublin-Feitelson model


def poisson(seed: int, stream: str, job: IntArray) -> FloatArray:
    """Return the event times of a Poisson process of rate 1, (n,); the first job arrives at time 0."""
    return since_first(exponential(seed, stream, job))


def since_first(gaps: FloatArray) -> FloatArray:
    """Return the arrival times, given the gaps before each job, (n,) each; the gap before the first job is ignored."""
    times: FloatArray = np.cumsum(np.concatenate([np.zeros(min(1, len(gaps))), gaps[1:]]))
    return times


class DailyCycle:
    """Daily cycle of the arrival rate: relative rates > 0 in each bucket of the day (BUCKETS,), starting at midnight.

    Arrivals occur at a constant rate in operational time, which passes faster at busy hours of the day. A day has the same
    length in both times, and both start at midnight.
    """

    def __init__(self, weights: FloatArray) -> None:
        self._time = np.linspace(0.0, DAY_S, len(weights) + 1)
        self._operational = np.concatenate([[0.0], np.cumsum(weights)]) * (DAY_S / float(weights.sum()))
        self._operational[-1] = DAY_S  # exact, so that days join without a step

    @classmethod
    def wave(cls, amplitude: float, peak_hour: float) -> DailyCycle:
        """Build a cycle with the rate 1 + amplitude * cosine, which peaks at `peak_hour`; it is constant at amplitude 0."""
        hours = (np.arange(BUCKETS) + 0.5) * (24.0 / BUCKETS)
        return cls(1.0 + amplitude * np.cos((hours - peak_hour) * (2.0 * math.pi / 24.0)))

    def to_time(self, operational: FloatArray) -> FloatArray:
        """Convert operational times to times, (n,), both in s since midnight of the first day."""
        return _within_days(operational, self._operational, self._time)

    def to_operational(self, time: FloatArray) -> FloatArray:
        """Convert times to operational times, (n,); the inverse of `to_time`."""
        return _within_days(time, self._time, self._operational)

    def arrivals(self, operational: FloatArray, last: float | None = None) -> IntArray:
        """Convert operational times to arrivals in whole s, (n,); if `last` is given, stretch them to end at `last` s."""
        if last is not None and len(operational) and operational[-1] > 0:
            operational = operational * (float(self.to_operational(np.array([last]))[0]) / float(operational[-1]))
        return np.rint(self.to_time(operational)).astype(np.int64)


def _within_days(values: FloatArray, times: FloatArray, wanted: FloatArray) -> FloatArray:
    days = np.floor(values / DAY_S) * DAY_S
    mapped: FloatArray = days + np.interp(values - days, times, wanted)
    return mapped
