"""Speed of this machine, which scales every time limit of the tests."""

import functools
import time

REFERENCE_S = 0.06
"""Seconds that the workload takes on an idle core of the reference machine."""


@functools.cache
def slowness() -> float:
    """Return the time of a fixed workload as a multiple of the reference time, at least 1; measured once per process."""
    begin = time.perf_counter()
    _workload()
    return max(1.0, (time.perf_counter() - begin) / REFERENCE_S)


def _workload() -> int:
    total = 0
    for k in range(1_000_000):
        total += k & 7
    return total
