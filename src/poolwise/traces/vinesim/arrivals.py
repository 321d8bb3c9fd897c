"""Arrival times of jobs, with fixed or random inter-arrival times. The first job arrives at 0.

Source: VineSim, section 5.2 ("inter-arrival rate"); specs of the accelerators, "Files".
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

import numpy as np

from poolwise.arrays import FloatArray, IntArray
from poolwise.errors import InputError
from poolwise.quantities import UNITS, US
from poolwise.random import uniform
from poolwise.traces.numbers import NotANumber, reals, round_up

ArrivalDistribution = Literal["fixed", "exponential", "uniform"]
_CALL = re.compile(r"\s*(exponential|uniform)\s*\(([^()]*)\)\s*")
_TIME = re.compile(r"\s*([^a-z\s]*(?:[eE][-+]?[0-9]+)?)\s*([a-z]*)\s*")
_REMEDY = "write 7, 7us, exponential(7us) or uniform(1us, 13us); a bare number is microseconds"


@dataclass(frozen=True)
class InterArrival:
    """Inter-arrival time of jobs.

    Parameters
    ----------
    distribution
        "fixed" (`low`), "exponential" (mean `low`) or "uniform" (from `low` to `high`).
    low, high
        ns; fractions are allowed, because each arrival is rounded up once.
    """

    distribution: ArrivalDistribution = "fixed"
    low: float = 0.0
    high: float = 0.0

    @classmethod
    def parse(cls, text: str | float) -> InterArrival:
        """Parse "7" (us), "7us", "exponential(7us)" or "uniform(1us, 13us)"; raise InputError."""
        text = str(text)
        if call := _CALL.fullmatch(text):
            times = [_time(part, text) for part in call[2].split(",")]
            if call[1] == "exponential" and len(times) == 1:
                return cls("exponential", times[0])
            if call[1] == "uniform" and len(times) == 2 and times[0] <= times[1]:
                return cls("uniform", *times)
            raise InputError(f"'{text}' is not an inter-arrival time", field="inter-arrival", remedy=_REMEDY)
        return cls("fixed", _time(text, text))

    def times(self, jobs: int, seed: int = 0) -> IntArray:
        """Return (jobs,) arrivals in ns; raise InputError beyond 146 years."""
        count = np.arange(jobs)
        times: FloatArray = self.low * count.astype(np.float64)
        if self.distribution != "fixed":
            times = np.cumsum(self._gaps(seed, count), dtype=np.float64)
        if jobs and float(times[-1]) > 2.0**62:
            raise InputError("the last job would arrive after more than 146 years", field="inter-arrival", remedy=_REMEDY)
        return round_up(times).astype(np.int64)

    def _gaps(self, seed: int, job: IntArray) -> FloatArray:
        """Return the time between each job and the previous one, (n_job,) ns, 0 for the first."""
        draws = uniform(seed, "inter_arrival", job)
        scale = self.low if self.distribution == "exponential" else self.high - self.low
        gaps = -np.log1p(-draws) * scale if self.distribution == "exponential" else self.low + draws * scale
        gaps[:1] = 0.0
        return gaps


def _time(text: str, whole: str) -> float:
    """Parse a time to ns, without rounding; `whole` is the text for the error message."""
    match = _TIME.fullmatch(text)
    try:
        number = float(reals([match[1]])[0]) if match else -1.0
    except NotANumber:
        number = -1.0
    unit = match[2] if match else ""
    if number < 0 or (unit and unit not in UNITS["time"]):
        raise InputError(f"'{whole}' is not an inter-arrival time", field="inter-arrival", remedy=_REMEDY)
    return number * (UNITS["time"][unit] if unit else US)
