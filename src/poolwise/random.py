"""Counter-based random numbers: draw(seed, stream, job, task), independent of earlier draws.

Two policies that start jobs in different orders therefore see the same slowdown, run time or arrival for the same job (common
random numbers). The mixing function is the finalizer of SplitMix64 (Steele, Lea, Flood 2014), applied once per counter.
"""

from __future__ import annotations

import zlib

import numpy as np
from numpy.typing import ArrayLike, NDArray

from poolwise.arrays import FloatArray, IntArray, blocks

_GAMMA = np.uint64(0x9E3779B97F4A7C15)
_MIX1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX2 = np.uint64(0x94D049BB133111EB)
_ALL = 2**64 - 1
_FEW = 8
"""Maximum number of draws for which Python integers are faster than NumPy."""


def mix(state: NDArray[np.uint64], counter: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Fold one counter into the state; uint64 arguments broadcast, arithmetic is modulo 2**64."""
    z = state ^ counter
    z += _GAMMA
    z ^= z >> np.uint64(30)
    z *= _MIX1
    z ^= z >> np.uint64(27)
    z *= _MIX2
    z ^= z >> np.uint64(31)
    return z


def uniform(seed: int, stream: str, job: ArrayLike, task: ArrayLike = 0) -> FloatArray:
    """Draw uniform numbers in [0, 1) with 53 random bits, one for each (job, task).

    Parameters
    ----------
    seed
        Random seed of the run.
    stream
        Purpose of the draw ("remote_memory", "arrivals", ...); streams are independent.
    job, task
        Integer counters, broadcast together: (...,).

    Returns
    -------
    (...,) float64 in [0, 1).
    """
    jobs, tasks = np.atleast_1d(np.asarray(job, dtype=np.int64)), np.asarray(task, dtype=np.int64)
    if jobs.ndim == 1 and tasks.ndim == 0 and len(jobs) <= _FEW:
        return _few(seed, stream, jobs, int(tasks))
    state = np.array([seed & (2**64 - 1)], dtype=np.uint64)
    state = mix(state, np.array(zlib.crc32(stream.encode()), dtype=np.uint64))
    if jobs.ndim > 1 or tasks.ndim > 0:
        return _drawn(state, jobs, tasks)
    draws = np.empty(len(jobs))
    for rows in blocks(len(jobs)):
        draws[rows] = _drawn(state, jobs[rows], tasks)
    return draws


def _drawn(state: NDArray[np.uint64], job: IntArray, task: IntArray) -> FloatArray:
    """Fold the last two counters into the state, and scale the result to [0, 1)."""
    for counter in (job, task):
        state = mix(state, counter.astype(np.uint64))
    draws: FloatArray = (state >> np.uint64(11)).astype(np.float64) * 2.0**-53
    return draws


def _few(seed: int, stream: str, job: IntArray, task: int) -> FloatArray:
    """Return (k,) draws for (k,) jobs, computed with Python integers; they are bit-identical to the vectorized draws."""
    state = _mixed(seed & _ALL, zlib.crc32(stream.encode()))
    return np.array([(_mixed(_mixed(state, j & _ALL), task & _ALL) >> 11) * 2.0**-53 for j in job.tolist()], dtype=np.float64)


def _mixed(state: int, counter: int) -> int:
    """Apply `mix` to two 64-bit integers."""
    z = ((state ^ counter) + 0x9E3779B97F4A7C15) & _ALL
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & _ALL
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & _ALL
    return z ^ (z >> 31)
