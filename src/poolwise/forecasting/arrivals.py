"""Jobs that may still come: days of the past, drawn at random and moved to the future (a block bootstrap)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from poolwise.arrays import IntArray
from poolwise.units import DAY

MOST = 4000
"""Jobs that are drawn at most."""


class ComingJobs(NamedTuple):
    """Jobs like earlier ones.

    Attributes
    ----------
    like : (k,) rows of the jobs that they are copies of
    submit : (k,) ns, ascending
    """

    like: IntArray
    submit: IntArray


def draw_arrivals(submit: IntArray, now: int, horizon: int, g: np.random.Generator) -> ComingJobs:
    """Draw what is submitted in the `horizon` ns after now, from (n_job,) submissions up to now, ascending.

    The future is laid out in blocks of a day, each a stretch of the past that began as many whole days earlier, so that what
    comes at night is like what came at night; where less than two days are known, blocks are a quarter of that.
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
