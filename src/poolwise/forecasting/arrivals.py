"""Future arrivals: days of the past, drawn at random and shifted into the future (block bootstrap)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from poolwise.arrays import IntArray
from poolwise.units import DAY

MOST = 4000
"""Maximum number of jobs to draw."""


class ComingJobs(NamedTuple):
    """Future jobs, each a copy of an earlier one.

    Attributes
    ----------
    like : (k,) rows of the copied jobs
    submit : (k,) submission times, ns, ascending
    """

    like: IntArray
    submit: IntArray


def draw_arrivals(submit: IntArray, now: int, horizon: int, g: np.random.Generator) -> ComingJobs:
    """Draw the arrivals in the `horizon` ns after now, from (n_job,) submissions up to now, ascending.

    The future consists of blocks of one day. Each block copies a stretch of the past that began a whole number of days earlier,
    which preserves the time of day. With less than two days of history, blocks are a quarter of the history long.
    """
    none = np.zeros(0, dtype=np.int64)
    if not len(submit) or now <= int(submit[0]):
        return ComingJobs(none, none)
    known = now - int(submit[0])
    block = DAY if known >= 2 * DAY else max(known // 4, 1)
    shifts = known // block
    likes, times, at, count = [], [], 0, 0
    while at < horizon and count < MOST:
        first = now - int(g.integers(1, shifts + 1)) * block
        length = min(block, horizon - at)
        low, high = np.searchsorted(submit, [first, first + length], side="right")
        likes.append(np.arange(low, high))
        times.append(submit[low:high] - first + now + at)
        at, count = at + block, count + int(high - low)
    like, time = np.concatenate(likes)[:MOST], np.concatenate(times)[:MOST]
    return ComingJobs(like.astype(np.int64), np.maximum(time, now + 1))
