"""Rule that chooses among alternatives that are not distinguishable."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

import numpy as np

from poolwise.metrics import Interval

T = TypeVar("T")


def fairest(ranked: Sequence[T], added_wait: Callable[[T], float], difference: Callable[[T, T], Interval]) -> T:
    """Return the alternative that adds the least wait, among those that no other is shown to beat.

    Parameters
    ----------
    ranked
        Alternatives, the lowest goal first.
    added_wait
        Wait that an alternative adds, compared with FCFS without backfilling; if it is NaN (unknown), the first is returned.
    difference
        Paired difference of the goal, first - second, with its interval; NaN bounds do not make alternatives equal.
    """
    tied = [ranked[0], *(alternative for alternative in ranked[1:] if difference(alternative, ranked[0]).low <= 0)]
    if not np.isfinite([added_wait(alternative) for alternative in tied]).all():
        return ranked[0]
    for alternative in sorted(tied, key=added_wait):
        if not any(difference(other, alternative).high < 0 for other in ranked if other is not alternative):
            return alternative
    return ranked[0]
